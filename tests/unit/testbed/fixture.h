/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/text.h"
#include "config/node.h"
#include "testbed/layout.h"
#include "testbed/topology.h"

/* The boundary of experiments/exp-001.yaml. */
static const char exp_001[] = "topology: star\n"                                            /* 1 */
                              "uplink: {to: central-hpc, rate: 500mbit, scheduler: tree}\n" /* 2 */
                              "slices:\n"                                                   /* 3 */
                              "  adas:         {vlan: 10, guarantee: 100mbit, ceiling: 500mbit, priority: 0}\n"
                              "  infotainment: {vlan: 20, guarantee: 350mbit, ceiling: 500mbit, priority: 1, "
                              "queue-limit: 1000p}\n"                            /* 5 */
                              "zones:\n"                                         /* 6 */
                              "  front-left:  {slices: [adas]}\n"                /* 7 */
                              "  rear-right:  {slices: [infotainment]}\n"        /* 8 */
                              "  central-hpc: {slices: [adas, infotainment]}\n"; /* 9 */

/* @text with each of the pairs @edits (what, by what; ended by NULL) replaced once */
static inline char *edited(const char *text, const char *const *edits)
{
        char *now = strdup(text);

        assert_non_null(now);
        for (; edits && edits[0]; edits += 2) {
                const char *at = strstr(now, edits[0]);
                char *next;

                if (!at)
                        fail_msg("nothing to replace: %s", edits[0]);
                next = text_format("%.*s%s%s", (int)(at - now), now, edits[1], at + strlen(edits[0]));
                assert_non_null(next);
                free(now);
                now = next;
        }
        return now;
}

/* Reads @text as the file "m.yaml". */
static inline int read_topology(const char *text, struct topology **ret, struct err *err)
{
        _cleanup_node_ struct node *node = NULL;

        if (node_parse(span_of_text(text), "m.yaml", NULL, &node, err) < 0)
                return -EINVAL;
        return topology_read(node, ret, err);
}

/* A topology that has to be right. */
static inline struct topology *topology_of(const char *const *edits)
{
        char *text = edited(exp_001, edits);
        struct topology *t = NULL;
        struct err err = {0};

        if (read_topology(text, &t, &err) < 0)
                fail_msg("%s", err.text);
        free(text);
        return t;
}

/* Zones z0, z1, … that all carry the slices s0, s1, …; a chain where @hops is over 1. */
static inline char *many(size_t n_slices, size_t n_zones, unsigned hops)
{
        struct text t = {0};

        if (hops > 1)
                text_addf(&t, "topology: daisy-chain\nhops: %u\n", hops);
        text_add(&t, "uplink: {to: z0, rate: 500mbit}\nslices:\n");
        for (size_t i = 0; i < n_slices; i++)
                text_addf(&t, "  s%zu: {vlan: %zu, guarantee: 1mbit, ceiling: 1mbit}\n", i, i + 1);
        text_add(&t, "zones:\n");
        for (size_t i = 0; i < n_zones; i++) {
                text_addf(&t, "  z%zu: {slices: [s0", i);
                for (size_t j = 1; j < n_slices; j++)
                        text_addf(&t, ", s%zu", j);
                text_add(&t, "]}\n");
        }
        return text_take(&t);
}

#define EDITS(...)                                                                                                     \
        (const char *const[])                                                                                          \
        {                                                                                                              \
                __VA_ARGS__, NULL                                                                                      \
        }
