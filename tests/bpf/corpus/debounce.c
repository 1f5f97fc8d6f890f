/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* Buttons, debounced: a level counts when it has stood for long enough. */
static long (*gpio_set)(__u32 line, __u32 level) = (void *)0x10001;

struct edge {
        __u32 line, level;
};

struct button {
        __u64 since_ns;
        __u32 level, stable;
};

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 28);
        __type(key, __u32);
        __type(value, struct button);
} buttons SEC(".maps");

SEC("event")
int debounce(const struct edge *e)
{
        struct button fresh = {.since_ns = bpf_ktime_get_ns(), .level = !!e->level}, *b;
        __u32 line = e->line;

        b = bpf_map_lookup_elem(&buttons, &line);
        if (!b)
                return bpf_map_update_elem(&buttons, &line, &fresh, BPF_ANY);
        if (b->level != fresh.level) {
                b->level = fresh.level;
                b->since_ns = fresh.since_ns;
                return 0;
        }
        if (fresh.since_ns - b->since_ns < 5000000 || b->stable == b->level)
                return 0;
        b->stable = b->level;
        return gpio_set(line & 15, b->stable);
}
