/* SPDX-License-Identifier: Apache-2.0 */
#include "load/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_exact_rate(void **state)
{
        struct schedule s = schedule_at_rate(5, 1000);

        assert_int_equal(schedule_due_ns(&s, 0), 5);
        assert_int_equal(schedule_due_ns(&s, 1), 1000005);
        assert_int_equal(schedule_due_ns(&s, 1000), NSEC_PER_SEC + 5);
}

/* A period that is no whole number of nanoseconds does not drift: slot k * rate is due after k seconds, always. */
static void test_no_drift(void **state)
{
        static const uint64_t rates[] = {3, 7, 999, 1001, 9973, 999999937};

        for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
                struct schedule s = schedule_at_rate(0, rates[i]);

                for (int64_t second = 0; second < 10000000; second = second * 7 + 1)
                        assert_int_equal(schedule_due_ns(&s, (uint64_t)second * rates[i]), second * NSEC_PER_SEC);
        }
        assert_int_equal(schedule_due_ns(&(struct schedule){.period_num = NSEC_PER_SEC, .period_den = 3}, 1),
                         333333333);
        assert_int_equal(schedule_due_ns(&(struct schedule){.period_num = NSEC_PER_SEC, .period_den = 3}, 2),
                         666666666);
}

/* A count times 10^9 does not fit 64 bits any more after 2^64 / 10^9 events: 13 weeks at 10000/s run on. */
static void test_wide_products(void **state)
{
        struct schedule s = schedule_at_rate(0, 10000);
        uint64_t quarter = UINT64_C(13) * 7 * 86400;

        assert_int_equal(schedule_due_ns(&s, quarter * 10000), (int64_t)quarter * NSEC_PER_SEC);
        assert_int_equal(schedule_due_ns(&s, quarter * 10000 + 1), (int64_t)quarter * NSEC_PER_SEC + 100000);
}

/* 1400 octets of IP in a tagged frame are 1418 octets; 600 Mbit/s of them are one every 18.906 us. */
static void test_bits(void **state)
{
        struct schedule s = schedule_of_bits(0, 1418 * 8, 600000000);

        assert_int_equal(schedule_due_ns(&s, 1), 18906);
        assert_int_equal(schedule_due_ns(&s, 1000), 18906666);
        assert_int_equal(schedule_due_ns(&s, 75000000), INT64_C(1418) * NSEC_PER_SEC); /* 75e6 * 11344 bits at 600e6 */
}

static void test_count(void **state)
{
        struct schedule s = schedule_at_rate(77, 1000), thirds = schedule_at_rate(0, 3);

        assert_int_equal(schedule_count(&s, 30 * NSEC_PER_SEC), 30000);
        assert_int_equal(schedule_count(&s, NSEC_PER_MSEC), 1);
        assert_int_equal(schedule_count(&s, NSEC_PER_MSEC + 1), 2);
        assert_int_equal(schedule_count(&s, 1), 1);
        assert_int_equal(schedule_count(&s, 0), 0);
        assert_int_equal(schedule_count(&s, -1), 0);
        assert_int_equal(schedule_count(&thirds, NSEC_PER_SEC), 3);
        for (int64_t ns = 1; ns < 3 * NSEC_PER_SEC; ns += 12345677) { /* those due before the end, and no more */
                uint64_t n = schedule_count(&thirds, ns);

                assert_true((int64_t)((n - 1) * NSEC_PER_SEC) < 3 * ns);
                assert_true((int64_t)(n * NSEC_PER_SEC) >= 3 * ns);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_exact_rate),    cmocka_unit_test(test_no_drift),
                cmocka_unit_test(test_wide_products), cmocka_unit_test(test_bits),
                cmocka_unit_test(test_count),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
