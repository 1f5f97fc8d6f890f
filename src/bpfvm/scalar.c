/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/scalar.h"

#include "base/macro.h"
#include "bpfvm/scalar-internal.h"

static int64_t divide_signed(int64_t a, int64_t b)
{
        return b == 0 ? 0 : b == -1 ? (int64_t) - (uint64_t)a : a / b;
}

static int64_t modulo_signed(int64_t a, int64_t b)
{
        return b == 0 ? a : b == -1 ? 0 : a % b;
}

uint64_t scalar_compute(enum alu_op op, uint64_t a, uint64_t b, unsigned bits)
{
        int64_t sa = width_signed(a, bits), sb = width_signed(b, bits);
        unsigned amount = (unsigned)b & (bits - 1);
        uint64_t result = 0;

        switch (op) {
        case ALU_ADD:
                result = a + b;
                break;
        case ALU_SUB:
                result = a - b;
                break;
        case ALU_MUL:
                result = a * b;
                break;
        case ALU_DIV:
                result = b ? a / b : 0;
                break;
        case ALU_SDIV:
                result = (uint64_t)divide_signed(sa, sb);
                break;
        case ALU_MOD:
                result = b ? a % b : a;
                break;
        case ALU_SMOD:
                result = (uint64_t)modulo_signed(sa, sb);
                break;
        case ALU_OR:
                result = a | b;
                break;
        case ALU_AND:
                result = a & b;
                break;
        case ALU_XOR:
                result = a ^ b;
                break;
        case ALU_LSH:
                result = a << amount;
                break;
        case ALU_RSH:
                result = a >> amount;
                break;
        case ALU_ARSH:
                result = (uint64_t)(sa >> amount);
                break;
        case ALU_MOV:
                result = b;
                break;
        case ALU_NEG:
                result = -a;
                break;
        case ALU_MOVSX:
        case ALU_OPS:
                break;
        }
        return result & width_mask(bits);
}

bool scalar_holds(enum branch_op op, uint64_t a, uint64_t b, unsigned bits)
{
        int64_t sa = width_signed(a, bits), sb = width_signed(b, bits);

        switch (op) {
        case BRANCH_EQ:
                return a == b;
        case BRANCH_NE:
                return a != b;
        case BRANCH_GT:
                return a > b;
        case BRANCH_GE:
                return a >= b;
        case BRANCH_LT:
                return a < b;
        case BRANCH_LE:
                return a <= b;
        case BRANCH_SGT:
                return sa > sb;
        case BRANCH_SGE:
                return sa >= sb;
        case BRANCH_SLT:
                return sa < sb;
        case BRANCH_SLE:
                return sa <= sb;
        case BRANCH_SET:
                return (a & b) != 0;
        case BRANCH_OPS:
                break;
        }
        return false;
}

struct scalar scalar_unknown_at(unsigned word)
{
        return (struct scalar){.tnum = tnum_unknown(word), .word = range_full(word), .half = range_full(word / 2)};
}

struct scalar scalar_bytes(unsigned n)
{
        uint64_t most = width_mask(8 * n);

        return (struct scalar){
                .tnum = tnum_unknown(8 * n),
                .word = range_of_unsigned(0, most, 64),
                .half = range_of_unsigned(0, MIN(most, (uint64_t)UINT32_MAX), 32),
        };
}

bool scalar_contains_at(const struct scalar *s, uint64_t value, unsigned word)
{
        return tnum_contains(s->tnum, value) && range_contains(&s->word, value, word) &&
               range_contains(&s->half, value & width_mask(word / 2), word / 2);
}

bool scalar_includes(const struct scalar *a, const struct scalar *b)
{
        return tnum_includes(a->tnum, b->tnum) && range_includes(&a->word, &b->word) &&
               range_includes(&a->half, &b->half);
}

bool scalar_equal(const struct scalar *a, const struct scalar *b)
{
        return a->tnum.value == b->tnum.value && a->tnum.mask == b->tnum.mask && range_equal(&a->word, &b->word) &&
               range_equal(&a->half, &b->half);
}

/* One round of narrowing; what a round learns of the bits is handed to the bounds by the next. Inlined, so that there
 * is a copy for words of 64 bits, the one that programs need. */
static inline __attribute__((always_inline)) bool narrow_parts(struct scalar *s, unsigned word)
{
        unsigned half = word / 2;
        struct tnum low;
        struct range truncated;

        if (!range_narrow_by_tnum(&s->word, s->tnum, word) || !range_agree(&s->word, word))
                return false;
        truncated = range_truncate(&s->word, half);
        if (!range_meet(&s->half, &truncated) || !range_narrow_by_tnum(&s->half, tnum_truncate(s->tnum, half), half) ||
            !range_agree(&s->half, half))
                return false;
        if (!range_narrow_by_low(&s->word, &s->half, half) || !range_agree(&s->word, word))
                return false;
        low = tnum_of_range(s->half.umin, s->half.umax);
        low.mask |= width_mask(word) & ~width_mask(half);
        return tnum_meet(s->tnum, low, &s->tnum) &&
               tnum_meet(s->tnum, tnum_of_range(s->word.umin, s->word.umax), &s->tnum);
}

bool scalar_reduce_at(struct scalar *s, unsigned word)
{
        for (unsigned round = 0; round < 2; round++) {
                struct tnum before = s->tnum;

                if (!(word == 64 ? narrow_parts(s, 64) : narrow_parts(s, word)))
                        return false;
                if (before.mask == s->tnum.mask)
                        break;
        }
        if (!tnum_is_const(s->tnum))
                return true;
        if (!scalar_contains_at(s, s->tnum.value, word))
                return false;
        *s = scalar_const_at(s->tnum.value, word);
        return true;
}

/* The bits of a shift whose amount is one of those that @amount allows between @least and @most. */
static struct tnum shift_tnum(enum alu_op op, struct tnum t, struct tnum amount, unsigned least, unsigned most,
                              unsigned bits)
{
        struct tnum result = {0};
        bool any = false;

        for (unsigned n = least; n <= most; n++) {
                struct tnum shifted;

                if (!tnum_contains(amount, n))
                        continue;
                shifted = op == ALU_LSH ? tnum_shl(t, n, bits) : op == ALU_RSH ? tnum_shr(t, n) : tnum_sar(t, n, bits);
                result = any ? tnum_join(result, shifted) : shifted;
                any = true;
        }
        return any ? result : tnum_unknown(bits);
}

static struct scalar_part shift(enum alu_op op, const struct scalar_part *a, const struct scalar_part *b, unsigned bits)
{
        struct tnum amount = tnum_and(b->tnum, tnum_const(bits - 1));
        unsigned least = (unsigned)amount.value, most = (unsigned)(amount.value | amount.mask);
        struct scalar_part r;

        if (b->range.umax < bits) {
                least = MAX(least, (unsigned)b->range.umin);
                most = MIN(most, (unsigned)b->range.umax);
        }
        r.tnum = shift_tnum(op, a->tnum, amount, least, most, bits);
        if (op == ALU_LSH)
                r.range = range_shl(&a->range, least, most, bits);
        else if (op == ALU_RSH)
                r.range = range_shr(&a->range, least, most, bits);
        else
                r.range = range_sar(&a->range, least, most, bits);
        return r;
}

static struct scalar_part divide(enum alu_op op, const struct scalar_part *a, const struct scalar_part *b,
                                 unsigned bits)
{
        struct scalar_part r = {.tnum = tnum_unknown(bits)};

        switch (op) {
        case ALU_DIV:
                r.range = range_udiv(&a->range, &b->range, bits);
                break;
        case ALU_SDIV:
                r.range = range_sdiv(&a->range, &b->range, bits);
                break;
        case ALU_MOD:
                r.range = range_umod(&a->range, &b->range, bits);
                if (tnum_is_const(b->tnum) && (b->tnum.value & (b->tnum.value - 1)) == 0)
                        r.tnum = tnum_and(a->tnum, tnum_const((b->tnum.value - 1) & width_mask(bits)));
                break;
        default:
                r.range = range_smod(&a->range, &b->range, bits);
                break;
        }
        return r;
}

struct scalar_part scalar_part_alu(enum alu_op op, const struct scalar_part *a, const struct scalar_part *b,
                                   unsigned bits)
{
        const struct scalar_part zero = {.range = range_const(0, bits)};

        switch (op) {
        case ALU_ADD:
                return (struct scalar_part){tnum_truncate(tnum_add(a->tnum, b->tnum), bits),
                                            range_add(&a->range, &b->range, bits)};
        case ALU_SUB:
                return (struct scalar_part){tnum_truncate(tnum_sub(a->tnum, b->tnum), bits),
                                            range_sub(&a->range, &b->range, bits)};
        case ALU_NEG:
                return scalar_part_alu(ALU_SUB, &zero, a, bits);
        case ALU_MUL:
                return (struct scalar_part){tnum_truncate(tnum_mul(a->tnum, b->tnum), bits),
                                            range_mul(&a->range, &b->range, bits)};
        case ALU_OR:
                return (struct scalar_part){tnum_or(a->tnum, b->tnum), range_or(&a->range, &b->range, bits)};
        case ALU_AND:
                return (struct scalar_part){tnum_and(a->tnum, b->tnum), range_and(&a->range, &b->range, bits)};
        case ALU_XOR:
                return (struct scalar_part){tnum_xor(a->tnum, b->tnum), range_xor(&a->range, &b->range, bits)};
        case ALU_LSH:
        case ALU_RSH:
        case ALU_ARSH:
                return shift(op, a, b, bits);
        case ALU_MOV:
                return *b;
        default:
                return divide(op, a, b, bits);
        }
}

static struct scalar_part word_part(const struct scalar *s)
{
        return (struct scalar_part){s->tnum, s->word};
}

static struct scalar_part half_part(const struct scalar *s, unsigned half)
{
        return (struct scalar_part){tnum_truncate(s->tnum, half), s->half};
}

/* Whether the low half of the result follows from the low halves of the operands. */
static bool works_upwards(enum alu_op op)
{
        return op == ALU_ADD || op == ALU_SUB || op == ALU_MUL || op == ALU_OR || op == ALU_AND || op == ALU_XOR ||
               op == ALU_NEG;
}

static void set_zero_extended(struct scalar *s, const struct scalar_part *low, unsigned half, unsigned word)
{
        s->tnum = low->tnum;
        s->half = low->range;
        s->word = range_of_unsigned(low->range.umin, low->range.umax, word);
        scalar_reduce_at(s, word);
}

void scalar_alu_at(struct scalar *dst, enum alu_op op, const struct scalar *src, bool low, unsigned word)
{
        unsigned half = word / 2, bits = low ? half : word;
        struct scalar_part a, b, result;

        if (scalar_is_const(dst) && (scalar_is_const(src) || op == ALU_NEG)) {
                uint64_t mask = width_mask(bits);

                *dst = scalar_const_at(scalar_compute(op, dst->tnum.value & mask, src->tnum.value & mask, bits), word);
                return;
        }
        a = half_part(dst, half);
        b = half_part(src, half);
        if (low) {
                result = scalar_part_alu(op, &a, &b, half);
                set_zero_extended(dst, &result, half, word);
                return;
        }
        dst->half = works_upwards(op) ? scalar_part_alu(op, &a, &b, half).range : range_full(half);
        a = word_part(dst);
        b = word_part(src);
        result = scalar_part_alu(op, &a, &b, word);
        dst->tnum = result.tnum;
        dst->word = result.range;
        scalar_reduce_at(dst, word);
}

/* The low @from bits of a word, as a part of that width. */
static struct scalar_part low_part(const struct scalar *s, unsigned from, unsigned word)
{
        struct scalar_part r = {.tnum = tnum_truncate(s->tnum, from), .range = range_truncate(&s->word, from)};

        if (from <= word / 2) {
                struct range half = range_truncate(&s->half, from);

                range_meet(&r.range, &half);
        }
        return r;
}

void scalar_zero_extend_at(struct scalar *s, unsigned from, unsigned word)
{
        struct scalar_part r = low_part(s, from, word);

        s->tnum = r.tnum;
        s->word = range_of_unsigned(r.range.umin, r.range.umax, word);
        if (from < word / 2)
                s->half = range_full(word / 2);
        scalar_reduce_at(s, word);
}

void scalar_sign_extend_at(struct scalar *s, unsigned from, bool low, unsigned word)
{
        struct scalar_part r = low_part(s, from, word);
        unsigned bits = low ? word / 2 : word;

        range_narrow_by_tnum(&r.range, r.tnum, from);
        range_agree(&r.range, from);
        r.tnum = tnum_truncate(tnum_extend_sign(r.tnum, from), bits);
        r.range = range_of_signed(r.range.smin, r.range.smax, bits);
        if (low) {
                set_zero_extended(s, &r, bits, word);
                return;
        }
        s->tnum = r.tnum;
        s->word = r.range;
        s->half = range_truncate(&s->word, word / 2);
        scalar_reduce_at(s, word);
}

void scalar_swap_at(struct scalar *s, unsigned unit, unsigned n, unsigned word)
{
        s->tnum = tnum_swap(s->tnum, unit, n);
        s->word = range_full(word);
        s->half = range_full(word / 2);
        scalar_reduce_at(s, word);
}

void scalar_join_at(struct scalar *dst, const struct scalar *src, unsigned word)
{
        dst->tnum = tnum_join(dst->tnum, src->tnum);
        dst->word = range_join(&dst->word, &src->word);
        dst->half = range_join(&dst->half, &src->half);
        scalar_reduce_at(dst, word);
}

bool scalar_meet_at(struct scalar *dst, const struct scalar *src, unsigned word)
{
        return tnum_meet(dst->tnum, src->tnum, &dst->tnum) && range_meet(&dst->word, &src->word) &&
               range_meet(&dst->half, &src->half) && scalar_reduce_at(dst, word);
}

/* Takes the word @value away where it is a bound. Return: false if none is left. */
static bool exclude(struct range *r, uint64_t value, unsigned bits)
{
        int64_t s = width_signed(value, bits);

        if ((r->umin == value && r->umax == value) || (r->smin == s && r->smax == s))
                return false;
        r->umin += r->umin == value;
        r->umax -= r->umax == value;
        r->smin += r->smin == s;
        r->smax -= r->smax == s;
        return true;
}

/* Narrows to the values that share a bit with @mask. Return: false if none does. */
static bool share_a_bit(struct scalar_part *a, uint64_t mask)
{
        uint64_t possible = (a->tnum.value | a->tnum.mask) & mask;

        if (possible == 0)
                return false;
        if ((possible & (possible - 1)) == 0) {
                a->tnum.value |= possible;
                a->tnum.mask &= ~possible;
        }
        a->range.umin = MAX(a->range.umin, possible & -possible);
        return a->range.umin <= a->range.umax;
}

static bool share_no_bit(struct scalar_part *a, uint64_t known)
{
        a->tnum.mask &= ~known;
        return (a->tnum.value & known) == 0;
}

/* a > b, or a >= b with @equal. */
static bool refine_unsigned(struct range *a, struct range *b, bool equal)
{
        if (a->umax < b->umin || (a->umax == b->umin && !equal))
                return false;
        a->umin = MAX(a->umin, b->umin + !equal);
        b->umax = MIN(b->umax, a->umax - !equal);
        return true;
}

static bool refine_signed(struct range *a, struct range *b, bool equal)
{
        if (a->smax < b->smin || (a->smax == b->smin && !equal))
                return false;
        a->smin = MAX(a->smin, b->smin + !equal);
        b->smax = MIN(b->smax, a->smax - !equal);
        return true;
}

static bool refine_equal(struct scalar_part *a, struct scalar_part *b)
{
        if (!tnum_meet(a->tnum, b->tnum, &a->tnum) || !range_meet(&a->range, &b->range))
                return false;
        *b = *a;
        return true;
}

static bool refine_unequal(struct scalar_part *a, struct scalar_part *b, unsigned bits)
{
        return (!tnum_is_const(b->tnum) || exclude(&a->range, b->tnum.value, bits)) &&
               (!tnum_is_const(a->tnum) || exclude(&b->range, a->tnum.value, bits));
}

/* The ordering conditions as a > b, or a >= b with equal, of operands that are exchanged with swap. */
static const struct order {
        bool swap, equal, is_signed;
} orders[BRANCH_OPS] = {
        [BRANCH_GT] = {false, false, false}, [BRANCH_GE] = {false, true, false},  [BRANCH_LT] = {true, false, false},
        [BRANCH_LE] = {true, true, false},   [BRANCH_SGT] = {false, false, true}, [BRANCH_SGE] = {false, true, true},
        [BRANCH_SLT] = {true, false, true},  [BRANCH_SLE] = {true, true, true},
};

static bool refine_order(const struct order *order, bool taken, struct range *a, struct range *b)
{
        bool equal = order->equal == taken, swap = order->swap == taken;
        struct range *greater = swap ? b : a, *lesser = swap ? a : b;

        return order->is_signed ? refine_signed(greater, lesser, equal) : refine_unsigned(greater, lesser, equal);
}

bool scalar_part_refine(enum branch_op op, bool taken, struct scalar_part *a, struct scalar_part *b, unsigned bits)
{
        switch (op) {
        case BRANCH_EQ:
        case BRANCH_NE:
                return taken == (op == BRANCH_EQ) ? refine_equal(a, b) : refine_unequal(a, b, bits);
        case BRANCH_SET:
                if (!taken)
                        return share_no_bit(a, b->tnum.value) && share_no_bit(b, a->tnum.value);
                return share_a_bit(a, b->tnum.value | b->tnum.mask) && share_a_bit(b, a->tnum.value | a->tnum.mask);
        default:
                return refine_order(&orders[op], taken, &a->range, &b->range);
        }
}

static void put_part(struct scalar *s, const struct scalar_part *p, bool low, unsigned bits)
{
        if (!low) {
                s->tnum = p->tnum;
                s->word = p->range;
                return;
        }
        s->tnum.value = (s->tnum.value & ~width_mask(bits)) | p->tnum.value;
        s->tnum.mask = (s->tnum.mask & ~width_mask(bits)) | p->tnum.mask;
        s->half = p->range;
}

bool scalar_refine_at(struct scalar *a, struct scalar *b, enum branch_op op, bool taken, bool low, unsigned word)
{
        unsigned bits = low ? word / 2 : word;
        struct scalar_part pa = low ? half_part(a, bits) : word_part(a);
        struct scalar_part pb = low ? half_part(b, bits) : word_part(b);

        if (op == (taken ? BRANCH_EQ : BRANCH_NE) && !low) {
                if (!scalar_meet_at(a, b, word))
                        return false;
                *b = *a;
                return true;
        }
        if (!scalar_part_refine(op, taken, &pa, &pb, bits))
                return false;
        put_part(a, &pa, low, bits);
        if (!scalar_reduce_at(a, word))
                return false;
        if (a == b)
                return true;
        put_part(b, &pb, low, bits);
        return scalar_reduce_at(b, word);
}
