/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* A histogram with a bucket for each power of two. */
struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 64);
        __type(key, __u32);
        __type(value, __u64);
} buckets SEC(".maps");

static __attribute__((noinline)) __u32 log2_of(__u64 value)
{
        __u32 log = 0;

        for (int shift = 32; shift > 0; shift >>= 1)
                if (value >> shift) {
                        value >>= shift;
                        log += shift;
                }
        return log;
}

SEC("event")
int histogram(const __u64 *value)
{
        __u32 bucket = log2_of(*value);
        __u64 *count = bpf_map_lookup_elem(&buckets, &bucket);

        if (count)
                __sync_fetch_and_add(count, 1);
        return bucket;
}
