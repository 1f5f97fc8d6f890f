/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <errno.h>

int clock_sleep_until_ns(clockid_t clock, int64_t when_ns, const volatile int *stop)
{
        struct timespec when = timespec_of_nsec(when_ns > 0 ? when_ns : 0);

        for (;;) {
                int r;

                if (stop && *stop)
                        return -EINTR;
                r = clock_nanosleep(clock, TIMER_ABSTIME, &when, NULL);
                if (r != EINTR)
                        return -r;
        }
}
