/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "stats/bounds.h"
#include "stats/effect.h"

static void test_ratio(void **state)
{
        int64_t ppm = 7;

        assert_int_equal(effect_ratio(819, 896, &ppm), 0);
        assert_int_equal(ppm, 914063);
        assert_int_equal(effect_ratio(BOUNDS_INFINITE, 1, &ppm), 0);
        assert_true(ppm == BOUNDS_INFINITE);
}

static void test_undefined_ratios(void **state)
{
        int64_t ppm = 7;

        assert_int_equal(effect_ratio(1, BOUNDS_INFINITE, &ppm), -EDOM);
        assert_int_equal(effect_ratio(BOUNDS_INFINITE, BOUNDS_INFINITE, &ppm), -EDOM);
        assert_int_equal(effect_ratio(1, 0, &ppm), -EDOM);
        assert_int_equal(effect_ratio(BOUNDS_INFINITE, 0, &ppm), -EDOM);
        assert_int_equal(effect_ratio(-1, 1, &ppm), -EDOM);
        assert_int_equal(effect_ratio(INT64_MAX - 1, 1, &ppm), -ERANGE);
        assert_int_equal(ppm, 7);
}

static void test_difference(void **state)
{
        int64_t ns = 7;

        assert_int_equal(effect_difference(1, 3, &ns), 0);
        assert_int_equal(ns, -2);
        assert_int_equal(effect_difference(BOUNDS_INFINITE, 3, &ns), 0);
        assert_true(ns == BOUNDS_INFINITE);
        assert_int_equal(effect_difference(3, BOUNDS_INFINITE, &ns), -EDOM);
        assert_int_equal(effect_difference(INT64_MIN, 1, &ns), -ERANGE);
        assert_int_equal(effect_difference(INT64_MAX - 1, -1, &ns), -ERANGE); /* would read as infinite */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ratio),
                cmocka_unit_test(test_undefined_ratios),
                cmocka_unit_test(test_difference),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
