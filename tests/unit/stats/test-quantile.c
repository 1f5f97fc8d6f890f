/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/macro.h"
#include "stats/quantile.h"

static uint64_t sequence_quantile(uint64_t n, uint32_t ppm)
{
        static uint64_t values[1000];
        uint64_t value = 0;

        for (uint64_t i = 0; i < n; i++)
                values[i] = i + 1;
        assert_int_equal(quantile_at(values, n, 0, ppm, &value), 0);
        return value;
}

/* What floating point and rounded histograms get wrong: the nearest rank of p of 1..n is ceil(p * n) by definition. */
static void test_nearest_rank(void **state)
{
        static const uint64_t ties[] = {1, 2, 2, 2, 2};
        uint64_t value;

        assert_int_equal(sequence_quantile(1000, 999000), 999);
        assert_int_equal(sequence_quantile(100, 550000), 55);
        assert_int_equal(sequence_quantile(160, 990000), 159);
        assert_int_equal(sequence_quantile(100, 0), 1);
        assert_int_equal(sequence_quantile(100, 1), 1);
        assert_int_equal(sequence_quantile(100, 1000000), 100);
        assert_int_equal(sequence_quantile(1, 500000), 1);
        assert_int_equal(quantile_at(ties, 5, 0, 250000, &value), 0);
        assert_int_equal(value, 2);
}

static void test_rank_of_huge_samples(void **state)
{
        uint64_t rank;

        assert_int_equal(quantile_rank(UINT64_MAX, 1000000, &rank), 0);
        assert_true(rank == UINT64_MAX);
        assert_int_equal(quantile_rank(UINT64_C(20000000000000000), 999999, &rank), 0);
        assert_true(rank == UINT64_C(19999980000000000));
}

static void test_no_samples(void **state)
{
        struct spread spread = {7, 7};
        uint64_t value = 7;

        assert_int_equal(quantile_at(NULL, 0, 0, 500000, &value), -EINVAL);
        assert_int_equal(quantile_spread(NULL, 0, &spread), -EINVAL);
        assert_int_equal(value, 7);
        assert_int_equal(spread.median, 7);
}

static void test_beyond_one_is_refused(void **state)
{
        const uint64_t one = 1;
        uint64_t value;

        assert_int_equal(quantile_at(&one, 1, 0, 1000001, &value), -EINVAL);
}

static void test_lost_rank_as_infinite(void **state)
{
        const uint64_t received[] = {10, 20, 30, 40, 50, 60, 70, 80, 90};
        uint64_t value;

        assert_int_equal(quantile_at(received, 9, 1, 500000, &value), 0);
        assert_int_equal(value, 50); /* the fifth of ten, not of nine */
        assert_int_equal(quantile_at(received, 9, 1, 900000, &value), 0);
        assert_int_equal(value, 90);
        assert_int_equal(quantile_at(received, 9, 1, 900001, &value), 0);
        assert_true(value == QUANTILE_LOST);
        assert_int_equal(quantile_at(NULL, 0, 3, 500000, &value), 0);
        assert_true(value == QUANTILE_LOST);
}

/* ceil(ln 0.05 / ln max(p, 1-p)), from Python's math.log; p95 59, p99 299 and p99.9 2995 stand in docs/method.md. */
static void test_needed(void **state)
{
        static const struct {
                uint32_t ppm;
                uint64_t needed;
        } cases[] = {{1, 2995731},     {50000, 59},       {250000, 11},    {500000, 5},          {750000, 11},
                     {900000, 29},     {950000, 59},      {990000, 299},   {999000, 2995},       {999900, 29956},
                     {999990, 299572}, {999999, 2995731}, {0, UINT64_MAX}, {1000000, UINT64_MAX}};

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_true(quantile_needed(cases[i].ppm) == cases[i].needed);
}

static void test_publishable(void **state)
{
        assert_true(quantile_publishable(299, 990000));
        assert_false(quantile_publishable(298, 990000));
        assert_false(quantile_publishable(35, 999990));
        assert_false(quantile_publishable(0, 500000));
}

static void test_spread(void **state)
{
        const uint64_t values[] = {1, 2, 3, 4, 5, 6, 7, 8};
        struct spread spread;

        assert_int_equal(quantile_spread(values, 8, &spread), 0);
        assert_int_equal(spread.median, 4);
        assert_int_equal(spread.iqr, 4); /* 6 - 2 */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nearest_rank),
                cmocka_unit_test(test_rank_of_huge_samples),
                cmocka_unit_test(test_no_samples),
                cmocka_unit_test(test_beyond_one_is_refused),
                cmocka_unit_test(test_lost_rank_as_infinite),
                cmocka_unit_test(test_needed),
                cmocka_unit_test(test_publishable),
                cmocka_unit_test(test_spread),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
