/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/bounds.h"

#include <errno.h>
#include <stdbool.h>

#include "base/macro.h"

/* A natural number below 2^(64 * n_words), least significant word first. */
struct natural {
        size_t n_words;
        uint64_t words[BOUNDS_N_MAX / 64 + 2];
};

static void natural_scale(struct natural *x, uint64_t times, uint64_t over)
{
        unsigned __int128 carry = 0;

        for (size_t i = 0; i < x->n_words; i++) {
                carry += (unsigned __int128)x->words[i] * times;
                x->words[i] = (uint64_t)carry;
                carry >>= 64;
        }
        for (size_t i = x->n_words; i-- > 0;) {
                carry = carry << 64 | x->words[i];
                x->words[i] = (uint64_t)(carry / over);
                carry %= over;
        }
}

static void natural_add(struct natural *x, const struct natural *y)
{
        unsigned __int128 carry = 0;

        for (size_t i = 0; i < x->n_words; i++) {
                carry += (unsigned __int128)x->words[i] + y->words[i];
                x->words[i] = (uint64_t)carry;
                carry >>= 64;
        }
}

static bool natural_reaches_power(const struct natural *x, size_t bit)
{
        size_t word = bit / 64;

        if (x->words[word] >> bit % 64)
                return true;
        while (++word < x->n_words)
                if (x->words[word])
                        return true;
        return false;
}

/* Sums 20 * C(n, r) from r = n down until it passes 2^n; it never equals it, since 5 does not divide a power of two. */
size_t bounds_rank(size_t n)
{
        struct natural term = {.n_words = n / 64 + 2, .words = {20}}, sum = {.n_words = n / 64 + 2};

        if (n > BOUNDS_N_MAX)
                return 0;
        for (size_t r = n; r > 0; r--) {
                natural_add(&sum, &term);
                if (natural_reaches_power(&sum, n))
                        return r < n ? r + 1 : 0;
                natural_scale(&term, r, n - r + 1);
        }
        return 0;
}

int bounds_at(const int64_t *sorted, size_t n, struct bounds *ret)
{
        struct bounds b = {.n = n};

        if (n == 0)
                return -ENODATA;
        if (n > BOUNDS_N_MAX)
                return -E2BIG;
        b.rank = bounds_rank(n);
        b.median = sorted[(n + 1) / 2 - 1];
        if (b.rank > 0) {
                b.upper = sorted[b.rank - 1];
                b.lower = sorted[n - b.rank];
        }
        *ret = b;
        return 0;
}
