/* SPDX-License-Identifier: Apache-2.0 */
#include "load/clocksync.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/timex.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* The S bit follows the kernel's word, and the error is never claimed smaller than the kernel's. */
static void test_estimate(void **state)
{
        struct timex before = {0}, after = {0};
        struct stamp_error error;
        int state_before, state_after;

        do {
                state_before = adjtimex(&before);
                error = clocksync_estimate();
                state_after = adjtimex(&after);
        } while (state_before != state_after || before.status != after.status);

        assert_int_equal(error.is_synchronised, state_before != TIME_ERROR && !(before.status & STA_UNSYNC));
        assert_int_equal(error.format, STAMP_FORMAT_NTP);
        assert_true(error.multiplier >= 1);
        assert_true(stamp_error_ns(&error) >= (uint64_t)before.maxerror * NSEC_PER_USEC);
}

static void test_anchor(void **state)
{
        int64_t before_ns = clock_now_ns(CLOCK_MONOTONIC);
        struct clocksync_anchor anchor = clocksync_anchor_read();
        int64_t after_ns = clock_now_ns(CLOCK_MONOTONIC);

        assert_true(before_ns <= anchor.monotonic_ns && anchor.monotonic_ns <= after_ns);
        assert_int_equal(clocksync_realtime(&anchor, anchor.monotonic_ns + 5), anchor.realtime_ns + 5);
        assert_int_equal(clocksync_realtime(&anchor, anchor.monotonic_ns - 5), anchor.realtime_ns - 5);
}

static void test_not_set(void **state)
{
        _cleanup_close_ int fd = clocksync_watch();

        assert_true(fd >= 0);
        assert_int_equal(clocksync_was_set(fd), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_estimate),
                cmocka_unit_test(test_anchor),
                cmocka_unit_test(test_not_set),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
