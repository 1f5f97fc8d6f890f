/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/admission.h"

#include <inttypes.h>

#define PS_PER_PPM UINT64_C(1000000) /* of a second */

int admission_charge(struct admission *a, const char *name, uint64_t cost_ps, uint64_t rate_hz, uint64_t *charge,
                     struct fault *fault)
{
        uint64_t others = a->used_ps - *charge, wanted, sum;

        if (__builtin_mul_overflow(cost_ps, rate_hz, &wanted) || __builtin_add_overflow(wanted, others, &sum) ||
            sum > a->max_ps)
                return fault_set(fault, FAULT_UTILISATION, FAULT_NO_SLOT,
                                 "%s costs up to %" PRIu64 " ns, %" PRIu64 " times a second; beside %" PRIu64
                                 " us of each second that others take, the cap is %" PRIu64 " us",
                                 name, cost_ps / 1000, rate_hz, others / 1000000, a->max_ps / 1000000);
        a->used_ps = sum;
        *charge = wanted;
        return 0;
}

void admission_refund(struct admission *a, uint64_t *charge)
{
        a->used_ps -= *charge;
        *charge = 0;
}

uint64_t admission_ppm(const struct admission *a)
{
        return (a->used_ps + PS_PER_PPM - 1) / PS_PER_PPM;
}
