/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/macro.h"
#include "bpfvm/program.h"

#define FIELD(offset)                                                                                                  \
        {                                                                                                              \
                offset, 4, .is_aligned = true                                                                          \
        }

/* struct __sk_buff of linux/bpf.h as far as a socket filter may see it: numbers only, no pointers into the packet. Each
 * field is accessed by itself; cb is one of 20 bytes. */
static const struct context_def known[] = {
        {.name = "none"},
        {.name = "__sk_buff",
         .size = 192,
         .n_ranges = 16,
         .ranges = {FIELD(0),
                    FIELD(4),
                    FIELD(8),
                    FIELD(12),
                    FIELD(16),
                    FIELD(20),
                    FIELD(24),
                    FIELD(28),
                    FIELD(32),
                    FIELD(36),
                    FIELD(40),
                    FIELD(44),                                         /* len ... tc_index */
                    {48, 20, .is_writable = true, .is_aligned = true}, /* cb[5] */
                    FIELD(68),                                         /* hash */
                    FIELD(164),
                    FIELD(176)}}, /* gso_segs, gso_size */
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
