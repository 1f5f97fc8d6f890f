/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "stats/moments.h"

static double variance_of(const int64_t *values, size_t n)
{
        struct moments m = {0};
        double variance = -1;

        for (size_t i = 0; i < n; i++)
                moments_add(&m, values[i]);
        assert_int_equal(moments_variance(&m, &variance), 0);
        return variance;
}

/* NIST's NumAcc cases are of this kind: the mean is far larger than the spread. */
static void test_no_cancellation(void **state)
{
        const int64_t values[] = {1000000004, 1000000007, 1000000013, 1000000016};

        assert_true(variance_of(values, 4) == 30.0);
}

static void test_equal_values(void **state)
{
        const int64_t values[] = {5, 5};

        assert_true(variance_of(values, 2) == 0.0);
}

static void test_extremes_and_mean(void **state)
{
        struct moments m = {0};
        double mean;

        moments_add(&m, -3);
        moments_add(&m, 5);
        moments_add(&m, 1);
        assert_int_equal(m.min, -3);
        assert_int_equal(m.max, 5);
        assert_int_equal(moments_mean(&m, &mean), 0);
        assert_true(mean == 1.0);
}

static void test_no_samples(void **state)
{
        struct moments m = {0};
        double value = 7;

        assert_int_equal(moments_mean(&m, &value), -ENODATA);
        assert_int_equal(moments_variance(&m, &value), -ENODATA);
        moments_add(&m, 1);
        assert_int_equal(moments_variance(&m, &value), -ENODATA);
        assert_true(value == 7.0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_no_cancellation),
                cmocka_unit_test(test_equal_values),
                cmocka_unit_test(test_extremes_and_mean),
                cmocka_unit_test(test_no_samples),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
