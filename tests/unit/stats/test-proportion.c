/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/macro.h"
#include "stats/proportion.h"

/* Floor and ceiling of scipy.stats.beta.ppf 1.10.1 (0.05, k, n-k+1) and (0.95, k+1, n-k), times 10^9. */
static void test_bounds(void **state)
{
        static const struct {
                uint64_t k, n;
                int64_t lower, upper;
        } cases[] = {
                {0, 1, 0, 950000000},
                {1, 1, 50000000, 1000000000},
                {0, 10, 0, 258865551},
                {1, 10, 5116196, 394163303},
                {5, 10, 222441101, 777558899},
                {9, 10, 605836697, 994883804},
                {10, 10, 741134449, 1000000000},
                {0, 59, 0, 49507610},
                {0, 60, 0, 48702914},
                {4, 60, 23090540, 146097206}, /* four campaigns of sixty hold a bound of 0.15, */
                {5, 60, 33410632, 167263077}, /* five do not */
                {60, 60, 951297086, 1000000000},
                {0, 30000, 0, 99853},
                {0, 240000, 0, 12483},
                {1, 240000, 213, 19766},
                {15, 240000, 38526, 96237},
                {93, 240000, 323868, 460381},
                {120, 240000, 427380, 581826},
                {120000, 240000, 498319151, 501680849},
                {239999, 240000, 999980234, 999999787},
                {1234, 4000000, 294200, 323340},
                {3, 1000000000, 0, 8},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct proportion p;

                assert_int_equal(proportion_of(cases[i].k, cases[i].n, &p), 0);
                assert_int_equal(p.lower, cases[i].lower);
                assert_int_equal(p.upper, cases[i].upper);
        }
}

static void test_point(void **state)
{
        struct proportion p;

        assert_int_equal(proportion_of(1, 3, &p), 0);
        assert_int_equal(p.ppb, 333333333);
        assert_int_equal(proportion_of(2, 3, &p), 0);
        assert_int_equal(p.ppb, 666666667);
}

static void test_refuses(void **state)
{
        struct proportion p = {.ppb = 7};

        assert_int_equal(proportion_of(0, 0, &p), -ENODATA);
        assert_int_equal(proportion_of(2, 1, &p), -EINVAL);
        assert_int_equal(proportion_of(1, UINT64_MAX, &p), -EINVAL);
        assert_int_equal(p.ppb, 7);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_point),
                cmocka_unit_test(test_refuses),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
