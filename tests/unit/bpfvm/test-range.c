/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "bpfvm/range.h"
#include "domain-oracle.h"

#define BITS 5
#define SIZE (1 << BITS)

/* Every interval of the unsigned and of the signed reading, and every meeting of two of those whose bounds are a few
 * apart; for each the set of its words. */
static struct range all[4096];
static uint32_t sets[4096];
static size_t n_all, n_single;

static uint32_t set_of(const struct range *r)
{
        uint32_t set = 0;

        for (unsigned x = 0; x < SIZE; x++)
                set |= (uint32_t)range_contains(r, x, BITS) << x;
        return set;
}

static void add(struct range r)
{
        sets[n_all] = set_of(&r);
        all[n_all++] = r;
}

static int enumerate(void **state)
{
        for (unsigned min = 0; min < SIZE; min++)
                for (unsigned max = min; max < SIZE; max++) {
                        add(range_of_unsigned(min, max, BITS));
                        add(range_of_signed((int)min - SIZE / 2, (int)max - SIZE / 2, BITS));
                }
        n_single = n_all;
        for (size_t i = 0; i < n_single; i += 7)
                for (size_t j = 0; j < n_single; j += 11) {
                        struct range r = all[i];

                        if (range_meet(&r, &all[j]) && range_agree(&r, BITS) && n_all < ARRAY_SIZE(all))
                                add(r);
                }
        return n_all > n_single ? 0 : -1;
}

static struct range apply(enum alu_op op, const struct range *a, const struct range *b)
{
        const struct range zero = range_const(0, BITS);

        switch (op) {
        case ALU_ADD:
                return range_add(a, b, BITS);
        case ALU_SUB:
                return range_sub(a, b, BITS);
        case ALU_NEG:
                return range_sub(&zero, a, BITS);
        case ALU_MUL:
                return range_mul(a, b, BITS);
        case ALU_DIV:
                return range_udiv(a, b, BITS);
        case ALU_MOD:
                return range_umod(a, b, BITS);
        case ALU_SDIV:
                return range_sdiv(a, b, BITS);
        case ALU_SMOD:
                return range_smod(a, b, BITS);
        case ALU_OR:
                return range_or(a, b, BITS);
        case ALU_AND:
                return range_and(a, b, BITS);
        case ALU_XOR:
                return range_xor(a, b, BITS);
        default:
                return *b;
        }
}

/* images[x][word] for each x: the set that op makes of x and the words of a set, by halves of the set. */
struct table {
        uint32_t low[SIZE][1 << 16], high[SIZE][1 << 16];
};

static void fill(struct table *t, enum alu_op op)
{
        for (int x = 0; x < SIZE; x++)
                for (uint32_t set = 1; set < 1 << 16; set++) {
                        int y = __builtin_ctz(set);

                        t->low[x][set] = t->low[x][set & (set - 1)] | UINT32_C(1) << oracle_alu(op, x, y, BITS);
                        t->high[x][set] = t->high[x][set & (set - 1)] | UINT32_C(1) << oracle_alu(op, x, y + 16, BITS);
                }
}

static struct table table;

static uint32_t image(uint32_t a, uint32_t b)
{
        uint32_t set = 0;

        for (; a; a &= a - 1)
                set |= table.low[__builtin_ctz(a)][b & 0xffff] | table.high[__builtin_ctz(a)][b >> 16];
        return set;
}

static bool is_shift(enum alu_op op)
{
        return op == ALU_LSH || op == ALU_RSH || op == ALU_ARSH;
}

static void test_operations(void **state)
{
        for (size_t o = 0; o < ARRAY_SIZE(oracle_ops); o++) {
                if (is_shift(oracle_ops[o]))
                        continue;
                fill(&table, oracle_ops[o]);
                for (size_t i = 0; i < n_all; i++)
                        /* Pairs of plain intervals all, pairs with a meeting now and then. */
                        for (size_t j = 0; j < n_all; j += i < n_single && j < n_single ? 1 : 41) {
                                struct range r = apply(oracle_ops[o], &all[i], &all[j]);
                                uint32_t exact = image(sets[i], sets[j]);

                                assert_int_equal(exact & ~set_of(&r), 0);
                        }
        }
}

/* Arithmetic on two known words gives the known word. (What bits do is left to tristate numbers.) */
static void test_constants(void **state)
{
        const enum alu_op ops[] = {ALU_ADD, ALU_SUB, ALU_MUL, ALU_DIV, ALU_SDIV, ALU_NEG};

        for (size_t o = 0; o < ARRAY_SIZE(ops); o++)
                for (int x = 0; x < SIZE; x++)
                        for (int y = 0; y < SIZE; y++) {
                                struct range a = range_const((uint64_t)x, BITS), b = range_const((uint64_t)y, BITS);
                                struct range r = apply(ops[o], &a, &b);

                                /* The least value divided by -1 is not represented; it wraps. */
                                if (ops[o] != ALU_SDIV || x != SIZE / 2 || y != SIZE - 1)
                                        assert_int_equal(set_of(&r), UINT32_C(1) << oracle_alu(ops[o], x, y, BITS));
                        }
}

static void test_shifts(void **state)
{
        for (unsigned least = 0; least < BITS; least++)
                for (unsigned most = least; most < BITS; most++)
                        for (size_t i = 0; i < n_all; i++) {
                                struct range shl = range_shl(&all[i], least, most, BITS);
                                struct range shr = range_shr(&all[i], least, most, BITS);
                                struct range sar = range_sar(&all[i], least, most, BITS);

                                for (int x = 0; x < SIZE; x++)
                                        for (int n = (int)least; (sets[i] >> x & 1) && n <= (int)most; n++) {
                                                assert_true(range_contains(&shl,
                                                                           (uint64_t)oracle_alu(ALU_LSH, x, n, BITS),
                                                                           BITS));
                                                assert_true(range_contains(&shr,
                                                                           (uint64_t)oracle_alu(ALU_RSH, x, n, BITS),
                                                                           BITS));
                                                assert_true(range_contains(&sar,
                                                                           (uint64_t)oracle_alu(ALU_ARSH, x, n, BITS),
                                                                           BITS));
                                        }
                        }
}

/* Narrowing one reading by the other keeps every word, finds out emptiness, and leaves bounds that words reach, except
 * where the words are apart in both readings. */
static void test_agree(void **state)
{
        for (size_t i = 0; i < n_single; i += 2)
                for (size_t j = 1; j < n_single; j += 2) {
                        struct range r = all[i];
                        uint32_t exact = sets[i] & sets[j];
                        bool some = range_meet(&r, &all[j]) && range_agree(&r, BITS);

                        assert_int_equal(some, exact != 0);
                        if (!some)
                                continue;
                        assert_int_equal(set_of(&r), exact);
                        assert_true(range_contains(&r, r.umin, BITS) && range_contains(&r, r.umax, BITS));
                }
}

static void test_lattice(void **state)
{
        for (size_t i = 0; i < n_all; i++)
                for (size_t j = 0; j < n_all; j++) {
                        struct range r = range_join(&all[i], &all[j]);

                        assert_int_equal((sets[i] | sets[j]) & ~set_of(&r), 0);
                        if (range_includes(&all[i], &all[j]))
                                assert_int_equal(sets[j] & ~sets[i], 0);
                        assert_true(range_includes(&r, &all[i]) && range_includes(&r, &all[j]));
                }
}

static void test_truncate(void **state)
{
        for (size_t i = 0; i < n_all; i++)
                for (unsigned bits = 1; bits < BITS; bits++) {
                        struct range low = range_truncate(&all[i], bits);

                        for (unsigned x = 0; x < SIZE; x++)
                                if (sets[i] >> x & 1)
                                        assert_true(range_contains(&low, x & width_mask(bits), bits));
                }
}

/* Bounds of the low three bits move those of the word to the nearest that has such low bits. */
static void test_narrow_by_low(void **state)
{
        for (size_t i = 0; i < n_all; i++)
                for (unsigned first = 0; first < 8; first++)
                        for (unsigned last = first; last < 8; last++) {
                                const struct range lows[] = {range_of_unsigned(first, last, 3),
                                                             range_of_signed((int)first - 4, (int)last - 4, 3)};

                                for (size_t k = 0; k < ARRAY_SIZE(lows); k++) {
                                        struct range r = all[i];
                                        uint32_t exact = 0;

                                        for (unsigned x = 0; x < SIZE; x++)
                                                if ((sets[i] >> x & 1) && range_contains(&lows[k], x & 7, 3))
                                                        exact |= UINT32_C(1) << x;
                                        if (range_narrow_by_low(&r, &lows[k], 3))
                                                assert_int_equal(exact & ~set_of(&r), 0);
                                        else
                                                assert_int_equal(exact, 0);
                                }
                        }
}

/* A product, a sum and a difference of 64-bit words at the edges, where the wide arithmetic inside is nearly full. */
static void test_64_bits(void **state)
{
        const struct range full = range_full(64), top = range_of_unsigned(UINT64_MAX - 1, UINT64_MAX, 64);
        const struct range least = range_const((uint64_t)INT64_MIN, 64), minus = range_const(UINT64_MAX, 64);
        struct range r;

        r = range_mul(&top, &top, 64); /* -2..-1 times itself: 1 to 4 */
        assert_true(r.umin == 1 && r.umax == 4 && r.smin == 1 && r.smax == 4);
        r = range_mul(&full, &full, 64);
        assert_true(r.umax == UINT64_MAX && r.smin == INT64_MIN && r.smax == INT64_MAX);
        r = range_sdiv(&least, &minus, 64); /* wraps to itself */
        assert_true(range_contains(&r, (uint64_t)INT64_MIN, 64));
        r = range_smod(&least, &minus, 64);
        assert_true(r.smin == 0 && r.smax == 0);
        r = range_add(&top, &top, 64);
        assert_true(r.umin == UINT64_MAX - 3 && r.umax == UINT64_MAX - 1 && r.smin == -4 && r.smax == -2);
        r = range_shl(&top, 63, 63, 64);
        assert_true(range_contains(&r, 0, 64) && range_contains(&r, UINT64_C(1) << 63, 64));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_operations),    cmocka_unit_test(test_constants), cmocka_unit_test(test_shifts),
                cmocka_unit_test(test_agree),         cmocka_unit_test(test_lattice),   cmocka_unit_test(test_truncate),
                cmocka_unit_test(test_narrow_by_low), cmocka_unit_test(test_64_bits),
        };

        return cmocka_run_group_tests_name("range", tests, enumerate, NULL);
}
