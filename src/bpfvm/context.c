/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/macro.h"
#include "bpfvm/program.h"

/* struct __sk_buff of linux/bpf.h as far as a socket filter may see it: numbers only, no pointers into the packet. */
static const struct context_def known[] = {
        {.name = "none"},
        {.name = "__sk_buff",
         .size = 192,
         .n_ranges = 5,
         .ranges = {{0, 48, .is_aligned = true},                       /* len ... tc_index */
                    {48, 20, .is_writable = true, .is_aligned = true}, /* cb[5] */
                    {68, 4, .is_aligned = true},                       /* hash */
                    {164, 4, .is_aligned = true},                      /* gso_segs */
                    {176, 4, .is_aligned = true}}},                    /* gso_size */
};

const struct context_def *context_find(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (streq(known[i].name, name))
                        return &known[i];
        return NULL;
}

void context_flat(struct context_def *ret, uint32_t size, bool is_writable)
{
        *ret = (struct context_def){.size = size, .n_ranges = size > 0};
        snprintf(ret->name, sizeof(ret->name), "memory");
        ret->ranges[0] = (struct context_range){.size = size, .is_writable = is_writable};
}
