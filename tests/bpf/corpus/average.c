/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* A moving average over the last sixteen samples, kept in a map. */
#define WINDOW 16

struct sample {
        __u32 value;
        __u32 channel;
};

struct history {
        __u32 at, n;
        __u32 values[WINDOW];
        __u64 sum;
};

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 4);
        __type(key, __u32);
        __type(value, struct history);
} histories SEC(".maps");

SEC("event")
int average(const struct sample *s)
{
        __u32 channel = s->channel, at;
        struct history *h = bpf_map_lookup_elem(&histories, &channel);

        if (!h)
                return 0;
        at = h->at % WINDOW;
        h->sum += s->value;
        h->sum -= h->values[at];
        h->values[at] = s->value;
        h->at = at + 1;
        if (h->n < WINDOW)
                h->n++;
        return h->sum / h->n;
}
