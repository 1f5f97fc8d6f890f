/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Mean and variance of a running sample by Welford's recurrence, which does not cancel where the values are large and
 * close together (B. P. Welford, Technometrics 4, 1962). For people's eyes: nothing in an archive is made from it. */
struct moments {
        uint64_t n;
        int64_t min, max;
        double mean;
        double m2; /* sum of squared deviations from the mean */
};

/* moments_add - take in one value; @m starts as {0} */
void moments_add(struct moments *m, int64_t value);

/* moments_mean - Return: 0; -ENODATA without values */
int moments_mean(const struct moments *m, double *ret);

/* moments_variance - variance of the sample, with n - 1 in the denominator
 *
 * Return: 0; -ENODATA with fewer than two values.
 */
int moments_variance(const struct moments *m, double *ret);
