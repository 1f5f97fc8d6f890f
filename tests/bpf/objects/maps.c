/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

typedef struct {
        __u32 a;
        const volatile __u16 b[6];
} value_t;

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 100);
        __type(key, __u64);
        __type(value, value_t);
} by_type SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 3);
        __uint(key_size, 4);
        __uint(value_size, 24);
        __uint(map_flags, BPF_F_RDONLY_PROG);
} by_size SEC(".maps");

static struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, 8192);
} hidden SEC(".maps");

SEC("event")
int use_maps(void *unused)
{
        __u64 key = 1;
        __u32 index = 2;
        value_t *v = bpf_map_lookup_elem(&by_type, &key);
        void *w = bpf_map_lookup_elem(&by_size, &index);

        if (v && w)
                bpf_ringbuf_output(&hidden, v, sizeof(*v), 0);
        return v != 0;
}
