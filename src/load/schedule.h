/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/clock.h"

/* An absolute schedule: event i is due at start + i * period, where the period is a fraction of whole nanoseconds, so
 * that nothing accumulates. It is never shifted: who falls behind is late, or skips. */
struct schedule {
        int64_t start_ns;                /* CLOCK_MONOTONIC */
        uint64_t period_num, period_den; /* nanoseconds; the denominator is not 0 */
};

/* schedule_at_rate - @rate_hz events a second from @start_ns on; @rate_hz is not 0 */
static inline struct schedule schedule_at_rate(int64_t start_ns, uint64_t rate_hz)
{
        return (struct schedule){.start_ns = start_ns, .period_num = NSEC_PER_SEC, .period_den = rate_hz};
}

/* schedule_of_bits - an event every @bits bits of a stream of @rate_bps, neither of them 0 */
static inline struct schedule schedule_of_bits(int64_t start_ns, uint64_t bits, uint64_t rate_bps)
{
        return (struct schedule){.start_ns = start_ns, .period_num = bits * NSEC_PER_SEC, .period_den = rate_bps};
}

/* schedule_due_ns - when event @i is due, rounded down to a nanosecond; the product is taken in 128 bits */
static inline int64_t schedule_due_ns(const struct schedule *s, uint64_t i)
{
        return s->start_ns + (int64_t)((unsigned __int128)i * s->period_num / s->period_den);
}

/* schedule_count - how many events are due in @duration_ns from the start on: those before its end */
static inline uint64_t schedule_count(const struct schedule *s, int64_t duration_ns)
{
        if (duration_ns <= 0)
                return 0;
        return (uint64_t)(((unsigned __int128)duration_ns * s->period_den + s->period_num - 1) / s->period_num);
}
