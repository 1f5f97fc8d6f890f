/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "reflex/monitor.h"

/* Seeded sequences of requests to a monitor, and a check of its answers that shares no code with it: what left its
 * envelope. */

/* The monitor that is tried: monitor_decide(), or a broken one that has to be caught. */
typedef struct decision (*corpus_decide_fn)(struct monitor *m, uint32_t channel, int64_t value,
                                            enum authority authority, uint32_t source, int64_t now_ns);

struct corpus_counts {
        uint64_t draws;             /* requests decided */
        uint64_t answers[ANSWERS];  /* of them, by enum answer */
        uint64_t interventions;     /* stops, releases, holds and their ends, tried in between */
        uint64_t escapes;           /* values applied that leave the envelope */
        enum cause first_escape;    /* the rule that the first of them broke */
        uint64_t first_escape_draw; /* and its number, from 1 */
};

#define CORPUS_PUBLIC_DRAWS 1000
#define CORPUS_DRAWS        1000000

/* corpus_public - the 1000 draws that others publish: both PWM channels and 28 lines from a linear congruential
 * sequence, at one instant, by one authority, with SLEW_REQUEST. A monitor as they describe it rejects 450 and clamps
 * 317. It never sends a PWM channel a value over 511, and time stands still; therefore corpus_run(). */
void corpus_public(corpus_decide_fn decide, struct corpus_counts *ret);

/* corpus_run - @draws requests from @seed: extremes and values around every limit to every channel and to channels that
 * there are not, by every authority and by none, while time stands, crawls, jumps and goes back, with stops, releases
 * and holds in between, and new envelopes every few thousand draws */
void corpus_run(corpus_decide_fn decide, uint64_t seed, uint64_t draws, struct corpus_counts *ret);
