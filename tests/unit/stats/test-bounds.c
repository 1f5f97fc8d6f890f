/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/macro.h"
#include "stats/bounds.h"

/* Ranks from scipy.stats.binom 1.10.1, and from Python's exact integers (math.comb) where n is over 600. */
static void test_rank(void **state)
{
        static const size_t upto_30[] = {0,  0,  0,  0,  5,  6,  7,  7,  8,  9,  9,  10, 10, 11, 12,
                                         12, 13, 13, 14, 15, 15, 16, 16, 17, 18, 18, 19, 19, 20, 20};
        static const size_t larger[][2] = {{40, 26},    {50, 32},     {60, 37},     {64, 40},   {65, 40},
                                           {100, 59},   {128, 74},    {200, 113},   {480, 259}, {500, 269},
                                           {1000, 527}, {5000, 2559}, {10000, 5083}};

        for (size_t n = 1; n <= 30; n++)
                assert_int_equal(bounds_rank(n), upto_30[n - 1]);
        for (size_t i = 0; i < ARRAY_SIZE(larger); i++)
                assert_int_equal(bounds_rank(larger[i][0]), larger[i][1]);
}

static void test_rank_has_limits(void **state)
{
        assert_int_equal(bounds_rank(0), 0);
        assert_int_equal(bounds_rank(BOUNDS_N_MAX + 1), 0);
}

static void test_eight_rounds(void **state)
{
        const int64_t values[] = {10, 20, 30, 40, 50, 60, 70, 80};
        struct bounds b;

        assert_int_equal(bounds_at(values, 8, &b), 0);
        assert_int_equal(b.median, 40); /* nearest rank */
        assert_int_equal(b.upper, 70);  /* the second largest */
        assert_int_equal(b.lower, 20);
        assert_int_equal(b.rank, 7);
}

static void test_infinite_rounds(void **state)
{
        const int64_t values[] = {1, 2, 3, 4, 5, 6, BOUNDS_INFINITE, BOUNDS_INFINITE};
        struct bounds b;

        assert_int_equal(bounds_at(values, 8, &b), 0);
        assert_true(b.upper == BOUNDS_INFINITE);
        assert_int_equal(b.median, 4);
}

static void test_too_few(void **state)
{
        const int64_t values[] = {1, 2, 3, 4};
        struct bounds b = {.n = 77};

        assert_int_equal(bounds_at(values, 0, &b), -ENODATA);
        assert_int_equal(bounds_at(values, BOUNDS_N_MAX + 1, &b), -E2BIG);
        assert_int_equal(b.n, 77);
        assert_int_equal(bounds_at(values, 4, &b), 0);
        assert_int_equal(b.rank, 0);
        assert_int_equal(b.median, 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rank),         cmocka_unit_test(test_rank_has_limits),
                cmocka_unit_test(test_eight_rounds), cmocka_unit_test(test_infinite_rounds),
                cmocka_unit_test(test_too_few),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
