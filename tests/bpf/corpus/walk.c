/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* As many steps as the context says, up and down, with counters that have a sign. */

struct walk {
        __s32 up, down;
        __u32 step;
};

static __u32 seen[16];

SEC("event")
int walk(const struct walk *w)
{
        __u32 at = 0;

        for (__s32 i = 0; i < w->up; i++) {
                at += w->step;
                seen[at & 15]++;
        }
        for (__s32 i = w->down; i > 0; i--) {
                at -= w->step;
                seen[at & 15]++;
        }
        return seen[at & 15];
}
