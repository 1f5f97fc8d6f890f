/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* A binary search in a sorted table of a map, which halves its range until nothing is left. */
#define ENTRIES 64

struct sorted {
        __u32 keys[ENTRIES];
};

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, struct sorted);
} tables SEC(".maps");

SEC("event")
int search(const __u32 *wanted)
{
        __u32 zero = 0, low = 0, key = *wanted;
        struct sorted *table = bpf_map_lookup_elem(&tables, &zero);

        if (!table)
                return -1;
        for (__u32 width = ENTRIES / 2; width > 0; width /= 2) {
                __u32 middle = low + width;

                if (middle < ENTRIES && table->keys[middle] <= key)
                        low = middle;
        }
        return low < ENTRIES && table->keys[low] == key ? (int)low : -1;
}
