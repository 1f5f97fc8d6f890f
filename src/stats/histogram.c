/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/histogram.h"

#include <errno.h>

#include "base/macro.h"
#include "stats/quantile.h"

#define SUB_BITS 7 /* 128 buckets for each power of two */

/* Values below 2^(SUB_BITS + 1) are their own bucket. Above, the top SUB_BITS + 1 bits of the value, of which the first
 * is always 1, follow the number of bits that are dropped. */
static size_t bucket_of(uint64_t value)
{
        unsigned shift;

        if (value < UINT64_C(2) << SUB_BITS)
                return value;
        shift = 63 - SUB_BITS - (unsigned)__builtin_clzll(value);
        return ((size_t)shift << SUB_BITS) + (value >> shift);
}

void histogram_bucket(size_t i, uint64_t *ret_low, uint64_t *ret_high)
{
        unsigned shift = i >> SUB_BITS ? (unsigned)(i >> SUB_BITS) - 1 : 0;
        uint64_t top = i - ((size_t)shift << SUB_BITS);

        *ret_low = top << shift;
        *ret_high = *ret_low + ((UINT64_C(1) << shift) - 1);
}

int histogram_init(struct histogram *h, uint64_t limit)
{
        size_t n = bucket_of(limit) + 1;
        uint64_t *counts = calloc(n, sizeof(*counts));

        if (!counts)
                return -ENOMEM;
        *h = (struct histogram){.limit = limit, .n_buckets = n, .counts = counts};
        return 0;
}

void histogram_done(struct histogram *h)
{
        free(h->counts);
        *h = (struct histogram){0};
}

void histogram_add(struct histogram *h, uint64_t value)
{
        h->min = h->n == 0 ? value : MIN(h->min, value);
        h->max = h->n == 0 ? value : MAX(h->max, value);
        h->n++;
        if (value > h->limit)
                h->overflow++;
        else
                h->counts[bucket_of(value)]++;
}

int histogram_quantile(const struct histogram *h, uint64_t lost, uint32_t ppm, uint64_t *ret)
{
        uint64_t rank, seen = 0, low, high;
        int r;

        r = quantile_rank(h->n + lost, ppm, &rank);
        if (r < 0)
                return r;
        if (rank > h->n) {
                *ret = QUANTILE_LOST;
                return 0;
        }
        for (size_t i = 0; i < h->n_buckets; i++) {
                seen += h->counts[i];
                if (seen >= rank) {
                        histogram_bucket(i, &low, &high);
                        high = MIN(high, h->limit);
                        high = MIN(high, h->max);
                        *ret = MAX(high, h->min);
                        return 0;
                }
        }
        *ret = h->max;
        return 0;
}
