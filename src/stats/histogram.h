/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* Counts of durations in buckets of constant relative width: exact below 256, then 128 buckets for each power of two,
 * so that a bucket is at most 0.8% wide. For live displays and pictures, in memory that does not grow; what is
 * published is ranked from the samples themselves. */
struct histogram {
        uint64_t limit;    /* the highest value that has a bucket */
        uint64_t n;        /* all values, overflow included */
        uint64_t overflow; /* values above @limit: counted, and in @max, but in no bucket */
        uint64_t min, max; /* exact; undefined while @n is 0 */
        size_t n_buckets;
        uint64_t *counts;
};

/* histogram_init - an empty histogram for values up to @limit. Return: 0 or -ENOMEM; histogram_done() releases it. */
int histogram_init(struct histogram *h, uint64_t limit);
void histogram_done(struct histogram *h);

#define _cleanup_histogram_ _cleanup_(histogram_done)

/* histogram_add - take in one value */
void histogram_add(struct histogram *h, uint64_t value);

/* histogram_quantile - nearest-rank quantile, the upper edge of its bucket but never outside [min, max]; max where the
 * rank falls among the overflow
 * @lost: how many values rank above all others
 * @ret:  the value, or QUANTILE_LOST
 *
 * Return: 0; -EINVAL as quantile_rank().
 */
int histogram_quantile(const struct histogram *h, uint64_t lost, uint32_t ppm, uint64_t *ret);

/* histogram_bucket - the lowest and the highest value of bucket @i, which is below @n_buckets */
void histogram_bucket(size_t i, uint64_t *ret_low, uint64_t *ret_high);
