/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "stats/bootstrap.h"
#include "stats/bounds.h"

#define N 20

static void fill(int64_t *of, int64_t *versus, int64_t step, int64_t shift)
{
        for (int64_t i = 0; i < N; i++) {
                versus[i] = 1000 + (i * 7 % N) * step;
                of[i] = versus[i] + shift;
        }
}

/* The median of a resample of 20 is at most the k-th value with probability P(Bin(20, k/20) >= 10), which crosses 2.5%
 * at k = 6 and 97.5% at k = 14 (scipy.stats.binom 1.10.1: 0.0139, 0.0480; 0.9468, 0.9829). */
static void test_interval_of_a_median(void **state)
{
        int64_t of[N], versus[N];
        struct bootstrap b;

        fill(of, versus, 0, 0);
        for (int64_t i = 0; i < N; i++)
                of[i] = 1000 + 10 * (i * 3 % N + 1);
        assert_int_equal(bootstrap_paired(of, versus, N, BOOTSTRAP_DIFFERENCE, 1, 0, &b), 0);
        assert_int_equal(b.point, 100);
        assert_int_equal(b.low, 60);
        assert_int_equal(b.high, 140);
        assert_false(b.is_degenerate);
}

/* Rounds that vary together cancel only if both values of a round are drawn together. */
static void test_is_paired(void **state)
{
        int64_t of[N], versus[N];
        struct bootstrap b;

        fill(of, versus, 100, 5);
        assert_int_equal(bootstrap_paired(of, versus, N, BOOTSTRAP_DIFFERENCE, 1, 0, &b), 0);
        assert_int_equal(b.point, 5);
        assert_int_equal(b.low, 5);
        assert_int_equal(b.high, 5);
}

static void test_constant_is_degenerate(void **state)
{
        int64_t of[N], versus[N];
        struct bootstrap b;

        fill(of, versus, 0, 500);
        assert_int_equal(bootstrap_paired(of, versus, N, BOOTSTRAP_RATIO, 1, 0, &b), 0);
        assert_true(b.is_degenerate);
        assert_int_equal(b.point, 1500000);
        assert_int_equal(b.low, 1500000);
        assert_int_equal(b.high, 1500000);
}

static void test_seed_decides(void **state)
{
        struct bootstrap a, b, other;
        int64_t of[N], versus[N];

        fill(of, versus, 100, 0);
        for (int64_t i = 0; i < N; i++)
                of[i] = 1000 + i * i * 3;
        memset(&a, 0, sizeof(a));
        memset(&b, 0, sizeof(b));
        assert_int_equal(bootstrap_paired(of, versus, N, BOOTSTRAP_RATIO, 7, 1, &a), 0);
        assert_int_equal(bootstrap_paired(of, versus, N, BOOTSTRAP_RATIO, 7, 1, &b), 0);
        assert_int_equal(bootstrap_paired(of, versus, N, BOOTSTRAP_RATIO, 8, 1, &other), 0);
        assert_memory_equal(&a, &b, sizeof(a));
        assert_int_equal(a.point, other.point);
        assert_true(a.low <= a.point && a.point <= a.high);
}

static void test_infinite_rounds(void **state)
{
        int64_t of[N], versus[N];
        struct bootstrap b;

        fill(of, versus, 10, 0);
        for (size_t i = 0; i < 9; i++)
                of[i] = BOUNDS_INFINITE;
        assert_int_equal(bootstrap_paired(of, versus, N, BOOTSTRAP_RATIO, 1, 0, &b), 0);
        assert_true(b.point != BOUNDS_INFINITE);
        assert_true(b.high == BOUNDS_INFINITE);
        assert_int_equal(bootstrap_paired(versus, of, N, BOOTSTRAP_RATIO, 1, 0, &b), -EDOM);
}

static void test_refuses(void **state)
{
        int64_t of[N] = {0}, versus[N] = {0};
        struct bootstrap b = {.point = 7};

        assert_int_equal(bootstrap_paired(of, versus, 0, BOOTSTRAP_RATIO, 1, 0, &b), -ENODATA);
        assert_int_equal(bootstrap_paired(of, versus, N, BOOTSTRAP_RATIO, 1, 0, &b), -EDOM);
        assert_int_equal(b.point, 7);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_interval_of_a_median),   cmocka_unit_test(test_is_paired),
                cmocka_unit_test(test_constant_is_degenerate), cmocka_unit_test(test_seed_decides),
                cmocka_unit_test(test_infinite_rounds),        cmocka_unit_test(test_refuses),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
