/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/clusters.h"

#include <errno.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/macro.h"
#include "stats/sort.h"

static int64_t median_of(const int64_t *sorted, size_t n)
{
        return sorted[(n + 1) / 2 - 1];
}

/* The median of the gaps between neighbours. Return: 0 or -ENOMEM. */
static int median_gap(const int64_t *sorted, size_t n, int64_t *ret)
{
        _cleanup_free_ int64_t *gaps = calloc(n - 1, sizeof(*gaps));

        if (!gaps)
                return -ENOMEM;
        for (size_t i = 0; i + 1 < n; i++)
                gaps[i] = sorted[i + 1] - sorted[i];
        sort_i64(gaps, n - 1);
        *ret = median_of(gaps, n - 1);
        return 0;
}

int clusters_find(const int64_t *sorted, size_t n, struct cluster ret[static 2])
{
        size_t least = MAX((size_t)5, (n + 9) / 10), split = 0;
        int64_t usual, widest = 0;
        int r;

        if (n < CLUSTERS_N_MIN)
                return 0;
        r = median_gap(sorted, n, &usual);
        if (r < 0)
                return r;

        for (size_t low = least; low + least <= n; low++) {
                int64_t gap = sorted[low] - sorted[low - 1];
                __int128 below = median_of(sorted, low), above = median_of(sorted + low, n - low);

                if (gap > widest && (__int128)gap * 5 >= median_of(sorted, n) && gap > (__int128)usual * 3 &&
                    above * 2 >= below * 3) {
                        widest = gap;
                        split = low;
                }
        }
        if (split == 0)
                return 0;
        ret[0] = (struct cluster){.n = split, .median = median_of(sorted, split)};
        ret[1] = (struct cluster){.n = n - split, .median = median_of(sorted + split, n - split)};
        return 1;
}
