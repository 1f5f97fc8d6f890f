/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/bounds.h"
#include "stats/clusters.h"
#include "stats/sort.h"

static int find(int64_t *values, size_t n, struct cluster ret[static 2])
{
        sort_i64(values, n);
        return clusters_find(values, n, ret);
}

/* Fills @n values around @middle, @step apart. */
static void around(int64_t *values, size_t n, int64_t middle, int64_t step)
{
        for (size_t i = 0; i < n; i++)
                values[i] = middle + ((int64_t)i - (int64_t)(n - 1) / 2) * step;
}

/* The published bulk transfer of network-policy.csv: 17 near 32.6 ms and 13 near 74.9 ms. */
static void test_published_clusters(void **state)
{
        struct cluster c[2];
        int64_t values[30];

        around(values, 17, 32607380, 100000);
        around(values + 17, 13, 74904275, 150000);
        assert_int_equal(find(values, 30, c), 1);
        assert_int_equal(c[0].n, 17);
        assert_int_equal(c[0].median, 32607380);
        assert_int_equal(c[1].n, 13);
        assert_int_equal(c[1].median, 74904275);
}

static void test_one_group(void **state)
{
        struct cluster c[2];
        int64_t values[30];

        around(values, 30, 1000, 30);
        assert_int_equal(find(values, 30, c), 0);
        around(values, 30, 1000, 0);
        assert_int_equal(find(values, 30, c), 0);
}

static void test_outliers_are_no_cluster(void **state)
{
        struct cluster c[2];
        int64_t values[30];

        around(values, 26, 1000, 1);
        around(values + 26, 4, 9000, 1); /* four of thirty; it takes five */
        assert_int_equal(find(values, 30, c), 0);
        around(values, 25, 1000, 1);
        around(values + 25, 5, 9000, 1);
        assert_int_equal(find(values, 30, c), 1);
        assert_int_equal(c[1].n, 5);
}

static void test_a_tenth_of_many(void **state)
{
        struct cluster c[2];
        int64_t values[101];

        around(values, 91, 1000, 1);
        around(values + 91, 10, 9000, 1); /* 10% of 101 is more than 10 */
        assert_int_equal(find(values, 101, c), 0);
        around(values, 90, 1000, 1);
        around(values + 90, 11, 9000, 1);
        assert_int_equal(find(values, 101, c), 1);
}

static void test_medians_must_be_apart(void **state)
{
        struct cluster c[2];
        int64_t values[20];

        around(values, 10, 1000, 1);
        around(values + 10, 10, 1499, 1); /* less than 1.5x */
        assert_int_equal(find(values, 20, c), 0);
        around(values, 10, 1000, 1);
        around(values + 10, 10, 1500, 1);
        assert_int_equal(find(values, 20, c), 1);
}

static void test_gap_must_be_over_three_usual_ones(void **state)
{
        struct cluster c[2];
        int64_t values[20];

        around(values, 10, 1000, 100);      /* 600 to 1500 */
        around(values + 10, 10, 2200, 100); /* from 1800 */
        assert_int_equal(find(values, 20, c), 0);
        around(values, 10, 1000, 100);
        around(values + 10, 10, 2201, 100);
        assert_int_equal(find(values, 20, c), 1);
}

static void test_gap_must_be_a_fifth_of_the_median(void **state)
{
        struct cluster c[2];
        int64_t values[20];

        around(values, 10, 1100, 100);      /* 700 to 1600 */
        around(values + 10, 10, 2319, 100); /* from 1919 */
        assert_int_equal(find(values, 20, c), 0);
        around(values, 10, 1100, 100);
        around(values + 10, 10, 2320, 100);
        assert_int_equal(find(values, 20, c), 1);
}

static void test_ties(void **state)
{
        struct cluster c[2];
        int64_t values[20];

        around(values, 10, 10, 0);
        around(values + 10, 10, 20, 0);
        assert_int_equal(find(values, 20, c), 1);
        assert_int_equal(c[0].median, 10);
        assert_int_equal(c[1].median, 20);
}

static void test_infinite_cluster(void **state)
{
        struct cluster c[2];
        int64_t values[10];

        around(values, 5, 1000, 1);
        around(values + 5, 5, BOUNDS_INFINITE, 0);
        assert_int_equal(find(values, 10, c), 1);
        assert_true(c[1].median == BOUNDS_INFINITE);
}

static void test_too_few(void **state)
{
        struct cluster c[2];
        int64_t values[9];

        around(values, 4, 10, 0);
        around(values + 4, 5, 90, 0);
        assert_int_equal(find(values, 9, c), 0);
        assert_int_equal(find(values, 0, c), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_published_clusters),
                cmocka_unit_test(test_one_group),
                cmocka_unit_test(test_outliers_are_no_cluster),
                cmocka_unit_test(test_a_tenth_of_many),
                cmocka_unit_test(test_medians_must_be_apart),
                cmocka_unit_test(test_gap_must_be_over_three_usual_ones),
                cmocka_unit_test(test_gap_must_be_a_fifth_of_the_median),
                cmocka_unit_test(test_ties),
                cmocka_unit_test(test_infinite_cluster),
                cmocka_unit_test(test_too_few),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
