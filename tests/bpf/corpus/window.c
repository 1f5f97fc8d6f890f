/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* Sequence numbers that were seen, in a window of 64, as a replay check does it. */
struct packet {
        __u32 flow;
        __u32 sequence;
};

struct seen {
        __u32 highest;
        __u32 unused;
        __u64 bits;
};

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 64);
        __type(key, __u32);
        __type(value, struct seen);
} flows SEC(".maps");

SEC("event")
int window(const struct packet *p)
{
        struct seen first = {.highest = p->sequence, .bits = 1}, *s;
        __u32 flow = p->flow, sequence = p->sequence, behind;

        s = bpf_map_lookup_elem(&flows, &flow);
        if (!s)
                return bpf_map_update_elem(&flows, &flow, &first, BPF_ANY) == 0;
        if (sequence > s->highest) {
                __u32 ahead = sequence - s->highest;

                s->bits = ahead < 64 ? s->bits << ahead | 1 : 1;
                s->highest = sequence;
                return 1;
        }
        behind = s->highest - sequence;
        if (behind >= 64 || s->bits >> behind & 1)
                return 0;
        s->bits |= 1ULL << behind;
        return 1;
}
