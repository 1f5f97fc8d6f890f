/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/quantile.h"

#include <errno.h>

#include "base/macro.h"

#define PPM_ONE 1000000u

int quantile_rank(uint64_t n, uint32_t ppm, uint64_t *ret)
{
        uint64_t rank;

        if (n == 0 || ppm > PPM_ONE)
                return -EINVAL;
        rank = (uint64_t)(((unsigned __int128)n * ppm + PPM_ONE - 1) / PPM_ONE);
        *ret = MAX(rank, UINT64_C(1));
        return 0;
}

int quantile_at(const uint64_t *sorted, size_t n, uint64_t lost, uint32_t ppm, uint64_t *ret)
{
        uint64_t rank;
        int r;

        r = quantile_rank(n + lost, ppm, &rank);
        if (r < 0)
                return r;
        *ret = rank <= n ? sorted[rank - 1] : QUANTILE_LOST;
        return 0;
}

static uint64_t fraction_mul(uint64_t a, uint64_t b)
{
        return (uint64_t)((unsigned __int128)a * b >> 64);
}

/* In fractions of 2^64: takes the largest powers of two, from the top, whose product stays above 5%. */
uint64_t quantile_needed(uint32_t ppm)
{
        uint64_t powers[24], q = MAX(ppm, PPM_ONE - ppm), product = UINT64_MAX, n = 0;
        const uint64_t limit = (uint64_t)(((unsigned __int128)1 << 64) / 20);

        if (ppm == 0 || ppm >= PPM_ONE)
                return UINT64_MAX;
        powers[0] = (uint64_t)(((unsigned __int128)q << 64) / PPM_ONE);
        for (unsigned k = 1; k < ARRAY_SIZE(powers); k++)
                powers[k] = fraction_mul(powers[k - 1], powers[k - 1]);
        for (unsigned k = ARRAY_SIZE(powers); k-- > 0;) {
                uint64_t next = fraction_mul(product, powers[k]);

                if (next > limit) {
                        product = next;
                        n += UINT64_C(1) << k;
                }
        }
        return n + 1;
}

int quantile_spread(const uint64_t *sorted, size_t n, struct spread *ret)
{
        uint64_t low, middle, high;
        int r;

        r = quantile_at(sorted, n, 0, 250000, &low);
        if (r < 0)
                return r;
        quantile_at(sorted, n, 0, 500000, &middle);
        quantile_at(sorted, n, 0, 750000, &high);
        *ret = (struct spread){.median = middle, .iqr = high - low};
        return 0;
}
