/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "reflex/monitor.h"

/* How long the monitor takes to decide, many requests at a time, since one is shorter than reading a clock. */

enum measure_case {
        MEASURE_MIXED,  /* requests as a program sends them, with all answers among them */
        MEASURE_ALLOW,  /* within range and slew */
        MEASURE_CLAMP,  /* beyond both */
        MEASURE_SAFE,   /* after a stop */
        MEASURE_REJECT, /* channels that there are not */
        MEASURE_CASES
};

#define MEASURE_REQUESTS 1024 /* different ones, gone through in turn */

struct measure_request {
        int64_t value;
        uint32_t channel;
};

struct measure {
        struct monitor monitor;
        struct measure_request requests[MEASURE_REQUESTS];
        size_t next;
        int64_t now_ns;        /* told to the monitor: 10 us pass with each request */
        int64_t clock_cost_ns; /* of one reading, as measured by measure_init() */
        int64_t sum;           /* of what was decided, so that nothing can be left out */
};

/* measure_case_names - "mixed", "allow", ..., ended by NULL */
extern const char *const measure_case_names[];

/* measure_init - requests drawn from @seed, all for one case; measures the clock */
void measure_init(struct measure *m, enum measure_case which, uint64_t seed);

/* measure_batch - decide @n requests
 * @repeat: each of them so many times
 *
 * Return: how long it took in ns, the clock's own cost taken out; never negative.
 */
int64_t measure_batch(struct measure *m, size_t n, unsigned repeat);
