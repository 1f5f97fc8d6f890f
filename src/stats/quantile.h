/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Quantiles by nearest rank, in integers: the value at rank ceil(p * n), counted from 1. No value is ever made up
 * between two that were observed. Probes that were lost rank above all others, as infinite. */

/* The quantile that falls on a lost probe: later than every duration. */
#define QUANTILE_LOST UINT64_MAX

/* quantile_rank - the nearest rank, (@ppm * @n + 999999) / 1000000, and 1 for the minimum (@ppm 0)
 * @n:    how many values there are, lost ones included
 * @ppm:  quantile in parts per million (950000 is p95)
 * @ret:  from 1 to @n
 *
 * Return: 0; -EINVAL if @n is 0 or @ppm is over 1000000. In floating point p99.9 of 1000 values lands one rank too
 * high.
 */
int quantile_rank(uint64_t n, uint32_t ppm, uint64_t *ret);

/* quantile_at - nearest-rank quantile of a sorted array and lost values above it
 * @sorted:  values in ascending order, @n of them
 * @lost:    how many more were lost
 * @ret:     the value at that rank, or QUANTILE_LOST
 *
 * Return: 0; -EINVAL as quantile_rank(). Whether there are enough to publish is quantile_publishable().
 */
int quantile_at(const uint64_t *sorted, size_t n, uint64_t lost, uint32_t ppm, uint64_t *ret);

/* quantile_needed - how many values it takes to publish a quantile: the least n with max(p, 1-p)^n <= 5%, so that with
 * 95% confidence one of them lies beyond it (p95 59, p99 299, p99.9 2995)
 *
 * Return: that number; UINT64_MAX for p0 and p100, which no sample bounds.
 */
uint64_t quantile_needed(uint32_t ppm);

/* quantile_publishable - whether @n values are enough for this quantile */
static inline bool quantile_publishable(uint64_t n, uint32_t ppm)
{
        return n >= quantile_needed(ppm);
}

/* The middle of a sample and how far its middle half spreads. */
struct spread {
        uint64_t median;
        uint64_t iqr; /* p75 less p25 */
};

/* quantile_spread - median and interquartile range of @n sorted values, none of them lost
 *
 * Return: 0; -EINVAL if @n is 0.
 */
int quantile_spread(const uint64_t *sorted, size_t n, struct spread *ret);
