/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/range.h"

struct range range_add(const struct range *a, const struct range *b, unsigned bits)
{
        struct range u = range_of_integers((range_wide)a->umin + b->umin, (range_wide)a->umax + b->umax, bits);
        struct range s = range_of_integers((range_wide)a->smin + b->smin, (range_wide)a->smax + b->smax, bits);

        range_meet(&u, &s);
        return u;
}

struct range range_sub(const struct range *a, const struct range *b, unsigned bits)
{
        struct range u = range_of_integers((range_wide)a->umin - b->umax, (range_wide)a->umax - b->umin, bits);
        struct range s = range_of_integers((range_wide)a->smin - b->smax, (range_wide)a->smax - b->smin, bits);

        range_meet(&u, &s);
        return u;
}

struct range range_mul(const struct range *a, const struct range *b, unsigned bits)
{
        range_wide slow = (range_wide)a->smin * b->smin, shigh = slow;
        range_wide corners[] = {(range_wide)a->smin * b->smax, (range_wide)a->smax * b->smin,
                                (range_wide)a->smax * b->smax};
        struct range u, s;
        uint64_t last;

        for (unsigned i = 0; i < ARRAY_SIZE(corners); i++) {
                slow = MIN(slow, corners[i]);
                shigh = MAX(shigh, corners[i]);
        }
        /* A product of unsigned 64-bit words need not fit the wide type; such bounds say nothing anyway. */
        s = range_of_integers(slow, shigh, bits);
        if (__builtin_mul_overflow(a->umax, b->umax, &last))
                return s;
        u = range_of_integers((range_wide)a->umin * b->umin, last, bits);
        range_meet(&u, &s);
        return u;
}

/* All words up to the highest bit of @x. */
static uint64_t fill_below(uint64_t x)
{
        return x ? UINT64_MAX >> __builtin_clzll(x) : 0;
}

struct range range_or(const struct range *a, const struct range *b, unsigned bits)
{
        return range_of_unsigned(MAX(a->umin, b->umin), fill_below(a->umax | b->umax), bits);
}

struct range range_and(const struct range *a, const struct range *b, unsigned bits)
{
        return range_of_unsigned(0, MIN(a->umax, b->umax), bits);
}

struct range range_xor(const struct range *a, const struct range *b, unsigned bits)
{
        return range_of_unsigned(0, fill_below(a->umax | b->umax), bits);
}

struct range range_udiv(const struct range *a, const struct range *b, unsigned bits)
{
        uint64_t least = b->umin == 0 ? 0 : a->umin / b->umax;

        if (b->umax == 0)
                return range_const(0, bits);
        return range_of_unsigned(least, a->umax / MAX(b->umin, UINT64_C(1)), bits);
}

struct range range_umod(const struct range *a, const struct range *b, unsigned bits)
{
        if (b->umax == 0 || a->umax < b->umin)
                return *a;
        return range_of_unsigned(0, b->umin == 0 ? a->umax : MIN(a->umax, b->umax - 1), bits);
}

/* Widens [*low, *high] by the quotients of [a->smin, a->smax] and the divisors from @least to @most, which have one
 * sign and are not 0. A quotient is monotone in each operand on either side of zero, so that its extremes are at
 * corners. */
static void quotients(const struct range *a, int64_t least, int64_t most, range_wide *low, range_wide *high)
{
        range_wide dividends[] = {a->smin, a->smax}, divisors[] = {least, most};

        for (unsigned i = 0; i < 4; i++) {
                range_wide q = dividends[i & 1] / divisors[i >> 1];

                *low = MIN(*low, q);
                *high = MAX(*high, q);
        }
}

struct range range_sdiv(const struct range *a, const struct range *b, unsigned bits)
{
        range_wide low = (range_wide)1 << 64, high = -low;

        if (b->smin <= 0 && b->smax >= 0)
                low = high = 0;
        if (b->smax > 0)
                quotients(a, MAX(b->smin, INT64_C(1)), b->smax, &low, &high);
        if (b->smin < 0)
                quotients(a, b->smin, MIN(b->smax, INT64_C(-1)), &low, &high);
        return range_of_integers(low, high, bits);
}

struct range range_smod(const struct range *a, const struct range *b, unsigned bits)
{
        range_wide greatest = MAX(-(range_wide)b->smin, (range_wide)b->smax) - 1;
        bool zero = b->smin <= 0 && b->smax >= 0;
        range_wide low = MAX((range_wide)a->smin, -greatest), high = MIN((range_wide)a->smax, greatest);

        /* By zero the dividend stays. */
        if (zero) {
                low = a->smin;
                high = a->smax;
        }
        return range_of_signed((int64_t)MIN(low, (range_wide)0), (int64_t)MAX(high, (range_wide)0), bits);
}

struct range range_shl(const struct range *a, unsigned least, unsigned most, unsigned bits)
{
        range_wide slow = a->smin * ((range_wide)1 << (a->smin < 0 ? most : least));
        range_wide shigh = a->smax * ((range_wide)1 << (a->smax < 0 ? least : most));

        struct range u = range_of_integers((range_wide)a->umin << least, (range_wide)a->umax << most, bits);
        struct range s = range_of_integers(slow, shigh, bits);

        range_meet(&u, &s);
        return u;
}

struct range range_shr(const struct range *a, unsigned least, unsigned most, unsigned bits)
{
        return range_of_unsigned(a->umin >> most, a->umax >> least, bits);
}

struct range range_sar(const struct range *a, unsigned least, unsigned most, unsigned bits)
{
        return range_of_signed(a->smin >> (a->smin < 0 ? least : most), a->smax >> (a->smax < 0 ? most : least), bits);
}
