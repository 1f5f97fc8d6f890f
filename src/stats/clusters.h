/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Whether the values of rounds fall into two separate groups. Then their median describes neither, and is not shown. */

#define CLUSTERS_N_MIN 10

struct cluster {
        size_t n;
        int64_t median; /* nearest rank */
};

/* clusters_find - split @n sorted values of 0 or more at the widest gap that separates clusters
 * @ret: the lower and the upper cluster, where there are two
 *
 * A gap separates where each side has at least max(5, 10% of n) values, the gap is at least 20% of the median and over
 * 3 times the median gap, and the medians of the sides are at least 1.5x apart. Values may be BOUNDS_INFINITE. Return:
 * 1 if they are separated; 0 if not, or with fewer than CLUSTERS_N_MIN values; -ENOMEM.
 */
int clusters_find(const int64_t *sorted, size_t n, struct cluster ret[static 2]);
