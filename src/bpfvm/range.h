/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "bpfvm/tnum.h"

/* The values of a word of 1 to 64 bits, between bounds of its unsigned and of its signed reading. Both readings
 * describe the same word, so the set is the intersection. Functions that could find the set empty return false then;
 * the bounds that they leave are not to be used. @bits is always the width of the word. */
struct range {
        uint64_t umin, umax;
        int64_t smin, smax;
};

/* Sums, differences and most products of two words without wrapping. */
typedef __int128 range_wide;

static inline struct range range_full(unsigned bits)
{
        return (struct range){.umax = width_mask(bits), .smin = width_smin(bits), .smax = width_smax(bits)};
}

static inline struct range range_const(uint64_t value, unsigned bits)
{
        return (struct range){.umin = value,
                              .umax = value,
                              .smin = width_signed(value, bits),
                              .smax = width_signed(value, bits)};
}

static inline bool range_contains(const struct range *r, uint64_t value, unsigned bits)
{
        int64_t s = width_signed(value, bits);

        return r->umin <= value && value <= r->umax && r->smin <= s && s <= r->smax;
}

/* range_includes - whether the bounds of @b lie within those of @a */
static inline bool range_includes(const struct range *a, const struct range *b)
{
        return a->umin <= b->umin && b->umax <= a->umax && a->smin <= b->smin && b->smax <= a->smax;
}

static inline bool range_equal(const struct range *a, const struct range *b)
{
        return a->umin == b->umin && a->umax == b->umax && a->smin == b->smin && a->smax == b->smax;
}

static inline struct range range_join(const struct range *a, const struct range *b)
{
        return (struct range){.umin = MIN(a->umin, b->umin),
                              .umax = MAX(a->umax, b->umax),
                              .smin = MIN(a->smin, b->smin),
                              .smax = MAX(a->smax, b->smax)};
}

static inline bool range_meet(struct range *r, const struct range *other)
{
        r->umin = MAX(r->umin, other->umin);
        r->umax = MIN(r->umax, other->umax);
        r->smin = MAX(r->smin, other->smin);
        r->smax = MIN(r->smax, other->smax);
        return r->umin <= r->umax && r->smin <= r->smax;
}

static inline bool range_narrow_unsigned(struct range *r, uint64_t umin, uint64_t umax)
{
        r->umin = MAX(r->umin, umin);
        r->umax = MIN(r->umax, umax);
        return r->umin <= r->umax;
}

static inline bool range_narrow_signed(struct range *r, int64_t smin, int64_t smax)
{
        r->smin = MAX(r->smin, smin);
        r->smax = MIN(r->smax, smax);
        return r->smin <= r->smax;
}

/* Narrows the signed reading by the unsigned one where that does not cross the sign. */
static inline bool range_narrow_signed_by_unsigned(struct range *r, unsigned bits)
{
        int64_t low = width_signed(r->umin, bits), high = width_signed(r->umax, bits);

        return low > high || range_narrow_signed(r, low, high);
}

/* range_agree - narrow each reading by the other */
static inline bool range_agree(struct range *r, unsigned bits)
{
        uint64_t low = (uint64_t)r->smin & width_mask(bits), high = (uint64_t)r->smax & width_mask(bits);
        bool some_negative, some_positive;

        if (!range_narrow_signed_by_unsigned(r, bits))
                return false;
        if (low <= high)
                return range_narrow_unsigned(r, low, high) && range_narrow_signed_by_unsigned(r, bits);
        /* The signed bounds enclose zero: the words are 0 to smax, and, read as unsigned, smin to the greatest. */
        some_positive = r->umin <= high;
        some_negative = low <= r->umax;
        if (!some_positive && !some_negative)
                return false;
        if (!some_positive)
                r->umin = MAX(r->umin, low);
        else if (!some_negative)
                r->umax = MIN(r->umax, high);
        return range_narrow_signed_by_unsigned(r, bits);
}

/* range_narrow_by_tnum - move each bound to the nearest value that @t has. For the signed bounds the sign bit is
 * flipped, so that words order as signed numbers do. */
static inline bool range_narrow_by_tnum(struct range *r, struct tnum t, unsigned bits)
{
        uint64_t sign = width_sign_bit(bits), mask = width_mask(bits), low, high;
        struct tnum flipped = {.value = (t.value ^ sign) & ~t.mask, .mask = t.mask};

        if (t.mask == mask)
                return true;
        if (!tnum_at_least(t, r->umin, &r->umin) || !tnum_at_most(t, r->umax, &r->umax) || r->umin > r->umax)
                return false;
        low = ((uint64_t)r->smin & mask) ^ sign;
        high = ((uint64_t)r->smax & mask) ^ sign;
        if (!tnum_at_least(flipped, low, &low) || !tnum_at_most(flipped, high, &high) || low > high)
                return false;
        r->smin = width_signed(low ^ sign, bits);
        r->smax = width_signed(high ^ sign, bits);
        return true;
}

/* range_of_signed - the range with these bounds of the signed reading; range_of_unsigned - of the unsigned reading */
static inline struct range range_of_signed(int64_t smin, int64_t smax, unsigned bits)
{
        struct range r = range_full(bits);

        r.smin = smin;
        r.smax = smax;
        range_agree(&r, bits);
        return r;
}

static inline struct range range_of_unsigned(uint64_t umin, uint64_t umax, unsigned bits)
{
        struct range r = range_full(bits);

        r.umin = umin;
        r.umax = umax;
        range_agree(&r, bits);
        return r;
}

/* range_narrow_to_arc - narrow to the words that come from @first on for @len further ones, around the end to 0 where
 * it is passed: each reading is bounded where the arc does not pass its end */
static inline bool range_narrow_to_arc(struct range *r, uint64_t first, uint64_t len, unsigned bits)
{
        int64_t s = width_signed(first, bits);

        if (len <= width_mask(bits) - first && !range_narrow_unsigned(r, first, first + len))
                return false;
        return len > (uint64_t)width_smax(bits) - (uint64_t)s ||
               range_narrow_signed(r, s, (int64_t)((uint64_t)s + len));
}

/* range_of_integers - what the integers from @low to @high become in words of @bits */
static inline struct range range_of_integers(range_wide low, range_wide high, unsigned bits)
{
        struct range r = range_full(bits);

        if (high - low <= (range_wide)width_mask(bits))
                range_narrow_to_arc(&r, (uint64_t)low & width_mask(bits), (uint64_t)(high - low), bits);
        return r;
}

/* range_truncate - the low @bits of the words in @r, which is a range of wider words */
static inline struct range range_truncate(const struct range *r, unsigned bits)
{
        uint64_t mask = width_mask(bits), ulen = r->umax - r->umin, slen = (uint64_t)r->smax - (uint64_t)r->smin;
        struct range low = range_full(bits);

        if (ulen < mask)
                range_narrow_to_arc(&low, r->umin & mask, ulen, bits);
        if (slen < mask && slen != ulen)
                range_narrow_to_arc(&low, (uint64_t)r->smin & mask, slen, bits);
        return low;
}

/* The integers from @low to @high whose @bits low bits lie on the circle from @first on for @len further values: moves
 * both bounds to the nearest one. */
static inline void range_nearest_by_low(range_wide *low, range_wide *high, range_wide first, uint64_t len,
                                        unsigned bits)
{
        uint64_t behind = (uint64_t)(*low - first) & width_mask(bits);
        uint64_t ahead = (uint64_t)(*high - first) & width_mask(bits);

        if (behind > len)
                *low += (range_wide)(width_mask(bits) - behind) + 1;
        if (ahead > len)
                *high -= ahead - len;
}

/* range_narrow_by_low - narrow @r, knowing that the @low_bits low bits of its words lie within @low */
static inline bool range_narrow_by_low(struct range *r, const struct range *low, unsigned low_bits)
{
        range_wide umin = r->umin, umax = r->umax, smin = r->smin, smax = r->smax;
        uint64_t ulen = low->umax - low->umin, slen = (uint64_t)low->smax - (uint64_t)low->smin;

        if (ulen != width_mask(low_bits)) {
                range_nearest_by_low(&umin, &umax, low->umin, ulen, low_bits);
                range_nearest_by_low(&smin, &smax, low->umin, ulen, low_bits);
        }
        if (slen != width_mask(low_bits)) {
                range_nearest_by_low(&umin, &umax, low->smin, slen, low_bits);
                range_nearest_by_low(&smin, &smax, low->smin, slen, low_bits);
        }
        if (umin > umax || smin > smax)
                return false;
        *r = (struct range){.umin = (uint64_t)umin,
                            .umax = (uint64_t)umax,
                            .smin = (int64_t)smin,
                            .smax = (int64_t)smax};
        return true;
}

struct range range_add(const struct range *a, const struct range *b, unsigned bits);
struct range range_sub(const struct range *a, const struct range *b, unsigned bits);
struct range range_mul(const struct range *a, const struct range *b, unsigned bits);
struct range range_or(const struct range *a, const struct range *b, unsigned bits);
struct range range_and(const struct range *a, const struct range *b, unsigned bits);
struct range range_xor(const struct range *a, const struct range *b, unsigned bits);

/* Division as RFC 9669 defines it: x / 0 is 0, x % 0 is x, signed division rounds towards zero, and the least value
 * divided by -1 is itself, with remainder 0. */
struct range range_udiv(const struct range *a, const struct range *b, unsigned bits);
struct range range_umod(const struct range *a, const struct range *b, unsigned bits);
struct range range_sdiv(const struct range *a, const struct range *b, unsigned bits);
struct range range_smod(const struct range *a, const struct range *b, unsigned bits);

/* Shifts by any amount from @least to @most, both below @bits. */
struct range range_shl(const struct range *a, unsigned least, unsigned most, unsigned bits);
struct range range_shr(const struct range *a, unsigned least, unsigned most, unsigned bits);
struct range range_sar(const struct range *a, unsigned least, unsigned most, unsigned bits);
