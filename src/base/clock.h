/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC  INT64_C(1000000000)
#define NSEC_PER_MSEC INT64_C(1000000)
#define NSEC_PER_USEC INT64_C(1000)

/* Nanoseconds since the epoch of a clock, as a signed count: differences of two stamps of ONE clock are intervals;
 * across clocks they mean nothing. 64 bits last until the year 2262. */

static inline int64_t nsec_of_timespec(struct timespec ts)
{
        return (int64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* timespec_of_nsec - for @ns of 0 or more */
static inline struct timespec timespec_of_nsec(int64_t ns)
{
        return (struct timespec){.tv_sec = ns / NSEC_PER_SEC, .tv_nsec = ns % NSEC_PER_SEC};
}

/* clock_now_ns - the time of @clock (CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_TAI) */
static inline int64_t clock_now_ns(clockid_t clock)
{
        struct timespec ts;

        clock_gettime(clock, &ts);
        return nsec_of_timespec(ts);
}

/* clock_sleep_until_ns - sleep until @clock reads @when_ns, through interruptions by signals
 *
 * Return: 0; -EINTR where *@stop (may be NULL) became non-zero during a signal; another negative errno.
 */
int clock_sleep_until_ns(clockid_t clock, int64_t when_ns, const volatile int *stop);
