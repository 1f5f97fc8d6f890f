/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* A proportion k of n and its exact one-sided 95% bounds (C. J. Clopper and E. S. Pearson, Biometrika 26, 1934), in
 * parts per thousand million, rounded outwards: the bounds never look better than they are. */
struct proportion {
        int64_t ppb;   /* k / n, rounded half up */
        int64_t lower; /* the largest p with P(Bin(n, p) >= k) <= 5%; 0 where k is 0 */
        int64_t upper; /* the smallest p with P(Bin(n, p) <= k) <= 5%; 10^9 where k is n */
};

/* proportion_of - @k of @n with bounds
 *
 * Return: 0; -ENODATA if @n is 0; -EINVAL if @k is over @n or @n over 2^53.
 */
int proportion_of(uint64_t k, uint64_t n, struct proportion *ret);
