/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "stats/histogram.h"
#include "stats/quantile.h"

static uint64_t quantile(const struct histogram *h, uint64_t lost, uint32_t ppm)
{
        uint64_t value = 0;

        assert_int_equal(histogram_quantile(h, lost, ppm, &value), 0);
        return value;
}

static void test_small_values_are_exact(void **state)
{
        _cleanup_histogram_ struct histogram h = {0};

        assert_int_equal(histogram_init(&h, 1000), 0);
        for (uint64_t v = 1; v <= 160; v++)
                histogram_add(&h, v);
        assert_int_equal(quantile(&h, 0, 990000), 159);
        assert_int_equal(quantile(&h, 0, 0), 1);
        assert_int_equal(quantile(&h, 0, 1000000), 160);
}

static void test_overflow_is_counted(void **state)
{
        _cleanup_histogram_ struct histogram h = {0};

        assert_int_equal(histogram_init(&h, 1000000), 0);
        histogram_add(&h, 1000000);
        histogram_add(&h, 1000001);
        histogram_add(&h, 123456789);
        assert_int_equal(h.n, 3);
        assert_int_equal(h.overflow, 2);
        assert_int_equal(h.max, 123456789);
        assert_int_equal(quantile(&h, 0, 1000000), 123456789);
        assert_int_equal(quantile(&h, 0, 1), 1000000);
}

static void test_quantile_stays_between_extremes(void **state)
{
        const uint64_t values[] = {501000000, 501500000, 502000000, 502500000, 503000000};
        _cleanup_histogram_ struct histogram h = {0};

        assert_int_equal(histogram_init(&h, UINT64_C(10000000000)), 0);
        for (size_t i = 0; i < 5; i++)
                histogram_add(&h, values[i]);
        for (uint32_t ppm = 0; ppm <= 1000000; ppm += 50000) {
                assert_true(quantile(&h, 0, ppm) >= 501000000);
                assert_true(quantile(&h, 0, ppm) <= 503000000);
        }
}

static void test_lost_rank_as_infinite(void **state)
{
        _cleanup_histogram_ struct histogram h = {0};

        assert_int_equal(histogram_init(&h, 100), 0);
        histogram_add(&h, 5);
        assert_int_equal(quantile(&h, 1, 500000), 5);
        assert_true(quantile(&h, 1, 500001) == QUANTILE_LOST);
}

static void test_no_samples(void **state)
{
        _cleanup_histogram_ struct histogram h = {0};
        uint64_t value = 7;

        assert_int_equal(histogram_init(&h, 100), 0);
        assert_int_equal(histogram_quantile(&h, 0, 500000, &value), -EINVAL);
        assert_int_equal(value, 7);
}

/* Buckets follow each other without hole or overlap, hold their own edges, and are at most 1/128 wide. */
static void test_buckets_tile(void **state)
{
        _cleanup_histogram_ struct histogram h = {0};
        uint64_t low, high, next = 0;

        assert_int_equal(histogram_init(&h, UINT64_MAX), 0);
        for (size_t i = 0; i < h.n_buckets; i++) {
                histogram_bucket(i, &low, &high);
                assert_true(low == next && high >= low);
                assert_true(high - low <= low / 128);
                histogram_add(&h, low);
                histogram_add(&h, high);
                assert_int_equal(h.counts[i], 2);
                next = high + 1;
        }
        assert_true(next == 0); /* past 2^64 - 1 */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_small_values_are_exact),
                cmocka_unit_test(test_overflow_is_counted),
                cmocka_unit_test(test_quantile_stays_between_extremes),
                cmocka_unit_test(test_lost_rank_as_infinite),
                cmocka_unit_test(test_no_samples),
                cmocka_unit_test(test_buckets_tile),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
