/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "base/macro.h"
#include "base/rng.h"
#include "bpfvm/audit-number.h"
#include "bpfvm/eval.h"

/* The auditor's arithmetic against concrete evaluation (it may lose no word) and against the verifier's: what it makes
 * of operands has to lie within what the verifier makes of them, or the auditor would refuse what the verifier accepts.
 */

static uint64_t draw_word(struct rng *rng)
{
        static const uint64_t edges[] = {0,
                                         1,
                                         2,
                                         7,
                                         8,
                                         UINT64_MAX,
                                         (uint64_t)INT64_MIN,
                                         INT64_MAX,
                                         UINT32_MAX,
                                         INT32_MAX,
                                         (uint64_t)INT32_MIN,
                                         UINT64_C(1) << 32,
                                         UINT64_C(1) << 31,
                                         0xff,
                                         0x100};

        return rng_below(rng, 3) ? rng_next(rng) >> rng_below(rng, 64) : edges[rng_below(rng, ARRAY_SIZE(edges))];
}

/* A scalar that holds @word, and @word's neighbours or others, narrowed by what a branch on some of them says. */
static struct scalar draw_scalar(struct rng *rng, uint64_t word)
{
        struct scalar s = scalar_const(word), other;

        for (uint64_t n = rng_below(rng, 4); n > 0; n--) {
                other = scalar_const(rng_below(rng, 2) ? word + rng_below(rng, 64) - 32 : draw_word(rng));
                scalar_join(&s, &other);
        }
        if (rng_below(rng, 4) == 0)
                s = scalar_unknown();
        for (uint64_t n = rng_below(rng, 3); n > 0; n--) {
                enum branch_op op = (enum branch_op)rng_below(rng, BRANCH_OPS);
                uint8_t size = rng_below(rng, 2) ? 4 : 8;
                uint64_t bound = draw_word(rng);

                other = scalar_const(bound);
                assert_true(scalar_refine(&s, &other, op, eval_branch(op, size, word, bound), size == 4));
        }
        return s;
}

static bool contains(const struct audit_number *n, uint64_t word)
{
        struct scalar one = scalar_const(word);
        struct audit_number narrowed = *n, exact;

        /* There is no membership test in the auditor: equality with a word has to remain possible. */
        assert_true(audit_number_of(&one, &exact));
        return audit_number_branch(BRANCH_EQ, 8, true, &narrowed, &exact);
}

static struct audit_number draw_number(struct rng *rng, uint64_t word, struct scalar *ret_scalar)
{
        struct audit_number n;

        *ret_scalar = draw_scalar(rng, word);
        assert_true(audit_number_of(ret_scalar, &n));
        assert_true(contains(&n, word));
        assert_true(audit_number_within(&n, ret_scalar));
        return n;
}

static void test_alu(void **state)
{
        struct rng rng;

        rng_seed(&rng, 11);
        for (unsigned i = 0; i < 150000; i++) {
                uint64_t x = draw_word(&rng), y = draw_word(&rng);
                struct scalar sx, sy;
                struct audit_number a = draw_number(&rng, x, &sx), b = draw_number(&rng, y, &sy), r;
                enum alu_op op = (enum alu_op)rng_below(&rng, ALU_OPS);
                uint8_t size = rng_below(&rng, 2) ? 4 : 8;

                if (op == ALU_MOVSX)
                        continue;
                r = audit_number_alu(op, &a, &b, size);
                scalar_alu(&sx, op, &sy, size == 4);
                if (!contains(&r, eval_alu(op, size, 0, x, y)))
                        fail_msg("draw %u: operation %d in %u bytes of 0x%lx and 0x%lx loses its result", i, op, size,
                                 x, y);
                if (!audit_number_within(&r, &sx))
                        fail_msg("draw %u: operation %d in %u bytes is less precise than the verifier's", i, op, size);
        }
}

static void test_extend_and_swap(void **state)
{
        static const uint8_t sizes[] = {1, 2, 4, 8};
        struct rng rng;

        rng_seed(&rng, 12);
        for (unsigned i = 0; i < 100000; i++) {
                uint64_t x = draw_word(&rng);
                struct scalar sx, zero, sign, swapped;
                struct audit_number a = draw_number(&rng, x, &sx), r;
                unsigned from = sizes[rng_below(&rng, 4)], size = from < 4 && rng_below(&rng, 2) ? 4 : 8;

                zero = sign = swapped = sx;
                scalar_zero_extend(&zero, 8 * from);
                r = audit_number_extend(&a, from, false, 8);
                assert_true(contains(&r, eval_extend(x, (uint8_t)from, false)) && audit_number_within(&r, &zero));
                scalar_sign_extend(&sign, 8 * from, size == 4);
                r = audit_number_extend(&a, from, true, size);
                assert_true(contains(&r, eval_alu(ALU_MOVSX, (uint8_t)size, (uint8_t)from, 0, x)));
                assert_true(audit_number_within(&r, &sign));
                if (from == 1)
                        continue;
                scalar_swap(&swapped, from);
                r = audit_number_swap(&a, from);
                assert_true(contains(&r, eval_swap(SWAP_ALWAYS, (uint8_t)from, x)));
                assert_true(audit_number_within(&r, &swapped));
        }
}

static void test_branch(void **state)
{
        struct rng rng;

        rng_seed(&rng, 13);
        for (unsigned i = 0; i < 150000; i++) {
                uint64_t x = draw_word(&rng), y = rng_below(&rng, 3) ? draw_word(&rng) : x + rng_below(&rng, 5) - 2;
                struct scalar sx, sy;
                struct audit_number a = draw_number(&rng, x, &sx), b = draw_number(&rng, y, &sy);
                enum branch_op op = (enum branch_op)rng_below(&rng, BRANCH_OPS);
                uint8_t size = rng_below(&rng, 2) ? 4 : 8;
                bool taken = eval_branch(op, size, x, y);

                if (!audit_number_branch(op, size, taken, &a, &b) || !contains(&a, x) || !contains(&b, y))
                        fail_msg("draw %u: branch %d in %u bytes of 0x%lx and 0x%lx loses them", i, op, size, x, y);
                assert_true(scalar_refine(&sx, &sy, op, taken, size == 4));
                if (!audit_number_within(&a, &sx) || !audit_number_within(&b, &sy))
                        fail_msg("draw %u: branch %d in %u bytes is less precise than the verifier's", i, op, size);
                /* What the verifier finds impossible, the auditor does too. */
                assert_true(audit_number_of(&sx, &a) && audit_number_of(&sy, &b));
                if (!scalar_refine(&sx, &sy, op, !taken, size == 4))
                        assert_false(audit_number_branch(op, size, !taken, &a, &b));
        }
}

/* Claims that no number meets, and claims beyond the width, are no numbers. */
static void test_wrong_claims(void **state)
{
        struct scalar s = scalar_const(5);
        struct audit_number n;

        s.word.umin = 6;
        assert_false(audit_number_of(&s, &n));
        s = scalar_const(5);
        s.tnum.mask = 1;
        assert_false(audit_number_of(&s, &n));
        s = scalar_unknown();
        s.half.umin = UINT64_C(1) << 40;
        assert_false(audit_number_of(&s, &n));
        s = scalar_unknown();
        s.word.smax = -1;
        s.half.umax = 3;
        s.tnum.mask &= ~(UINT64_C(1) << 63);
        assert_false(audit_number_of(&s, &n));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_alu),
                cmocka_unit_test(test_extend_and_swap),
                cmocka_unit_test(test_branch),
                cmocka_unit_test(test_wrong_claims),
        };

        return cmocka_run_group_tests_name("audit-number", tests, NULL, NULL);
}
