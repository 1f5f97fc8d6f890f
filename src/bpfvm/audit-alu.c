/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
#include "bpfvm/audit-internal.h"

/* One operand of one width: bits and pieces. */
struct operand {
        uint64_t ones, maybe;
        struct audit_piece p[2];
};

static struct operand operand_of(const struct audit_number *n, unsigned bits)
{
        struct operand o = {.ones = n->ones & audit_all_of(bits), .maybe = n->maybe & audit_all_of(bits)};

        audit_pieces_of(bits == 64 ? &n->word : &n->half, bits, o.p);
        return o;
}

static struct operand nothing_yet(void)
{
        return (struct operand){.ones = UINT64_MAX, .maybe = 0, .p = {audit_nothing, audit_nothing}};
}

static void add_bits(struct operand *to, uint64_t ones, uint64_t maybe)
{
        to->ones &= ones;
        to->maybe |= maybe;
}

static void add_anything(struct operand *to, unsigned bits)
{
        add_bits(to, 0, audit_all_of(bits));
        audit_add_integers(to->p, 0, audit_all_of(bits), bits);
}

/* Bits of a sum, by the carries of the least and of the greatest operands: where they agree the carry is known. */
static void bits_of_sum(uint64_t a_ones, uint64_t a_maybe, uint64_t b_ones, uint64_t b_maybe, uint64_t *ones,
                        uint64_t *maybe)
{
        uint64_t least = a_ones + b_ones, most = a_maybe + b_maybe;
        uint64_t known =
                ~(a_ones ^ a_maybe) & ~(b_ones ^ b_maybe) & ~((least ^ a_ones ^ b_ones) ^ (most ^ a_maybe ^ b_maybe));

        *ones = least & known;
        *maybe = least | ~known;
}

static void bits_of_product(const struct operand *a, const struct operand *b, uint64_t *ones, uint64_t *maybe)
{
        uint64_t sum_ones = 0, sum_maybe = 0, product = a->ones * b->ones;

        /* What is uncertain of each row of the long multiplication; the certain rest is the product of the ones. */
        for (unsigned i = 0; i < 64; i++) {
                uint64_t uncertain = b->ones ^ b->maybe;

                if (!(a->maybe >> i & 1))
                        continue;
                if (!(a->ones >> i & 1))
                        uncertain = b->maybe;
                bits_of_sum(sum_ones, sum_maybe, 0, uncertain << i, &sum_ones, &sum_maybe);
        }
        bits_of_sum(product, product, sum_ones, sum_maybe, ones, maybe);
}

static void bits_of(enum alu_op op, const struct operand *a, const struct operand *b, unsigned bits, uint64_t *ones,
                    uint64_t *maybe)
{
        *ones = 0;
        *maybe = audit_all_of(bits);
        if (op == ALU_AND) {
                *ones = a->ones & b->ones;
                *maybe = a->maybe & b->maybe;
        } else if (op == ALU_OR) {
                *ones = a->ones | b->ones;
                *maybe = a->maybe | b->maybe;
        } else if (op == ALU_XOR) {
                *ones = (a->ones & ~b->maybe) | (b->ones & ~a->maybe);
                *maybe = (a->maybe & ~b->ones) | (b->maybe & ~a->ones);
        } else if (op == ALU_ADD) {
                bits_of_sum(a->ones, a->maybe, b->ones, b->maybe, ones, maybe);
        } else if (op == ALU_SUB) { /* a - b is the complement of (complement of a) + b */
                bits_of_sum(~a->maybe, ~a->ones, b->ones, b->maybe, maybe, ones);
                *maybe = ~*maybe;
                *ones = ~*ones;
        } else if (op == ALU_MUL) {
                bits_of_product(a, b, ones, maybe);
        } else if (op == ALU_MOD && b->ones == b->maybe && (b->ones & (b->ones - 1)) == 0) {
                uint64_t low = b->ones - 1; /* of 0 all: the dividend stays */

                *ones = a->ones & low;
                *maybe = a->maybe & low;
        }
        *ones &= audit_all_of(bits);
        *maybe &= audit_all_of(bits);
}

static uint64_t fill(uint64_t x)
{
        uint64_t filled = 0;

        while (x & ~filled)
                filled = filled << 1 | 1;
        return filled;
}

/* All integers between the least and the greatest of four. */
static void add_between(struct operand *to, const audit_wide values[4], unsigned bits)
{
        audit_wide low = values[0], high = values[0];

        for (unsigned i = 1; i < 4; i++) {
                low = MIN(low, values[i]);
                high = MAX(high, values[i]);
        }
        audit_add_integers(to->p, low, high, bits);
}

/* Division and modulo of pieces, in the reading that @as_signed says. @b does not hold 0. */
static void divide_pieces(enum alu_op op, struct operand *to, const audit_wide a[2], const audit_wide b[2],
                          unsigned bits)
{
        audit_wide a_most = MAX(audit_abs(a[0]), audit_abs(a[1]));
        audit_wide b_most = MAX(audit_abs(b[0]), audit_abs(b[1])), b_least = MIN(audit_abs(b[0]), audit_abs(b[1]));
        const audit_wide quotients[4] = {a[0] / b[0], a[0] / b[1], a[1] / b[0], a[1] / b[1]};

        if (op == ALU_DIV || op == ALU_SDIV)
                add_between(to, quotients, bits);
        else if (a[0] == a[1] && b[0] == b[1])
                audit_add_integers(to->p, a[0] % b[0], a[0] % b[0], bits);
        else if (a_most < b_least)
                audit_add_integers(to->p, a[0], a[1], bits);
        else
                audit_add_integers(to->p, a[0] < 0 ? MAX(a[0], 1 - b_most) : 0, a[1] > 0 ? MIN(a[1], b_most - 1) : 0,
                                   bits);
}

static void divide(enum alu_op op, struct operand *to, struct audit_piece a, struct audit_piece b, unsigned bits)
{
        bool is_signed = op == ALU_SDIV || op == ALU_SMOD;
        audit_wide dividend[2] = {audit_read(a.first, bits, is_signed), audit_read(a.last, bits, is_signed)};
        audit_wide divisor[2];

        if (b.first == 0) { /* by 0 a quotient is 0, a remainder the dividend */
                if (op == ALU_DIV || op == ALU_SDIV)
                        audit_add_integers(to->p, 0, 0, bits);
                else
                        audit_add_integers(to->p, dividend[0], dividend[1], bits);
                b.first = 1;
        }
        if (b.first > b.last)
                return;
        divisor[0] = audit_read(b.first, bits, is_signed);
        divisor[1] = audit_read(b.last, bits, is_signed);
        divide_pieces(op, to, dividend, divisor, bits);
}

/* Products in one reading; as unsigned words they say something only where they do not overflow. */
static void multiply(struct operand *to, struct audit_piece a, struct audit_piece b, bool is_signed, unsigned bits)
{
        audit_wide al = audit_read(a.first, bits, true), ah = audit_read(a.last, bits, true);
        audit_wide bl = audit_read(b.first, bits, true), bh = audit_read(b.last, bits, true);
        const audit_wide products[4] = {al * bl, al * bh, ah * bl, ah * bh};
        uint64_t most;

        if (is_signed)
                add_between(to, products, bits);
        else if (!__builtin_mul_overflow(a.last, b.last, &most))
                audit_add_integers(to->p, a.first * b.first, most, bits);
        else
                audit_add_integers(to->p, 0, audit_all_of(bits), bits);
}

/* What an operation makes of two pieces; not shifts. Only products differ by the reading. */
static void combine(enum alu_op op, struct operand *to, struct audit_piece a, struct audit_piece b, bool is_signed,
                    unsigned bits)
{
        audit_wide al = audit_read(a.first, bits, true), ah = audit_read(a.last, bits, true);
        audit_wide bl = audit_read(b.first, bits, true), bh = audit_read(b.last, bits, true);

        switch (op) {
        case ALU_ADD:
                audit_add_integers(to->p, al + bl, ah + bh, bits);
                break;
        case ALU_SUB:
                audit_add_integers(to->p, al - bh, ah - bl, bits);
                break;
        case ALU_MUL:
                multiply(to, a, b, is_signed, bits);
                break;
        case ALU_OR:
                audit_add_integers(to->p, MAX(a.first, b.first), fill(a.last | b.last), bits);
                break;
        case ALU_AND:
                audit_add_integers(to->p, 0, MIN(a.last, b.last), bits);
                break;
        case ALU_XOR:
                audit_add_integers(to->p, 0, fill(a.last | b.last), bits);
                break;
        default:
                divide(op, to, a, b, bits);
                break;
        }
}

static bool combine_all(enum alu_op op, const struct operand *x, const struct operand *y, bool is_signed, unsigned bits,
                        struct audit_bounds *ret)
{
        struct operand to = nothing_yet();

        for (unsigned i = 0; i < 4; i++)
                if (x->p[i & 1].first <= x->p[i & 1].last && y->p[i >> 1].first <= y->p[i >> 1].last)
                        combine(op, &to, x->p[i & 1], y->p[i >> 1], is_signed, bits);
        return audit_bounds_of(to.p, bits, ret);
}

static void shift_by(enum alu_op op, struct operand *to, const struct operand *a, unsigned n, unsigned bits)
{
        uint64_t all = audit_all_of(bits), ones = a->ones, maybe = a->maybe;

        for (unsigned i = 0; i < 2; i++) {
                struct audit_piece p = a->p[i];
                audit_wide first = audit_read(p.first, bits, op == ALU_ARSH),
                           last = audit_read(p.last, bits, op == ALU_ARSH);

                if (p.first > p.last)
                        continue;
                if (op == ALU_LSH)
                        audit_add_integers(to->p, first * ((audit_wide)1 << n), last * ((audit_wide)1 << n), bits);
                else
                        audit_add_integers(to->p, first >> n, last >> n, bits);
        }
        if (op == ALU_LSH)
                add_bits(to, ones << n & all, maybe << n & all);
        else if (op == ALU_RSH)
                add_bits(to, ones >> n, maybe >> n);
        else
                add_bits(to, (uint64_t)(audit_read(ones, bits, true) >> n) & all,
                         (uint64_t)(audit_read(maybe, bits, true) >> n) & all);
}

/* Every amount that the second operand may be, modulo the width. */
static void shift(enum alu_op op, struct operand *to, const struct operand *a, const struct operand *b,
                  const struct audit_bounds *amounts, unsigned bits)
{
        for (unsigned n = 0; n < bits; n++) {
                bool fits = (b->ones & (bits - 1) & ~n) == 0 && (n & ~b->maybe) == 0;

                if (fits && (amounts->umax >= bits || (amounts->umin <= n && n <= amounts->umax)))
                        shift_by(op, to, a, n, bits);
        }
        if (to->maybe == 0 && to->ones == UINT64_MAX)
                add_anything(to, bits);
}

/* One width of the result. */
static void operate(enum alu_op op, const struct audit_number *a, const struct audit_number *b, unsigned bits,
                    struct audit_bounds *ret, uint64_t *ones, uint64_t *maybe)
{
        const struct operand x = operand_of(a, bits), y = operand_of(b, bits);
        struct operand to = nothing_yet();
        struct audit_bounds other;

        if (op == ALU_LSH || op == ALU_RSH || op == ALU_ARSH) {
                shift(op, &to, &x, &y, bits == 64 ? &b->word : &b->half, bits);
                audit_bounds_of(to.p, bits, ret);
                *ones = to.ones;
                *maybe = to.maybe;
                return;
        }
        combine_all(op, &x, &y, true, bits, ret);
        if (op == ALU_MUL && combine_all(op, &x, &y, false, bits, &other))
                audit_narrow(ret, &other);
        bits_of(op, &x, &y, bits, ones, maybe);
}

/* Whether the low half of the result needs only the low halves of the operands. */
static bool stays_low(enum alu_op op)
{
        return op == ALU_ADD || op == ALU_SUB || op == ALU_MUL || op == ALU_OR || op == ALU_AND || op == ALU_XOR;
}

struct audit_number audit_number_alu(enum alu_op op, const struct audit_number *a, const struct audit_number *b,
                                     uint8_t size)
{
        const struct audit_number zero = audit_number_const(0);
        struct audit_number r = audit_number_any();
        uint64_t ones, maybe;

        if (op == ALU_NEG)
                return audit_number_alu(ALU_SUB, &zero, a, size);
        if (op == ALU_MOV)
                return audit_number_extend(b, size, false, 8);
        if (size == 4) {
                operate(op, a, b, 32, &r.half, &r.ones, &r.maybe);
                r.word = (struct audit_bounds){r.half.umin, r.half.umax, (int64_t)r.half.umin, (int64_t)r.half.umax};
        } else {
                operate(op, a, b, 64, &r.word, &r.ones, &r.maybe);
                if (stays_low(op))
                        operate(op, a, b, 32, &r.half, &ones, &maybe);
        }
        audit_number_agree(&r);
        return r;
}

/* Words that share a bit with @mask. Return: false if there are none. */
static bool share(struct audit_bounds *b, uint64_t *ones, uint64_t *maybe, uint64_t mask)
{
        uint64_t shared = *maybe & mask;

        if (shared == 0)
                return false;
        if ((shared & (shared - 1)) == 0)
                *ones |= shared;
        b->umin = MAX(b->umin, shared & -shared);
        return b->umin <= b->umax;
}

/* Take a word away where it is the first or last of a piece. Return: false if nothing is left. */
static bool exclude(struct audit_bounds *b, uint64_t word, unsigned bits)
{
        struct audit_piece p[2];

        audit_pieces_of(b, bits, p);
        for (unsigned i = 0; i < 2; i++) {
                if (p[i].first > p[i].last)
                        continue;
                if (p[i].first == word && p[i].last == word) {
                        p[i] = audit_nothing;
                        continue;
                }
                p[i].first += p[i].first == word;
                p[i].last -= p[i].last == word;
        }
        return audit_bounds_of(p, bits, b);
}

/* x < y, or x <= y with @or_equal. Return: false if that cannot be. */
static bool order(struct audit_bounds *x, struct audit_bounds *y, bool is_signed, bool or_equal)
{
        if (is_signed) {
                if (x->smin > y->smax || (x->smin == y->smax && !or_equal))
                        return false;
                x->smax = MIN(x->smax, y->smax - !or_equal);
                y->smin = MAX(y->smin, x->smin + !or_equal);
                return true;
        }
        if (x->umin > y->umax || (x->umin == y->umax && !or_equal))
                return false;
        x->umax = MIN(x->umax, y->umax - !or_equal);
        y->umin = MAX(y->umin, x->umin + !or_equal);
        return true;
}

/* The operands of a branch, of one width. */
struct compared {
        struct audit_bounds *bounds;
        uint64_t ones, maybe;
};

static bool is_known(const struct compared *c)
{
        return c->ones == c->maybe;
}

static bool equal(struct compared *a, struct compared *b)
{
        a->ones = b->ones = a->ones | b->ones;
        a->maybe = b->maybe = a->maybe & b->maybe;
        a->bounds->umin = b->bounds->umin = MAX(a->bounds->umin, b->bounds->umin);
        a->bounds->umax = b->bounds->umax = MIN(a->bounds->umax, b->bounds->umax);
        a->bounds->smin = b->bounds->smin = MAX(a->bounds->smin, b->bounds->smin);
        a->bounds->smax = b->bounds->smax = MIN(a->bounds->smax, b->bounds->smax);
        return (a->ones & ~a->maybe) == 0 && a->bounds->umin <= a->bounds->umax && a->bounds->smin <= a->bounds->smax;
}

static bool compare(enum branch_op op, bool taken, struct compared *a, struct compared *b, unsigned bits)
{
        switch (op) {
        case BRANCH_EQ:
        case BRANCH_NE:
                if ((op == BRANCH_EQ) == taken)
                        return equal(a, b);
                return (!is_known(b) || exclude(a->bounds, b->ones, bits)) &&
                       (!is_known(a) || exclude(b->bounds, a->ones, bits));
        case BRANCH_SET:
                if (taken)
                        return share(a->bounds, &a->ones, &a->maybe, b->maybe) &&
                               share(b->bounds, &b->ones, &b->maybe, a->maybe);
                a->maybe &= ~b->ones;
                b->maybe &= ~a->ones;
                return (a->ones & b->ones) == 0;
        case BRANCH_GT:
        case BRANCH_SGT:
                return taken ? order(b->bounds, a->bounds, op == BRANCH_SGT, false)
                             : order(a->bounds, b->bounds, op == BRANCH_SGT, true);
        case BRANCH_GE:
        case BRANCH_SGE:
                return taken ? order(b->bounds, a->bounds, op == BRANCH_SGE, true)
                             : order(a->bounds, b->bounds, op == BRANCH_SGE, false);
        case BRANCH_LT:
        case BRANCH_SLT:
                return taken ? order(a->bounds, b->bounds, op == BRANCH_SLT, false)
                             : order(b->bounds, a->bounds, op == BRANCH_SLT, true);
        case BRANCH_LE:
        case BRANCH_SLE:
                return taken ? order(a->bounds, b->bounds, op == BRANCH_SLE, true)
                             : order(b->bounds, a->bounds, op == BRANCH_SLE, false);
        case BRANCH_OPS:
                break;
        }
        return true;
}

static void put_bits(struct audit_number *n, const struct compared *c, unsigned bits)
{
        uint64_t above = ~audit_all_of(bits);

        n->ones = (n->ones & above) | c->ones;
        n->maybe = (n->maybe & above) | c->maybe;
}

bool audit_number_branch(enum branch_op op, uint8_t size, bool taken, struct audit_number *a, struct audit_number *b)
{
        unsigned bits = 8 * size;
        uint64_t all = audit_all_of(bits);
        struct compared x = {size == 4 ? &a->half : &a->word, a->ones & all, a->maybe & all};
        struct compared y = {size == 4 ? &b->half : &b->word, b->ones & all, b->maybe & all};

        if (!compare(op, taken, &x, &y, bits))
                return false;
        put_bits(a, &x, bits);
        put_bits(b, &y, bits);
        if (size == 8 && (op == BRANCH_EQ ? taken : op == BRANCH_NE && !taken)) {
                struct compared low_a = {&a->half, 0, UINT32_MAX}, low_b = {&b->half, 0, UINT32_MAX};

                if (!equal(&low_a, &low_b))
                        return false;
        }
        return audit_number_agree(a) && audit_number_agree(b);
}
