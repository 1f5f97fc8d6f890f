/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "wire/stamp.h"

/* clocksync_estimate - what the kernel says of CLOCK_REALTIME, as the error estimate of a STAMP packet in NTP format
 *
 * The S bit is set only where the kernel holds the clock for synchronised (adjtimex: neither STA_UNSYNC nor
 * TIME_ERROR); the error is its maximum error, which without a source of time grows to 16 s.
 */
struct stamp_error clocksync_estimate(void);

/* What the two own clocks read at one moment. */
struct clocksync_anchor {
        int64_t monotonic_ns, realtime_ns;
};

/* clocksync_anchor_read - read both clocks, several times, and keep the reading that took least */
struct clocksync_anchor clocksync_anchor_read(void);

/* clocksync_realtime - the moment @monotonic_ns as CLOCK_REALTIME would have read it without a step since @anchor; the
 * two clocks run at one rate */
static inline int64_t clocksync_realtime(const struct clocksync_anchor *anchor, int64_t monotonic_ns)
{
        return monotonic_ns + (anchor->realtime_ns - anchor->monotonic_ns);
}

/* clocksync_watch - a descriptor that notices when CLOCK_REALTIME is set, also if it is set back again
 *
 * Return: a descriptor for clocksync_was_set(), or a negative errno.
 */
int clocksync_watch(void);

/* clocksync_was_set - whether the clock was set since clocksync_watch(). Return: 0 or 1, or a negative errno. */
int clocksync_was_set(int fd);
