/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "bpfvm/counterexample.h"
#include "tests/bpf-generate.h"
#include "tests/unit/bpfvm/case.h"

/* Refused programs and inputs that show why. Of those that are refused for what happens when they run, 4 in 5 have to
 * have one, and it has to be found with an effort that is counted in instructions, and so is the same everywhere: far
 * less than 50 ms of it (`make bench PARTS=bpf-disjuncts` prints the times). */

#define EFFORT_STEPS 200000

static struct {
        unsigned due, found, by_kind[FAULT_KINDS][2];
} tally;

static void check(const struct program *program, const char *profile, uint64_t seed, const char *name)
{
        _cleanup_counterexample_ struct counterexample *c = NULL;
        _cleanup_verdict_ struct verdict verdict = {0};
        const struct counterexample_effort effort = {.steps = EFFORT_STEPS};
        struct verifier_options options = {.profile = profile_find(profile)};
        struct fault fault = {0};
        struct err err = {0};
        int r;

        options.may_actuate = options.profile->may_actuate;
        r = verifier_check(program, &options, &verdict, &err);
        assert_true(r >= 0);
        if (r == 0 || !counterexample_is_due(verdict.fault.kind))
                return;
        tally.due++;
        tally.by_kind[verdict.fault.kind][0]++;
        r = counterexample_find(program, &options, &verdict, &effort, seed, &c, &err);
        assert_true(r >= 0);
        if (r == 0) {
                if (getenv("ASSAY_TEST_VERBOSE"))
                        print_message("%s: %s at %u not found: %s\n", name, fault_name(verdict.fault.kind),
                                      verdict.fault.slot, verdict.fault.text);
                return;
        }
        tally.found++;
        tally.by_kind[verdict.fault.kind][1]++;
        assert_int_equal(counterexample_replay(program, &options, c, &fault, &err), 0);
        assert_int_equal(fault.kind, verdict.fault.kind);
        assert_int_equal(fault.slot, verdict.fault.slot);
}

static void print_tally(const char *what)
{
        print_message("%s: %u of %u\n", what, tally.found, tally.due);
        if (!getenv("ASSAY_TEST_VERBOSE"))
                return;
        for (unsigned kind = 0; kind < FAULT_KINDS; kind++)
                if (tally.by_kind[kind][0])
                        print_message("  %s %u of %u\n", fault_name((enum fault_kind)kind), tally.by_kind[kind][1],
                                      tally.by_kind[kind][0]);
}

static void check_case(struct case_file *c)
{
        check(c->object->programs[0], "full", 1, c->path);
}

static void test_cases(void **state)
{
        memset(&tally, 0, sizeof(tally));
        case_each("bpf-verify", 50, check_case);
        case_each("bpf/fault", 50, check_case);
        print_tally("cases");
        assert_true(tally.found * 10 >= tally.due * 8);
}

static void test_generated(void **state)
{
        const struct generate_options options = {.statements = 8,
                                                 .context_size = 16,
                                                 .uses_maps = true,
                                                 .uses_calls = true,
                                                 .uses_loops = true,
                                                 .is_unaligned = true,
                                                 .risk_percent = 4};
        struct generate *g = calloc(1, sizeof(*g));

        memset(&tally, 0, sizeof(tally));
        for (uint64_t seed = 0; seed < 1500; seed++) {
                _cleanup_object_ struct object *object = NULL;
                struct fault fault = {0};
                struct rng rng;
                char name[32];

                rng_seed_stream(&rng, 50, seed);
                generate_program(g, &rng, &options);
                assert_int_equal(object_of_slots(span_of(g->slots, 8 * g->n), "generated", generate_maps,
                                                 ARRAY_SIZE(generate_maps), &object, &fault, NULL),
                                 0);
                context_flat(&object->programs[0]->context, 16, true);
                snprintf(name, sizeof(name), "program %lu", seed);
                check(object->programs[0], "full", seed, name);
        }
        free(g);
        print_tally("generated");
        assert_true(tally.due > 100);
        assert_true(tally.found * 10 >= tally.due * 8);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cases),
                cmocka_unit_test(test_generated),
        };

        return cmocka_run_group_tests_name("counterexample", tests, NULL, NULL);
}
