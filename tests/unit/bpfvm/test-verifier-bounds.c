/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "base/text.h"
#include "bpfvm/admission.h"
#include "bpfvm/isa.h"
#include "bpfvm/verifier.h"
#include "tests/unit/bpfvm/made.h"

/* The work that a check takes, against the bounds that are known before; what it says of stack and cost, against sums
 * made by hand; and the limits. */

static int check(const char *text, const struct verifier_options *options, struct verdict *ret)
{
        _cleanup_object_ struct object *object = made_of(text, NULL, 0);
        struct err err = {0};
        int r;

        context_flat(&object->programs[0]->context, 64, true);
        r = verifier_check(object->programs[0], options, ret, &err);
        if (r < 0)
                fail_msg("%s", err.text);
        assert_true(ret->transfers <= ret->transfers_bound);
        assert_true(ret->comparisons <= ret->comparisons_bound);
        return r;
}

/* @n diamonds in a row, each on bit i mod 31 of a word of the context, conditionally adding 2^(i mod 31) to r0: without
 * joins 2^n states. */
static char *diamonds(unsigned n)
{
        struct text text = {0};

        text_add(&text, "r2 = *(u32 *)(r1 + 0)\nr0 = 0\n");
        for (unsigned i = 0; i < n; i++)
                text_addf(&text, "r3 = r2\nr3 &= %u\nif r3 == 0 goto +1\nr0 += %u\n", 1u << (i % 31), 1u << (i % 31));
        text_add(&text, "exit\n");
        return text_take(&text);
}

static void test_diamonds(void **state)
{
        const unsigned sizes[] = {1, 8, 64, 512, 2048}, disjuncts[] = {1, 2, 4, 16};

        for (size_t k = 0; k < ARRAY_SIZE(disjuncts); k++)
                for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                        _cleanup_free_ char *text = diamonds(sizes[i]);
                        _cleanup_verdict_ struct verdict verdict = {0};
                        struct verifier_options options = {.profile = profile_find("embedded"),
                                                           .disjuncts = disjuncts[k]};
                        uint64_t insns = 4 * sizes[i] + 3, edges = 3 * sizes[i] + 1;

                        assert_int_equal(check(text, &options, &verdict), 0);
                        assert_int_equal(verdict.contexts, 1);
                        assert_int_equal(verdict.transfers_bound, disjuncts[k] * insns);
                        assert_int_equal(verdict.comparisons_bound, disjuncts[k] * disjuncts[k] * edges);
                        /* Nor does it do less than once through the program. */
                        assert_true(verdict.transfers >= insns);
                        if (disjuncts[k] == 1)
                                assert_int_equal(verdict.transfers, insns);
                        /* 8195 instructions in a few states' bytes. */
                        assert_true(verdict.state_bytes < disjuncts[k] * 16384);
                }
}

/* A function is gone through for each chain of calls: 1 + 2 + 4 + 8 of them. */
static void test_contexts(void **state)
{
        _cleanup_verdict_ struct verdict verdict = {0};
        struct verifier_options options = {.profile = profile_find("full"), .disjuncts = 1};

        assert_int_equal(check("call a\ncall a\nr0 = 0\nexit\n"
                               "a: call b\ncall b\nexit\n"
                               "b: call c\ncall c\nexit\n"
                               "c: r0 = 1\nexit\n",
                               &options, &verdict),
                         0);
        assert_int_equal(verdict.contexts, 15);
        assert_int_equal(verdict.transfers_bound, 4 + 2 * 3 + 4 * 3 + 8 * 2);
        assert_int_equal(verdict.transfers, verdict.transfers_bound);
}

/* Loops: more passes, but no more than is known before. */
static void test_loops(void **state)
{
        _cleanup_text_ struct text text = {0};
        _cleanup_verdict_ struct verdict verdict = {0};
        struct verifier_options options = {.profile = profile_find("full")};

        text_add(&text, "r0 = 0\n");
        for (unsigned depth = 0; depth < 6; depth++)
                text_addf(&text, "*(u64 *)(r10 - %u) = 0\nl%u: r0 += 1\n", 8 * depth + 8, depth);
        for (unsigned depth = 6; depth-- > 0;)
                text_addf(&text, "r1 = *(u64 *)(r10 - %u)\nr1 += 1\n*(u64 *)(r10 - %u) = r1\nif r1 < 3 goto l%u\n",
                          8 * depth + 8, 8 * depth + 8, depth);
        text_add(&text, "exit\n");
        assert_int_equal(check(text.data, &options, &verdict), 0);
}

static void test_limits(void **state)
{
        _cleanup_free_ char *text = diamonds(30);
        _cleanup_text_ struct text nested = {0};
        struct verifier_options options = {.profile = profile_find("full"), .max_bytes = 4000};
        struct verdict verdict = {0};

        assert_int_equal(check(text, &options, &verdict), 1);
        assert_int_equal(verdict.fault.kind, FAULT_STATE_LIMIT);
        verdict_done(&verdict);

        options.max_bytes = 0;
        for (unsigned i = 0; i < 9; i++)
                text_addf(&nested, "*(u64 *)(r10 - %u) = 0\nl%u: r0 = 0\n", 8 * i + 8, i);
        for (unsigned i = 9; i-- > 0;)
                text_addf(&nested, "r1 = *(u64 *)(r10 - %u)\nr1 += 1\n*(u64 *)(r10 - %u) = r1\nif r1 < 3 goto l%u\n",
                          8 * i + 8, 8 * i + 8, i);
        text_add(&nested, "exit\n");
        assert_int_equal(check(nested.data, &options, &verdict), 1);
        assert_int_equal(verdict.fault.kind, FAULT_TERMINATION);
        assert_non_null(strstr(verdict.fault.text, "one too many"));
        verdict_done(&verdict);
}

/* r0 = 0, @n - 2 additions, exit. */
static struct object *add_chain(uint32_t n)
{
        _cleanup_free_ uint8_t *slots = calloc(n, INSN_SLOT_BYTES);
        struct object *object = NULL;
        struct fault fault;

        for (uint32_t i = 0; i < n; i++)
                isa_slot_put((struct isa_slot){.opcode = i == 0       ? 0xb7
                                                         : i == n - 1 ? 0x95
                                                                      : 0x07,
                                               .imm = i == n - 1 ? 0 : (int32_t)(i % 100)},
                             slots + (size_t)INSN_SLOT_BYTES * i);
        assert_int_equal(object_of_slots(span_of(slots, (size_t)n * INSN_SLOT_BYTES), "chain", NULL, 0, &object, &fault,
                                         NULL),
                         0);
        return object;
}

static void test_insn_limit(void **state)
{
        _cleanup_object_ struct object *most = add_chain(100000), *more = add_chain(100001);
        struct verifier_options options = {.profile = profile_find("embedded")};
        struct verdict verdict = {0};

        assert_int_equal(verifier_check(most->programs[0], &options, &verdict, NULL), 0);
        assert_int_equal(verdict.transfers, 100000);
        assert_true(verdict.state_bytes < 16384);
        verdict_done(&verdict);
        assert_int_equal(verifier_check(more->programs[0], &options, &verdict, NULL), 1);
        assert_int_equal(verdict.fault.kind, FAULT_INSN_LIMIT);
        verdict_done(&verdict);
        options.profile = profile_find("full");
        assert_int_equal(verifier_check(more->programs[0], &options, &verdict, NULL), 0);
        verdict_done(&verdict);
}

/* A table in which every class has a weight of its own, so that sums tell what was counted. */
static const struct cost_table weights = {
        .name = "weights",
        .class_ps = {[COST_ALU] = 1,
                     [COST_MULTIPLY] = 10,
                     [COST_DIVIDE] = 100,
                     [COST_LOAD] = 1000,
                     [COST_STORE] = 10000,
                     [COST_ATOMIC] = 100000,
                     [COST_JUMP] = 1000000,
                     [COST_CALL] = 10000000,
                     [COST_RETURN] = 100000000,
                     [COST_ENTRY] = 1000000000},
};

static void check_cost(const char *text, uint64_t want_ps, const uint32_t *way, size_t n_way)
{
        _cleanup_verdict_ struct verdict verdict = {0};
        struct verifier_options options = {.profile = profile_find("full"), .costs = &weights, .wants_costliest = true};

        assert_int_equal(check(text, &options, &verdict), 0);
        if (verdict.cost_ps != want_ps)
                fail_msg("costs %lu, expected %lu:\n%s", verdict.cost_ps, want_ps, text);
        assert_int_equal(verdict.n_costliest, n_way);
        for (size_t i = 0; i < n_way; i++)
                assert_int_equal(verdict.costliest[i].slot, way[i]);
}

static void test_cost(void **state)
{
        const uint32_t straight[] = {0}, branch[] = {0, 2, 5}, dead[] = {0, 3}, call[] = {0, 1, 2}, loop[] = {0, 2, 5};

        check_cost("r0 = *(u32 *)(r1 + 0)\nr0 *= 3\nr0 /= 7\n*(u64 *)(r10 - 8) = r0\n"
                   "lock *(u64 *)(r10 - 8) += r0\nexit\n",
                   1100000000 + 111110, straight, 1);
        /* The dearer of two ways. */
        check_cost("r0 = *(u32 *)(r1 + 0)\nif r0 == 5 goto +3\nr0 *= 3\nr0 *= 3\ngoto +1\nr0 /= 7\nexit\n",
                   1100000000 + 1000 + 1000000 + 20 + 1000000, (const uint32_t[]){0, 2, 6}, 3);
        check_cost("r0 = *(u32 *)(r1 + 0)\nif r0 == 5 goto +3\nr0 *= 3\nr0 /= 3\nr0 += 1\nexit\n",
                   1100000000 + 1000 + 1000000 + 111, branch, 3);
        /* A way that no value takes does not count. */
        check_cost("r0 = 1\nif r0 == 1 goto +1\nr0 /= 7\nexit\n", 1100000000 + 1 + 1000000, dead, 2);
        /* What is called, in each call. */
        check_cost("call +2\ncall +1\nexit\nr0 = 1\nr0 *= 3\nexit\n", 1100000000 + 20000000 + 2 * (11 + 100000000),
                   call, 3);
        /* A loop: at most three jumps back, so four turns of two additions and a branch. */
        check_cost("r0 = 0\nr2 = 0\nr0 += 2\nr2 += 1\nif r2 < 4 goto -3\nexit\n", 1100000000 + 2 + 4 * (2 + 1000000),
                   loop, 3);
}

/* A loop that ends, after 10^15 turns: the sum does not fit, and is the largest there is, not what is left of it. */
static void test_cost_beyond_all_sums(void **state)
{
        _cleanup_verdict_ struct verdict verdict = {0};
        struct verifier_options options = {.profile = profile_find("full"), .costs = &weights};
        struct admission admission = admission_open(1000000);
        struct fault fault = {0};
        uint64_t charge = 0;

        assert_int_equal(
                check("r1 = -1\ncall f\nexit\nf: r0 = 0\nagain: r1 += -16385\nif r1 > 39936 goto again\nexit\n",
                      &options, &verdict),
                0);
        assert_true(verdict.cost_ps == UINT64_MAX);
        assert_int_equal(admission_charge(&admission, "f", verdict.cost_ps, 1, &charge, &fault), 1);
        assert_int_equal(fault.kind, FAULT_UTILISATION);
}

/* Frames count by the lowest byte that is accessed, in eights, and the deepest chain is what matters. */
static void test_stack(void **state)
{
        struct verifier_options options = {.profile = profile_find("full")};
        struct verdict verdict = {0};

        assert_int_equal(check("*(u8 *)(r10 - 9) = 1\ncall a\ncall b\nr0 = 0\nexit\n"
                               "a: *(u64 *)(r10 - 8) = 1\nexit\n"
                               "b: r1 = r10\nr1 += -100\n*(u8 *)(r1 + 0) = 0\nexit\n",
                               &options, &verdict),
                         0);
        assert_int_equal(verdict.stack_bytes, 16 + 104);
        verdict_done(&verdict);
        assert_int_equal(check("r0 = 0\nexit\n", &options, &verdict), 0);
        assert_int_equal(verdict.stack_bytes, 0);
        verdict_done(&verdict);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_diamonds),   cmocka_unit_test(test_contexts),
                cmocka_unit_test(test_loops),      cmocka_unit_test(test_limits),
                cmocka_unit_test(test_cost),       cmocka_unit_test(test_stack),
                cmocka_unit_test(test_insn_limit), cmocka_unit_test(test_cost_beyond_all_sums),
        };

        return cmocka_run_group_tests_name("verifier-bounds", tests, NULL, NULL);
}
