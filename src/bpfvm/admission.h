/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "bpfvm/fault.h"

/* What attached programs may take of the processor together: the worst case of each times how often it may run in a
 * second. What is admitted therefore fits even when everything happens at once and takes its costliest way. */

struct admission {
        uint64_t max_ps;  /* of each second */
        uint64_t used_ps; /* at most max_ps */
};

/* admission_open - nothing is attached yet
 * @max_ppm: of the processor, a profile's max_utilisation_ppm
 */
static inline struct admission admission_open(uint32_t max_ppm)
{
        return (struct admission){.max_ps = UINT64_C(1000000) * max_ppm};
}

/* admission_charge - let a program run, or one in the place of another, if the sum stays within the cap
 * @name:    of the program, for the reason
 * @cost_ps: its worst case, once
 * @rate_hz: times a second at most
 * @charge:  what its place takes so far, 0 for a new one; what it takes from now on
 *
 * Return: 0; 1 with FAULT_UTILISATION in @fault, and nothing changes.
 */
int admission_charge(struct admission *a, const char *name, uint64_t cost_ps, uint64_t rate_hz, uint64_t *charge,
                     struct fault *fault);

/* admission_refund - the program at a place was detached; *@charge becomes 0 */
void admission_refund(struct admission *a, uint64_t *charge);

/* admission_ppm - what is taken of the processor, rounded up */
uint64_t admission_ppm(const struct admission *a);
