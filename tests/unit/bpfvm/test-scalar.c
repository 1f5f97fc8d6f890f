/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/macro.h"
#include "base/rng.h"
#include "bpfvm/scalar.h"
#include "domain-oracle.h"

/* The whole product by exhaustion: words of 4 bits with halves of 2. Every scalar that narrowing can leave is kept
 * once; with the argument "whole" every pair of them goes through every operation, otherwise every 29th. */
#define WORD 4
#define HALF 2
#define SIZE (1 << WORD)

static struct scalar *all;
static uint16_t *sets;
static size_t n_all;
static size_t stride = 97, first_pair;

/* Words in each interval and in each tristate number, so that the set of a scalar is a meeting of five of them. */
static uint16_t unsigned_sets[SIZE][SIZE], signed_sets[SIZE][SIZE], tnum_sets[SIZE][SIZE];
static uint16_t low_unsigned_sets[4][4], low_signed_sets[4][4];

static uint16_t set_of(const struct scalar *s)
{
        return tnum_sets[s->tnum.value][s->tnum.mask] & unsigned_sets[s->word.umin][s->word.umax] &
               signed_sets[s->word.smin + 8][s->word.smax + 8] & low_unsigned_sets[s->half.umin][s->half.umax] &
               low_signed_sets[s->half.smin + 2][s->half.smax + 2];
}

static void fill_sets(void)
{
        for (int first = 0; first < SIZE; first++)
                for (int last = 0; last < SIZE; last++)
                        for (int x = 0; x < SIZE; x++) {
                                int s = oracle_signed(x, WORD) + 8, low = x % 4, slow = oracle_signed(low, HALF) + 2;
                                unsigned bit = 1U << x;

                                unsigned_sets[first][last] |= first <= x && x <= last ? bit : 0;
                                signed_sets[first][last] |= first <= s && s <= last ? bit : 0;
                                tnum_sets[first][last] |= (x & ~last) == first ? bit : 0;
                                if (first >= 4 || last >= 4)
                                        continue;
                                low_unsigned_sets[first][last] |= first <= low && low <= last ? bit : 0;
                                low_signed_sets[first][last] |= first <= slow && slow <= last ? bit : 0;
                        }
}

/* A set of scalars by hash, to keep each once. */
#define BUCKETS 65536
static uint32_t buckets[BUCKETS];

static void add(const struct scalar *s)
{
        const uint64_t *words = (const uint64_t *)s;
        uint64_t hash = 0;

        for (size_t i = 0; i < sizeof(*s) / sizeof(*words); i++)
                hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        for (hash >>= 48; buckets[hash]; hash = (hash + 1) % BUCKETS)
                if (scalar_equal(&all[buckets[hash] - 1], s))
                        return;
        assert_true(n_all < BUCKETS / 2);
        all[n_all] = *s;
        sets[n_all] = set_of(s);
        buckets[hash] = (uint32_t)++n_all;
}

/* Narrows one combination of parts; it may not lose a word, and may call it empty only if it is. */
static void reduce_and_add(struct tnum t, struct range word, int half)
{
        struct scalar s = {.tnum = t, .word = word};
        uint16_t before;

        s.half = (struct range){.umin = (uint64_t)half & 3,
                                .umax = (uint64_t)half >> 2 & 3,
                                .smin = (half >> 4 & 3) - 2,
                                .smax = (half >> 6 & 3) - 2};
        if (s.half.umin > s.half.umax || s.half.smin > s.half.smax)
                return;
        before = set_of(&s);
        if (!scalar_reduce_at(&s, WORD)) {
                assert_int_equal(before, 0);
                return;
        }
        assert_int_equal(set_of(&s), before);
        add(&s);
}

static void add_with_word(struct range word)
{
        for (uint64_t value = 0; value < SIZE; value++)
                for (uint64_t mask = 0; mask < SIZE; mask++)
                        for (int half = 0; (value & mask) == 0 && half < 256; half++)
                                reduce_and_add((struct tnum){value, mask}, word, half);
}

static int enumerate(void **state)
{
        all = calloc(BUCKETS, sizeof(*all));
        sets = calloc(BUCKETS, sizeof(*sets));
        if (!all || !sets)
                return -1;
        fill_sets();
        for (uint64_t umin = 0; umin < SIZE; umin++)
                for (uint64_t umax = umin; umax < SIZE; umax++)
                        for (int64_t smin = -8; smin < 8; smin++)
                                for (int64_t smax = smin; smax < 8; smax++) {
                                        struct range word = {umin, umax, smin, smax};

                                        /* What the readings do to each other is test-range's; here, once each. */
                                        if (range_agree(&word, WORD) && word.umin == umin && word.umax == umax &&
                                            word.smin == smin && word.smax == smax)
                                                add_with_word(word);
                                }
        return 0;
}

static int release(void **state)
{
        free(all);
        free(sets);
        return 0;
}

static uint16_t images[SIZE][1 << SIZE];

static uint16_t image(uint16_t a, uint16_t b)
{
        uint16_t set = 0;

        for (unsigned rest = a; rest; rest &= rest - 1)
                set |= images[__builtin_ctz(rest)][b];
        return set;
}

static void fill_images(enum alu_op op, bool low)
{
        for (int x = 0; x < SIZE; x++)
                for (unsigned set = 1; set < 1U << SIZE; set++) {
                        int y = __builtin_ctz(set), r;

                        r = low ? oracle_alu(op, x % 4, y % 4, HALF) : oracle_alu(op, x, y, WORD);
                        images[x][set] = images[x][set & (set - 1)] | (uint16_t)(1U << r);
                }
}

static void check_alu(enum alu_op op, bool low)
{
        fill_images(op, low);
        for (size_t pair = first_pair; pair < n_all * n_all; pair += stride) {
                size_t i = pair / n_all, j = pair % n_all;
                struct scalar s = all[i];
                uint16_t exact = image(sets[i], sets[j]), got;

                scalar_alu_at(&s, op, &all[j], low, WORD);
                got = set_of(&s);
                if (exact & ~got)
                        fail_msg("operation %d%s of scalars %zu and %zu: %04x has words outside %04x", op,
                                 low ? " on halves" : "", i, j, exact, got);
                if ((sets[i] & (sets[i] - 1)) == 0 && (sets[j] & (sets[j] - 1)) == 0)
                        assert_int_equal(got, exact);
        }
}

static void test_alu(void **state)
{
        for (size_t o = 0; o < ARRAY_SIZE(oracle_ops); o++) {
                check_alu(oracle_ops[o], false);
                check_alu(oracle_ops[o], true);
        }
}

static void check_refine(enum branch_op op, bool taken, bool low)
{
        uint16_t partners[SIZE] = {0};

        for (int x = 0; x < SIZE; x++)
                for (int y = 0; y < SIZE; y++)
                        if (oracle_branch(op, low ? x % 4 : x, low ? y % 4 : y, low ? HALF : WORD) == taken)
                                partners[x] |= (uint16_t)(1U << y);
        for (size_t pair = first_pair; pair < n_all * n_all; pair += stride) {
                size_t i = pair / n_all, j = pair % n_all;
                struct scalar a = all[i], b = all[j];
                uint16_t left = 0, right = 0;
                bool possible = scalar_refine_at(&a, &b, op, taken, low, WORD);

                for (unsigned rest = sets[i]; rest; rest &= rest - 1) {
                        uint16_t with = partners[__builtin_ctz(rest)] & sets[j];

                        left |= with ? (uint16_t)(rest & -rest) : 0;
                        right |= with;
                }
                if (possible ? (left & ~set_of(&a)) || (right & ~set_of(&b)) : left != 0)
                        fail_msg("branch %d %s%s of scalars %zu and %zu loses words", op, taken ? "taken" : "passed",
                                 low ? " on halves" : "", i, j);
                if (possible && ((set_of(&a) & ~sets[i]) || (set_of(&b) & ~sets[j])))
                        fail_msg("branch %d of scalars %zu and %zu adds words", op, i, j);
        }
}

static void test_refine(void **state)
{
        for (int op = 0; op < BRANCH_OPS; op++)
                for (int way = 0; way < 4; way++)
                        check_refine((enum branch_op)op, way & 1, way & 2);
}

static void test_lattice(void **state)
{
        for (size_t pair = first_pair; pair < n_all * n_all; pair += stride) {
                size_t i = pair / n_all, j = pair % n_all;
                struct scalar joined = all[i], met = all[i];

                scalar_join_at(&joined, &all[j], WORD);
                assert_int_equal((sets[i] | sets[j]) & ~set_of(&joined), 0);
                assert_true(scalar_includes(&joined, &all[i]));
                assert_true(scalar_includes(&joined, &all[j]));
                if (scalar_includes(&all[i], &all[j]))
                        assert_int_equal(sets[j] & ~sets[i], 0);
                if (scalar_meet_at(&met, &all[j], WORD))
                        assert_int_equal(set_of(&met), sets[i] & sets[j]);
                else
                        assert_int_equal(sets[i] & sets[j], 0);
        }
}

static void check_extend(size_t i, unsigned from)
{
        struct scalar zero = all[i], sign = all[i], low = all[i];
        uint16_t zeros = 0, signs = 0, lows = 0;

        for (int x = 0; x < SIZE; x++)
                if (sets[i] >> x & 1) {
                        int s = oracle_signed(x % (1 << from), from);

                        zeros |= (uint16_t)(1U << x % (1 << from));
                        signs |= (uint16_t)(1U << (s + SIZE) % SIZE);
                        lows |= (uint16_t)(1U << (s + SIZE) % 4);
                }
        scalar_zero_extend_at(&zero, from, WORD);
        scalar_sign_extend_at(&sign, from, false, WORD);
        assert_int_equal(zeros & ~set_of(&zero), 0);
        assert_int_equal(signs & ~set_of(&sign), 0);
        if (from > HALF)
                return;
        scalar_sign_extend_at(&low, from, true, WORD);
        assert_int_equal(lows & ~set_of(&low), 0);
}

static void test_extend(void **state)
{
        for (size_t i = 0; i < n_all; i++)
                for (unsigned from = 1; from < WORD; from++)
                        check_extend(i, from);
}

static void test_swap(void **state)
{
        for (size_t i = 0; i < n_all; i++)
                for (unsigned n = 1; n <= WORD; n++) {
                        struct scalar s = all[i];
                        uint16_t exact = 0;

                        for (unsigned x = 0; x < SIZE; x++) {
                                unsigned swapped = 0;

                                for (unsigned bit = 0; bit < n; bit++)
                                        swapped |= (x >> bit & 1) << (n - 1 - bit);
                                exact |= sets[i] >> x & 1 ? (uint16_t)(1U << swapped) : 0;
                        }
                        scalar_swap_at(&s, 1, n, WORD);
                        assert_int_equal(exact & ~set_of(&s), 0);
                }
}

/* The word's width of real programs: a random scalar that holds a known word still does after each operation. */
static struct scalar scalar_around(struct rng *rng, uint64_t word)
{
        struct scalar s = scalar_const(word);

        for (uint64_t n = rng_below(rng, 4); n > 0; n--) {
                uint64_t near = word + rng_below(rng, 64) - 32, far = rng_next(rng) >> rng_below(rng, 64);
                struct scalar other = scalar_const(rng_below(rng, 2) ? near : far);

                scalar_join(&s, &other);
        }
        return s;
}

static uint64_t edge_word(struct rng *rng)
{
        const uint64_t edges[] = {0,          1,         UINT64_MAX,          (uint64_t)INT64_MIN, INT64_MAX,
                                  UINT32_MAX, INT32_MAX, (uint64_t)INT32_MIN, UINT64_C(1) << 32};

        return rng_below(rng, 3) ? rng_next(rng) >> rng_below(rng, 64) : edges[rng_below(rng, ARRAY_SIZE(edges))];
}

static void test_64_bits(void **state)
{
        struct rng rng;

        rng_seed(&rng, 4);
        for (unsigned i = 0; i < 200000; i++) {
                uint64_t x = edge_word(&rng), y = edge_word(&rng);
                struct scalar a = scalar_around(&rng, x), b = scalar_around(&rng, y), r = a;
                enum alu_op op = oracle_ops[rng_below(&rng, ARRAY_SIZE(oracle_ops))];
                enum branch_op branch = (enum branch_op)rng_below(&rng, BRANCH_OPS);
                bool low = rng_below(&rng, 2);
                unsigned bits = low ? 32 : 64;
                uint64_t lx = x & width_mask(bits), ly = y & width_mask(bits);

                assert_true(scalar_contains(&a, x) && scalar_contains(&b, y));
                scalar_alu(&r, op, &b, low);
                assert_true(scalar_contains(&r, scalar_compute(op, lx, ly, bits)));
                assert_true(scalar_refine(&a, &b, branch, scalar_holds(branch, lx, ly, bits), low));
                assert_true(scalar_contains(&a, x) && scalar_contains(&b, y));
                scalar_swap(&r, 4);
                scalar_sign_extend(&a, 16, low);
                assert_true(scalar_contains(&a, (uint64_t)(int16_t)x & width_mask(bits)));
                scalar_zero_extend(&b, 32);
                assert_true(scalar_contains(&b, y & UINT32_MAX));
        }
}

/* What one part learns reaches the others. */
static void test_precision(void **state)
{
        struct scalar a = scalar_unknown(), b = scalar_const(0xfff), zero = scalar_const(0);

        scalar_alu(&a, ALU_AND, &b, false);
        assert_int_equal(a.word.umax, 0xfff);
        assert_int_equal(a.word.smin, 0);
        assert_int_equal(a.half.umax, 0xfff);
        b = scalar_const(8);
        scalar_alu(&a, ALU_MUL, &b, false);
        assert_int_equal(a.tnum.mask & 7, 0);
        b = scalar_const(12);
        assert_true(scalar_refine(&a, &b, BRANCH_LT, true, false)); /* a multiple of 8 below 12 */
        assert_int_equal(a.word.umax, 8);
        assert_true(scalar_refine(&a, &zero, BRANCH_NE, true, false));
        assert_true(scalar_is_const(&a));

        a = scalar_unknown();
        scalar_sign_extend(&a, 32, false);
        b = scalar_const((uint64_t)-5);
        assert_true(scalar_refine(&a, &b, BRANCH_SGE, true, true)); /* compared as 32 bits */
        assert_true(scalar_refine(&a, &zero, BRANCH_SLT, true, true));
        assert_int_equal(a.word.smin, -5);
        assert_int_equal(a.word.smax, -1);
}

/* The concrete operations that constants are folded by, against the oracle. */
static void test_compute(void **state)
{
        for (int x = 0; x < SIZE; x++)
                for (int y = 0; y < SIZE; y++) {
                        for (size_t o = 0; o < ARRAY_SIZE(oracle_ops); o++)
                                assert_int_equal(scalar_compute(oracle_ops[o], (uint64_t)x, (uint64_t)y, WORD),
                                                 oracle_alu(oracle_ops[o], x, y, WORD));
                        for (int op = 0; op < BRANCH_OPS; op++)
                                assert_int_equal(scalar_holds((enum branch_op)op, (uint64_t)x, (uint64_t)y, WORD),
                                                 oracle_branch((enum branch_op)op, x, y, WORD));
                }
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_compute), cmocka_unit_test(test_alu),       cmocka_unit_test(test_refine),
                cmocka_unit_test(test_lattice), cmocka_unit_test(test_extend),    cmocka_unit_test(test_swap),
                cmocka_unit_test(test_64_bits), cmocka_unit_test(test_precision),
        };

        if (argc == 3) {
                stride = (size_t)atoi(argv[1]);
                first_pair = (size_t)atoi(argv[2]);
        }
        return cmocka_run_group_tests_name("scalar", tests, enumerate, release);
}
