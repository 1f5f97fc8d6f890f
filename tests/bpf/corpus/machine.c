/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* A door: a table of transitions, indexed by state and event, with a log of what changed. */
enum state { CLOSED, OPENING, OPEN, CLOSING, STATES };
enum event { PRESS, LIMIT, BLOCKED, TIMEOUT, EVENTS };

struct input {
        __u32 event;
};

struct change {
        __u32 from, to;
        __u64 at_ns;
};

static const __u8 table[STATES][EVENTS] = {
        [CLOSED] = {OPENING, CLOSED, CLOSED, CLOSED},
        [OPENING] = {CLOSING, OPEN, OPENING, CLOSING},
        [OPEN] = {CLOSING, OPEN, OPEN, CLOSING},
        [CLOSING] = {OPENING, CLOSED, OPENING, CLOSING},
};

struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, 4096);
} changes SEC(".maps");

static __u32 now;

SEC("event")
int machine(const struct input *in)
{
        struct change change = {};
        __u32 event = in->event, from = now;

        if (event >= EVENTS || from >= STATES)
                return -1;
        change.from = from;
        change.to = table[from][event];
        if (change.to != from) {
                change.at_ns = bpf_ktime_get_ns();
                bpf_ringbuf_output(&changes, &change, sizeof(change), 0);
                now = change.to;
        }
        return change.to;
}
