/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "bpfvm/disasm.h"
#include "bpfvm/interp.h"
#include "tests/bpf-claim.h"
#include "tests/bpf-generate.h"

/* Accepted programs from the generator run in the checking interpreter on random memory: it may not fault, what the
 * verifier claims of each instruction has to be true there, and the work has to lie within its bounds. */

static struct {
        unsigned programs, accepted, kinds[FAULT_KINDS];
} tally;

static void print_program(const struct program *program)
{
        char text[DISASM_SIZE];

        for (uint32_t i = 0; i < program->n_insns; i++)
                if (program->insns[i].kind != INSN_TAIL)
                        print_error("%4u: %s\n", i, disasm_insn(&program->insns[i], i, text));
}

/* Values in maps, so that lookups find some. */
static void fill_store(struct store *store, struct rng *rng)
{
        for (uint32_t key = 0; key < 6; key++) {
                uint64_t value[2] = {rng_next(rng), rng_next(rng) >> rng_below(rng, 64)};

                store_update(store, 0, &key, value, 0);
                if (rng_below(rng, 2))
                        store_update(store, 1, &key, value, 0);
        }
}

static void run_once(const struct program *program, struct claims *claims, struct rng *rng, uint64_t seed)
{
        _cleanup_store_ struct store *store = NULL;
        uint8_t context[256];
        struct oracle_options options = {.observe = claims_check, .userdata = claims};
        struct oracle_result result;
        struct fault fault = {0};
        int r;

        assert_int_equal(store_new(program->maps, program->n_maps, &store, NULL), 0);
        fill_store(store, rng);
        for (size_t i = 0; i < sizeof(context); i++)
                context[i] = rng_below(rng, 4) ? (uint8_t)rng_next(rng) : 0;
        r = oracle_run(program, store, context, &options, &result, &fault, NULL);
        if (r == 0)
                return;
        print_program(program);
        if (r == 2)
                fail_msg("program %lu, slot %u: %s", seed, claims->wrong_slot, claims->wrong);
        fail_msg("program %lu, slot %u: %s %s", seed, fault.slot, fault_name(fault.kind), fault.text);
}

static void check_program(const struct generate *g, uint64_t seed, const char *profile, unsigned disjuncts)
{
        _cleanup_object_ struct object *object = NULL;
        _cleanup_verdict_ struct verdict verdict = {0};
        _cleanup_claims_ struct claims claims = {0};
        struct verifier_options options = {.profile = profile_find(profile),
                                           .disjuncts = disjuncts,
                                           .observe = claims_add,
                                           .userdata = &claims};
        struct program *program;
        struct fault fault;
        struct err err = {0};
        struct rng rng;
        int r;

        assert_int_equal(object_of_slots(span_of(g->slots, 8 * g->n), "generated", generate_maps,
                                         ARRAY_SIZE(generate_maps), &object, &fault, &err),
                         0);
        program = object->programs[0];
        context_flat(&program->context, g->options->context_size, true);
        assert_int_equal(claims_init(&claims, program), 0);
        r = verifier_check(program, &options, &verdict, &err);
        assert_true(r >= 0);
        tally.programs++;
        tally.kinds[verdict.fault.kind]++;
        if (verdict.transfers > verdict.transfers_bound || verdict.comparisons > verdict.comparisons_bound)
                fail_msg("program %lu: %lu transfers of %lu, %lu comparisons of %lu", seed, verdict.transfers,
                         verdict.transfers_bound, verdict.comparisons, verdict.comparisons_bound);
        if (r != 0)
                return;
        tally.accepted++;
        rng_seed_stream(&rng, seed, 1);
        for (unsigned i = 0; i < 4; i++)
                run_once(program, &claims, &rng, seed);
}

static void check_many(const struct generate_options *options, const char *profile, unsigned n)
{
        struct generate *g = calloc(1, sizeof(*g));

        memset(&tally, 0, sizeof(tally));
        for (uint64_t seed = 0; seed < n; seed++) {
                struct rng rng;

                rng_seed_stream(&rng, 2026, seed);
                generate_program(g, &rng, options);
                check_program(g, seed, profile, (unsigned)(seed % 5));
        }
        free(g);
        if (getenv("ASSAY_TEST_VERBOSE")) {
                print_message("%s: %u of %u accepted\n", profile, tally.accepted, tally.programs);
                for (unsigned kind = 1; kind < FAULT_KINDS; kind++)
                        if (tally.kinds[kind])
                                print_message("  %s %u\n", fault_name((enum fault_kind)kind), tally.kinds[kind]);
        }
        assert_true(tally.accepted >= tally.programs / 3);
}

static void test_straight(void **state)
{
        check_many(&(struct generate_options){.statements = 20, .context_size = 64, .is_unaligned = true}, "embedded",
                   3000);
}

static void test_maps_and_calls(void **state)
{
        check_many(&(struct generate_options){.statements = 30,
                                              .context_size = 64,
                                              .uses_maps = true,
                                              .uses_calls = true,
                                              .is_unaligned = true},
                   "embedded", 3000);
}

static void test_loops(void **state)
{
        check_many(&(struct generate_options){.statements = 20,
                                              .context_size = 64,
                                              .uses_maps = true,
                                              .uses_calls = true,
                                              .uses_loops = true,
                                              .is_unaligned = true},
                   "full", 3000);
}

static void test_risky(void **state)
{
        check_many(&(struct generate_options){.statements = 6,
                                              .context_size = 16,
                                              .uses_maps = true,
                                              .uses_calls = true,
                                              .uses_loops = true,
                                              .is_unaligned = true,
                                              .risk_percent = 3},
                   "full", 6000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_straight),
                cmocka_unit_test(test_maps_and_calls),
                cmocka_unit_test(test_loops),
                cmocka_unit_test(test_risky),
        };

        return cmocka_run_group_tests_name("verifier-claims", tests, NULL, NULL);
}
