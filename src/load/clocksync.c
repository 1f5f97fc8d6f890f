/* SPDX-License-Identifier: Apache-2.0 */
#include "load/clocksync.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <sys/timex.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define ANCHOR_TRIES 16

struct stamp_error clocksync_estimate(void)
{
        struct timex t = {0};
        int state = adjtimex(&t);
        bool is_synchronised = state >= 0 && state != TIME_ERROR && !(t.status & STA_UNSYNC);

        return stamp_error_of_ns(is_synchronised, STAMP_FORMAT_NTP,
                                 t.maxerror > 0 ? (uint64_t)t.maxerror * NSEC_PER_USEC : 0);
}

struct clocksync_anchor clocksync_anchor_read(void)
{
        struct clocksync_anchor best = {0};
        int64_t best_ns = INT64_MAX;

        for (int i = 0; i < ANCHOR_TRIES; i++) {
                int64_t before_ns = clock_now_ns(CLOCK_MONOTONIC), realtime_ns = clock_now_ns(CLOCK_REALTIME),
                        took_ns = clock_now_ns(CLOCK_MONOTONIC) - before_ns;

                if (took_ns >= best_ns)
                        continue;
                best_ns = took_ns;
                best = (struct clocksync_anchor){.monotonic_ns = before_ns + took_ns / 2, .realtime_ns = realtime_ns};
        }
        return best;
}

int clocksync_watch(void)
{
        /* A timer that never fires, but whose reading fails once the clock was set. */
        const struct itimerspec never = {.it_value.tv_sec = INT64_MAX / NSEC_PER_SEC};
        _cleanup_close_ int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);

        if (fd < 0 || timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) < 0)
                return -errno;
        return TAKE_FD(fd);
}

int clocksync_was_set(int fd)
{
        uint64_t expirations;

        if (read(fd, &expirations, sizeof(expirations)) >= 0)
                return 0;
        if (errno == ECANCELED)
                return 1;
        return errno == EAGAIN ? 0 : -errno;
}
