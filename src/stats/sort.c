/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/sort.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

#define DIGIT_BITS_MAX 11

/* One stable pass by the @bits bits at @shift of each value less @base. */
static void distribute(const uint64_t *from, uint64_t *to, size_t n, uint64_t base, unsigned shift, unsigned bits)
{
        size_t starts[1 << DIGIT_BITS_MAX], at = 0, buckets = (size_t)1 << bits;
        uint64_t mask = buckets - 1;

        memset(starts, 0, buckets * sizeof(starts[0]));
        for (size_t i = 0; i < n; i++)
                starts[(from[i] - base) >> shift & mask]++;
        for (size_t b = 0; b < buckets; b++) {
                size_t count = starts[b];

                starts[b] = at;
                at += count;
        }
        for (size_t i = 0; i < n; i++)
                to[starts[(from[i] - base) >> shift & mask]++] = from[i];
}

void sort_u64(uint64_t *values, uint64_t *scratch, size_t n)
{
        uint64_t low = UINT64_MAX, high = 0, *from = values, *to = scratch;
        unsigned width, passes, bits;

        for (size_t i = 0; i < n; i++) {
                low = MIN(low, values[i]);
                high = MAX(high, values[i]);
        }
        if (low >= high) /* nothing, one value, or all the same */
                return;
        width = 64 - (unsigned)__builtin_clzll(high - low);
        passes = (width + DIGIT_BITS_MAX - 1) / DIGIT_BITS_MAX;
        bits = (width + passes - 1) / passes;

        for (unsigned shift = 0; shift < width; shift += bits) {
                uint64_t *sorted = to;

                distribute(from, to, n, low, shift, bits);
                to = from;
                from = sorted;
        }
        if (from != values)
                memcpy(values, from, n * sizeof(*values));
}

static int compare_i64(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (x > y) - (x < y);
}

void sort_i64(int64_t *values, size_t n)
{
        if (n > 1)
                qsort(values, n, sizeof(*values), compare_i64);
}
