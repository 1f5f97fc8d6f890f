/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpfvm/width.h"

/* A tristate number: for each bit whether it is 0, 1 or unknown. A bit set in @mask is unknown, and clear in @value.
 * Addition, subtraction and multiplication follow Vishwanathan, Shachnai, Narayana and Nagarakatte, "Sound, precise,
 * and fast abstract interpretation with tristate numbers" (CGO 2022). Operations work on 64 bits; a narrower word is
 * the operation followed by tnum_truncate(). */
struct tnum {
        uint64_t value;
        uint64_t mask;
};

static inline struct tnum tnum_const(uint64_t value)
{
        return (struct tnum){.value = value};
}

/* tnum_unknown - every value of @bits */
static inline struct tnum tnum_unknown(unsigned bits)
{
        return (struct tnum){.mask = width_mask(bits)};
}

static inline bool tnum_is_const(struct tnum t)
{
        return t.mask == 0;
}

static inline bool tnum_contains(struct tnum t, uint64_t x)
{
        return ((x ^ t.value) & ~t.mask) == 0;
}

/* tnum_includes - whether every value of @b is one of @a */
static inline bool tnum_includes(struct tnum a, struct tnum b)
{
        return (b.mask & ~a.mask) == 0 && tnum_contains(a, b.value);
}

/* tnum_join - the least tristate number that includes both */
static inline struct tnum tnum_join(struct tnum a, struct tnum b)
{
        uint64_t mask = a.mask | b.mask | (a.value ^ b.value);

        return (struct tnum){.value = a.value & ~mask, .mask = mask};
}

/* tnum_meet - the values that both have. Return: false if there are none; @ret is set all the same. */
static inline bool tnum_meet(struct tnum a, struct tnum b, struct tnum *ret)
{
        uint64_t mask = a.mask & b.mask;

        *ret = (struct tnum){.value = (a.value | b.value) & ~mask, .mask = mask};
        return ((a.value ^ b.value) & ~(a.mask | b.mask)) == 0;
}

/* tnum_truncate - the low @bits */
static inline struct tnum tnum_truncate(struct tnum t, unsigned bits)
{
        return (struct tnum){.value = t.value & width_mask(bits), .mask = t.mask & width_mask(bits)};
}

/* tnum_extend_sign - the low @from bits, sign-extended to 64 */
static inline struct tnum tnum_extend_sign(struct tnum t, unsigned from)
{
        return (struct tnum){.value = (uint64_t)width_signed(t.value, from),
                             .mask = (uint64_t)width_signed(t.mask, from)};
}

/* tnum_of_range - the bits that all values from @min to @max share; @min is at most @max */
static inline struct tnum tnum_of_range(uint64_t min, uint64_t max)
{
        uint64_t differing = min ^ max, mask;

        if (differing == 0)
                return tnum_const(min);
        mask = UINT64_MAX >> __builtin_clzll(differing);
        return (struct tnum){.value = min & ~mask, .mask = mask};
}

/* tnum_at_least - the least value of @t that is at least @x. Return: false if there is none. */
static inline bool tnum_at_least(struct tnum t, uint64_t x, uint64_t *ret)
{
        uint64_t y = t.value | (x & t.mask), wrong = y ^ x, below, room;

        if (wrong == 0) {
                *ret = x;
                return true;
        }
        /* The highest known bit that disagrees with x decides whether y, which copies x where it may, is above x. */
        below = UINT64_MAX >> __builtin_clzll(wrong);
        if (y > x) {
                *ret = y & ~(t.mask & below);
                return true;
        }
        room = t.mask & ~y & ~below;
        if (room == 0)
                return false;
        room &= -room;
        *ret = (y | room) & ~(t.mask & (room - 1));
        return true;
}

/* tnum_at_most - the greatest value of @t that is at most @x. Return: false if there is none. */
static inline bool tnum_at_most(struct tnum t, uint64_t x, uint64_t *ret)
{
        struct tnum complement = {.value = ~(t.value | t.mask), .mask = t.mask};

        if (!tnum_at_least(complement, ~x, ret))
                return false;
        *ret = ~*ret;
        return true;
}

static inline struct tnum tnum_add(struct tnum a, struct tnum b)
{
        uint64_t least = a.value + b.value, most = least + a.mask + b.mask;
        uint64_t mask = (least ^ most) | a.mask | b.mask;

        return (struct tnum){.value = least & ~mask, .mask = mask};
}

static inline struct tnum tnum_sub(struct tnum a, struct tnum b)
{
        uint64_t difference = a.value - b.value;
        uint64_t mask = ((difference + a.mask) ^ (difference - b.mask)) | a.mask | b.mask;

        return (struct tnum){.value = difference & ~mask, .mask = mask};
}

struct tnum tnum_mul(struct tnum a, struct tnum b);
static inline struct tnum tnum_and(struct tnum a, struct tnum b)
{
        uint64_t value = a.value & b.value, possible = (a.value | a.mask) & (b.value | b.mask);

        return (struct tnum){.value = value, .mask = possible & ~value};
}

static inline struct tnum tnum_or(struct tnum a, struct tnum b)
{
        uint64_t value = a.value | b.value;

        return (struct tnum){.value = value, .mask = (a.mask | b.mask) & ~value};
}

static inline struct tnum tnum_xor(struct tnum a, struct tnum b)
{
        uint64_t mask = a.mask | b.mask;

        return (struct tnum){.value = (a.value ^ b.value) & ~mask, .mask = mask};
}

/* tnum_shl, tnum_shr, tnum_sar - shifts by a known @amount below @bits, in a word of @bits */
static inline struct tnum tnum_shl(struct tnum t, unsigned amount, unsigned bits)
{
        return tnum_truncate((struct tnum){.value = t.value << amount, .mask = t.mask << amount}, bits);
}

static inline struct tnum tnum_shr(struct tnum t, unsigned amount)
{
        return (struct tnum){.value = t.value >> amount, .mask = t.mask >> amount};
}

static inline struct tnum tnum_sar(struct tnum t, unsigned amount, unsigned bits)
{
        struct tnum wide = tnum_extend_sign(t, bits);

        return tnum_truncate((struct tnum){.value = (uint64_t)((int64_t)wide.value >> amount),
                                           .mask = (uint64_t)((int64_t)wide.mask >> amount)},
                             bits);
}

/* tnum_swap - the order of the @n low units of @unit_bits each reversed, what is above them dropped: with units of 8
 * bits a byte swap */
struct tnum tnum_swap(struct tnum t, unsigned unit_bits, unsigned n);
