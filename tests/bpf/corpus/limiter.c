/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* A token bucket for each source. */
struct request {
        __u32 source, cost;
};

struct bucket {
        __u64 tokens, at_ns;
};

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 256);
        __type(key, __u32);
        __type(value, struct bucket);
} sources SEC(".maps");

#define RATE  1000 /* tokens a second */
#define DEPTH 2000

SEC("event")
int limiter(const struct request *r)
{
        __u64 now = bpf_ktime_get_ns(), gained;
        struct bucket full = {.tokens = DEPTH, .at_ns = now}, *b;
        __u32 source = r->source, cost = r->cost;

        b = bpf_map_lookup_elem(&sources, &source);
        if (!b) {
                bpf_map_update_elem(&sources, &source, &full, BPF_NOEXIST);
                b = bpf_map_lookup_elem(&sources, &source);
                if (!b)
                        return 0;
        }
        gained = (now - b->at_ns) / (1000000000 / RATE);
        if (gained > 0) {
                b->tokens = b->tokens + gained > DEPTH ? DEPTH : b->tokens + gained;
                b->at_ns = now;
        }
        if (b->tokens < cost)
                return 0;
        b->tokens -= cost;
        return 1;
}
