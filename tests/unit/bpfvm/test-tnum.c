/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "bpfvm/tnum.h"
#include "domain-oracle.h"

#define BITS 5
#define SIZE (1 << BITS)

/* All tristate numbers of BITS bits, and for each the set of its values. */
static struct tnum all[243];
static uint32_t sets[243];
static size_t n_all;

static uint32_t set_of(struct tnum t)
{
        uint32_t set = 0;

        for (unsigned x = 0; x < SIZE; x++)
                set |= (uint32_t)tnum_contains(t, x) << x;
        return set;
}

static int enumerate(void **state)
{
        for (uint64_t value = 0; value < SIZE; value++)
                for (uint64_t mask = 0; mask < SIZE; mask++)
                        if ((value & mask) == 0)
                                all[n_all++] = (struct tnum){value, mask};
        for (size_t i = 0; i < n_all; i++)
                sets[i] = set_of(all[i]);
        return n_all == ARRAY_SIZE(all) ? 0 : -1;
}

static struct tnum apply(enum alu_op op, struct tnum a, struct tnum b)
{
        switch (op) {
        case ALU_ADD:
                return tnum_add(a, b);
        case ALU_SUB:
                return tnum_sub(a, b);
        case ALU_MUL:
                return tnum_mul(a, b);
        case ALU_AND:
                return tnum_and(a, b);
        case ALU_OR:
                return tnum_or(a, b);
        default:
                return tnum_xor(a, b);
        }
}

/* The least tristate number that holds a set of values. */
static struct tnum least(uint32_t set)
{
        struct tnum t = tnum_const((uint64_t)__builtin_ctz(set));

        for (unsigned x = 0; x < SIZE; x++)
                if (set >> x & 1)
                        t = tnum_join(t, tnum_const(x));
        return t;
}

static uint32_t image(enum alu_op op, uint32_t a, uint32_t b)
{
        uint32_t set = 0;

        for (int x = 0; x < SIZE; x++)
                for (int y = 0; y < SIZE; y++)
                        if ((a >> x & 1) && (b >> y & 1))
                                set |= UINT32_C(1) << oracle_alu(op, x, y, BITS);
        return set;
}

/* Sound for every pair; all but multiplication are also the best that a tristate number can say. */
static void test_operations(void **state)
{
        const enum alu_op ops[] = {ALU_ADD, ALU_SUB, ALU_MUL, ALU_AND, ALU_OR, ALU_XOR};

        for (size_t o = 0; o < ARRAY_SIZE(ops); o++)
                for (size_t i = 0; i < n_all; i++)
                        for (size_t j = 0; j < n_all; j++) {
                                struct tnum t = tnum_truncate(apply(ops[o], all[i], all[j]), BITS);
                                uint32_t exact = image(ops[o], sets[i], sets[j]);

                                assert_int_equal(t.value & t.mask, 0);
                                assert_int_equal(exact & ~set_of(t), 0);
                                if (ops[o] != ALU_MUL)
                                        assert_int_equal(set_of(t), set_of(least(exact)));
                        }
}

static void test_lattice(void **state)
{
        for (size_t i = 0; i < n_all; i++)
                for (size_t j = 0; j < n_all; j++) {
                        struct tnum met;

                        assert_int_equal(tnum_includes(all[i], all[j]), (sets[j] & ~sets[i]) == 0);
                        assert_int_equal(set_of(tnum_join(all[i], all[j])), set_of(least(sets[i] | sets[j])));
                        assert_int_equal(tnum_meet(all[i], all[j], &met), (sets[i] & sets[j]) != 0);
                        if (sets[i] & sets[j])
                                assert_int_equal(set_of(met), sets[i] & sets[j]);
                }
}

static void test_shifts(void **state)
{
        for (size_t i = 0; i < n_all; i++)
                for (unsigned n = 0; n < BITS; n++) {
                        uint32_t amount = UINT32_C(1) << n;

                        assert_int_equal(set_of(tnum_shl(all[i], n, BITS)), image(ALU_LSH, sets[i], amount));
                        assert_int_equal(set_of(tnum_shr(all[i], n)), image(ALU_RSH, sets[i], amount));
                        assert_int_equal(set_of(tnum_sar(all[i], n, BITS)),
                                         set_of(least(image(ALU_ARSH, sets[i], amount))));
                }
}

static void test_extend_and_truncate(void **state)
{
        for (size_t i = 0; i < n_all; i++)
                for (unsigned from = 1; from <= BITS; from++) {
                        uint32_t zero = 0, sign = 0;

                        for (int x = 0; x < SIZE; x++)
                                if (sets[i] >> x & 1) {
                                        int low = x % (1 << from);

                                        zero |= UINT32_C(1) << low;
                                        sign |= UINT32_C(1) << ((oracle_signed(low, from) + SIZE) % SIZE);
                                }
                        assert_int_equal(set_of(tnum_truncate(all[i], from)), zero);
                        assert_int_equal(set_of(tnum_truncate(tnum_extend_sign(all[i], from), BITS)),
                                         set_of(least(sign)));
                }
}

static void test_bounds(void **state)
{
        for (size_t i = 0; i < n_all; i++)
                for (int x = 0; x < SIZE; x++) {
                        uint64_t found;
                        int up = x, down = x;

                        while (up < SIZE && !(sets[i] >> up & 1))
                                up++;
                        while (down >= 0 && !(sets[i] >> down & 1))
                                down--;
                        assert_int_equal(tnum_at_least(all[i], (uint64_t)x, &found), up < SIZE);
                        if (up < SIZE)
                                assert_int_equal(found, up);
                        assert_int_equal(tnum_at_most(all[i], (uint64_t)x, &found), down >= 0);
                        if (down >= 0)
                                assert_int_equal(found, down);
                }
}

static void test_of_range(void **state)
{
        for (unsigned min = 0; min < SIZE; min++)
                for (unsigned max = min; max < SIZE; max++) {
                        uint32_t set = (uint32_t)((UINT64_C(2) << max) - (UINT64_C(1) << min));

                        assert_int_equal(set_of(tnum_of_range(min, max)), set_of(least(set)));
                }
        assert_int_equal(tnum_of_range(0, UINT64_MAX).mask, UINT64_MAX);
}

static void test_swap(void **state)
{
        struct tnum t = tnum_swap((struct tnum){.value = 0x12345670, .mask = 0xf}, 8, 4);

        assert_int_equal(tnum_swap(tnum_const(7), 2, 2).value, 13);
        assert_int_equal(t.value, 0x70563412);
        assert_int_equal(t.mask, 0x0f000000);
        assert_int_equal(tnum_swap(tnum_const(0xaabbccddeeff0011), 8, 2).value, 0x1100);
        assert_int_equal(tnum_swap(tnum_const(0xaabbccddeeff0011), 8, 8).value, 0x1100ffeeddccbbaa);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_operations),
                cmocka_unit_test(test_lattice),
                cmocka_unit_test(test_shifts),
                cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_extend_and_truncate),
                cmocka_unit_test(test_of_range),
                cmocka_unit_test(test_swap),
        };

        return cmocka_run_group_tests_name("tnum", tests, enumerate, NULL);
}
