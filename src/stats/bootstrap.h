/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Paired bootstrap: rounds are drawn with replacement, both values of a round together, and the medians of the two
 * sides compared in each resample. The interval holds 95% of the resamples. */

#define BOOTSTRAP_RESAMPLES  10000
#define BOOTSTRAP_ROUNDS_MIN 20 /* with fewer rounds an interval is not reported */

enum bootstrap_form {
        BOOTSTRAP_RATIO,      /* median of `of` over median of `versus`, in parts per million */
        BOOTSTRAP_DIFFERENCE, /* median of `of` less median of `versus` */
};

struct bootstrap {
        int64_t point;      /* of the rounds themselves */
        int64_t low, high;  /* 2.5% and 97.5% of the resamples, nearest rank; may be BOUNDS_INFINITE */
        bool is_degenerate; /* every resample gave the same number: the interval says nothing of uncertainty */
};

/* bootstrap_paired - interval of the ratio or difference of medians
 * @of, @versus: the values of @n rounds, BOUNDS_INFINITE allowed
 * @seed, @stream: what to draw from (rng_seed_stream())
 *
 * Return: 0; -ENODATA if @n is 0; -EDOM where a median of @versus is infinite, or a ratio's is not positive; -ERANGE
 * where a number does not fit; -ENOMEM.
 */
int bootstrap_paired(const int64_t *of, const int64_t *versus, size_t n, enum bootstrap_form form, uint64_t seed,
                     uint64_t stream, struct bootstrap *ret);
