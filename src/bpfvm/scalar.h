/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpfvm/insn.h"
#include "bpfvm/range.h"
#include "bpfvm/tnum.h"

/* What is known of a 64-bit word: its bits, the bounds of the whole word and the bounds of its low half, which the
 * 32-bit instructions work on. The parts are kept narrowed by each other. A scalar is never empty: the functions that
 * may exclude every value (scalar_refine(), scalar_reduce()) return false then, and the scalar is not to be used
 * further. */
struct scalar {
        struct tnum tnum;
        struct range word;
        struct range half;
};

static inline bool scalar_is_const(const struct scalar *s)
{
        return tnum_is_const(s->tnum);
}

/* scalar_compute - what @op gives for two words of @bits, as RFC 9669 defines it
 *
 * Shift amounts are taken modulo the width; division by zero gives 0, the remainder of it the dividend. @b is ignored
 * by SCALAR_NEG.
 */
uint64_t scalar_compute(enum alu_op op, uint64_t a, uint64_t b, unsigned bits);

/* scalar_holds - whether @op holds of two words of @bits */
bool scalar_holds(enum branch_op op, uint64_t a, uint64_t b, unsigned bits);

/* scalar_includes - whether every value of @b is shown to be one of @a */
bool scalar_includes(const struct scalar *a, const struct scalar *b);

/* scalar_equal - whether both say the same */
bool scalar_equal(const struct scalar *a, const struct scalar *b);

static inline struct scalar scalar_const_at(uint64_t value, unsigned word)
{
        return (struct scalar){
                .tnum = tnum_const(value),
                .word = range_const(value, word),
                .half = range_const(value & width_mask(word / 2), word / 2),
        };
}

/* The operations for words of @word bits, an even number up to 64; each has its form for 64 below. */
struct scalar scalar_unknown_at(unsigned word);
bool scalar_contains_at(const struct scalar *s, uint64_t value, unsigned word);
bool scalar_reduce_at(struct scalar *s, unsigned word);
void scalar_alu_at(struct scalar *dst, enum alu_op op, const struct scalar *src, bool low, unsigned word);
void scalar_zero_extend_at(struct scalar *s, unsigned from, unsigned word);
void scalar_sign_extend_at(struct scalar *s, unsigned from, bool low, unsigned word);
void scalar_swap_at(struct scalar *s, unsigned unit_bits, unsigned n, unsigned word);
void scalar_join_at(struct scalar *dst, const struct scalar *src, unsigned word);
bool scalar_meet_at(struct scalar *dst, const struct scalar *src, unsigned word);
bool scalar_refine_at(struct scalar *a, struct scalar *b, enum branch_op op, bool taken, bool low, unsigned word);

static inline struct scalar scalar_const(uint64_t value)
{
        return scalar_const_at(value, 64);
}

static inline struct scalar scalar_unknown(void)
{
        return scalar_unknown_at(64);
}

/* scalar_bytes - any number of @n bytes (1, 2, 4, 8), zero-extended */
struct scalar scalar_bytes(unsigned n);

static inline bool scalar_contains(const struct scalar *s, uint64_t value)
{
        return scalar_contains_at(s, value, 64);
}

/* scalar_reduce - narrow the parts by each other. Return: false if no value is left. */
static inline bool scalar_reduce(struct scalar *s)
{
        return scalar_reduce_at(s, 64);
}

/* scalar_alu - @dst becomes @dst @op @src; with @low the 32-bit operation, whose result is zero-extended
 *
 * ALU_MOV copies; not for ALU_MOVSX, see scalar_sign_extend(). */
static inline void scalar_alu(struct scalar *dst, enum alu_op op, const struct scalar *src, bool low)
{
        scalar_alu_at(dst, op, src, low, 64);
}

/* scalar_set - @s becomes a known word; in place, since most of what programs compute in a row is known */
static inline void scalar_set(struct scalar *s, uint64_t value)
{
        uint32_t low = (uint32_t)value;

        s->tnum = tnum_const(value);
        s->word.umin = s->word.umax = value;
        s->word.smin = s->word.smax = (int64_t)value;
        s->half.umin = s->half.umax = low;
        s->half.smin = s->half.smax = (int32_t)low;
}

/* scalar_alu_const - as scalar_alu(), with a known word; quick where @dst is known too */
static inline void scalar_alu_const(struct scalar *dst, enum alu_op op, uint64_t operand, bool low)
{
        unsigned bits = low ? 32 : 64;
        struct scalar src;

        if (scalar_is_const(dst)) {
                uint64_t mask = width_mask(bits);

                scalar_set(dst, scalar_compute(op, dst->tnum.value & mask, operand & mask, bits));
                return;
        }
        src = scalar_const(operand);
        scalar_alu(dst, op, &src, low);
}

/* scalar_zero_extend - keep the low @from bits */
static inline void scalar_zero_extend(struct scalar *s, unsigned from)
{
        scalar_zero_extend_at(s, from, 64);
}

/* scalar_sign_extend - sign-extend the low @from bits to 64, or with @low to 32 bits, which are then zero-extended */
static inline void scalar_sign_extend(struct scalar *s, unsigned from, bool low)
{
        scalar_sign_extend_at(s, from, low, 64);
}

/* scalar_swap - reverse the low @bytes bytes and zero-extend them */
static inline void scalar_swap(struct scalar *s, unsigned bytes)
{
        scalar_swap_at(s, 8, bytes, 64);
}

/* scalar_join - @dst becomes a scalar that includes both */
static inline void scalar_join(struct scalar *dst, const struct scalar *src)
{
        scalar_join_at(dst, src, 64);
}

/* scalar_meet - narrow @dst to the values that @src has too. Return: false if there are none. */
static inline bool scalar_meet(struct scalar *dst, const struct scalar *src)
{
        return scalar_meet_at(dst, src, 64);
}

/* scalar_refine - narrow both operands of a branch, @taken or passed; with @low of one that compares low halves
 *
 * @a and @b may be the same object. Return: false if the branch cannot go that way.
 */
static inline bool scalar_refine(struct scalar *a, struct scalar *b, enum branch_op op, bool taken, bool low)
{
        return scalar_refine_at(a, b, op, taken, low, 64);
}
