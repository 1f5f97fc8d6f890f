/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* The abstract domain is written for words of any width from 1 to 64 bits, so that its soundness can be checked by
 * exhaustion at a small width. An unsigned value of a width is kept zero-extended, a signed one sign-extended. */

/* width_mask - the @bits low bits set; @bits from 1 to 64 */
static inline uint64_t width_mask(unsigned bits)
{
        return UINT64_MAX >> (64 - bits);
}

/* width_sign_bit - the sign bit of a word of @bits */
static inline uint64_t width_sign_bit(unsigned bits)
{
        return UINT64_C(1) << (bits - 1);
}

/* width_signed - the low @bits of @value read as two's complement */
static inline int64_t width_signed(uint64_t value, unsigned bits)
{
        return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

/* width_smin, width_smax - the least and the greatest signed value of @bits */
static inline int64_t width_smin(unsigned bits)
{
        return INT64_MIN >> (64 - bits);
}

static inline int64_t width_smax(unsigned bits)
{
        return INT64_MAX >> (64 - bits);
}
