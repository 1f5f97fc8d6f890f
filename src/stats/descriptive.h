/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stats/quantile.h"

/* Comparison of medians and interquartile ranges that others have published, where the rounds are not known and so no
 * bounds can be had. It describes; it never stands beside a verdict of a campaign. Any unit, the same on both sides. */

/* descriptive_ratio_within - whether @of / @versus is at most @margin_ppm, compared exactly
 *
 * Return: 1 or 0; -EDOM if @versus is 0.
 */
int descriptive_ratio_within(uint64_t of, uint64_t versus, uint32_t margin_ppm);

/* A value under load over the same value without. */
struct growth {
        uint64_t loaded, idle;
};

/* descriptive_growth_within - whether the growth @of over the growth @versus is at most @margin_ppm, compared exactly
 *
 * Return: 1 or 0; -EDOM if a denominator is 0; -ERANGE if a value is 2^42 or more.
 */
int descriptive_growth_within(struct growth of, struct growth versus, uint32_t margin_ppm);

enum descriptive_delta {
        DESCRIPTIVE_EQUAL,   /* the medians are the same and nothing spreads: constant samples, which say no more */
        DESCRIPTIVE_NOTHING, /* no measurable effect: the medians differ by at most the larger spread */
        DESCRIPTIVE_MATTERS, /* they differ by more */
};

/* descriptive_delta - whether the difference of two medians matters */
enum descriptive_delta descriptive_delta(struct spread a, struct spread b);

/* descriptive_within_spread - whether the median of @arm is nearer to @baseline's than @baseline's own spread */
bool descriptive_within_spread(struct spread arm, struct spread baseline);

enum descriptive_sign { DESCRIPTIVE_LOWER = -1, DESCRIPTIVE_NO_DIFFERENCE, DESCRIPTIVE_HIGHER };

/* descriptive_interval - what an interval of a difference says; one that holds 0 detects none */
enum descriptive_sign descriptive_interval(int64_t low, int64_t high);
