/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Median of the values of rounds, and one-sided 95% bounds of the true median from their order alone (the sign test):
 * nothing is assumed of how they are distributed. */

/* The value of a round that is infinite: it ranks above all others. */
#define BOUNDS_INFINITE INT64_MAX

/* More rounds than this are refused. */
#define BOUNDS_N_MAX 10000

struct bounds {
        size_t n;
        size_t rank; /* of the upper bound, from 1; the lower bound is as far from the top. 0: too few for bounds */
        int64_t median;
        int64_t lower, upper; /* undefined where @rank is 0 */
};

/* bounds_rank - the smallest r with P(Bin(n, 1/2) >= r) <= 5%, in exact integer arithmetic
 *
 * The r-th smallest of n values lies below the true median with at most that probability. 8 values: r = 7 (3.5%).
 * Return: r; 0 where there is none (n below 5) or where @n is over BOUNDS_N_MAX.
 */
size_t bounds_rank(size_t n);

/* bounds_at - median (nearest rank) and bounds of @n sorted values
 *
 * Return: 0; -ENODATA if @n is 0; -E2BIG if it is over BOUNDS_N_MAX.
 */
int bounds_at(const int64_t *sorted, size_t n, struct bounds *ret);
