/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/rng.h"
#include "stats/sort.h"

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

/* Against the C library's sort, for one to six passes of the radix sort. */
static void test_as_qsort(void **state)
{
        static const uint64_t widths[] = {1, 2, 255, 2047, 2048, 4000000, UINT64_C(1) << 33, UINT64_C(1) << 60, 0};
        static const uint64_t bases[] = {0, 40000, UINT64_MAX - (UINT64_C(1) << 61)};
        static uint64_t values[3001], expected[3001], scratch[3001];
        struct rng rng;

        rng_seed(&rng, 1);
        for (size_t w = 0; w < ARRAY_SIZE(widths); w++)
                for (size_t n = 0; n <= ARRAY_SIZE(values); n = n * 3 + 1) {
                        for (size_t i = 0; i < n; i++)
                                values[i] = widths[w] ? bases[w % 3] + rng_below(&rng, widths[w]) : rng_next(&rng);
                        memcpy(expected, values, sizeof(values));
                        qsort(expected, n, sizeof(*expected), compare);
                        sort_u64(values, scratch, n);
                        assert_memory_equal(values, expected, n * sizeof(*values));
                }
}

static void test_extremes(void **state)
{
        uint64_t values[] = {UINT64_MAX, 0, UINT64_MAX, 1, 0}, scratch[5];
        const uint64_t expected[] = {0, 0, 1, UINT64_MAX, UINT64_MAX};

        sort_u64(values, scratch, 5);
        assert_memory_equal(values, expected, sizeof(values));
}

static void test_signed(void **state)
{
        int64_t values[] = {3, INT64_MIN, -1, INT64_MAX, 0};
        const int64_t expected[] = {INT64_MIN, -1, 0, 3, INT64_MAX};

        sort_i64(values, 5);
        assert_memory_equal(values, expected, sizeof(values));
        sort_i64(NULL, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_as_qsort),
                cmocka_unit_test(test_extremes),
                cmocka_unit_test(test_signed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
