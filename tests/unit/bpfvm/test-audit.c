/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "base/json.h"
#include "bpfvm/audit.h"
#include "bpfvm/cfg.h"
#include "tests/bpf-claim.h"
#include "tests/bpf-generate.h"
#include "tests/unit/bpfvm/case.h"

/* Accepted programs have a certificate that the auditor agrees with. */

static int certify(const struct program *program, const struct verifier_options *options, struct certificate **ret)
{
        _cleanup_verdict_ struct verdict verdict = {0};
        struct err err = {0};
        int r = certificate_make(program, options, ret, &verdict, &err);

        assert_true(r >= 0);
        return r;
}

static void check_case(struct case_file *c)
{
        _cleanup_certificate_ struct certificate *certificate = NULL;
        const struct program *program = c->object->programs[0];
        struct verifier_options options = {.profile = profile_find("full"), .may_actuate = true};
        struct fault fault = {0};

        if (certify(program, &options, &certificate) != 0)
                return;
        if (audit_check(program, certificate, &options, &fault, NULL) != 0)
                fail_msg("%s: %s at %u: %s", c->path, fault_name(fault.kind), fault.slot, fault.text);
}

static void test_cases(void **state)
{
        case_each("bpf/exec", 50, check_case);
        case_each("bpf-verify", 50, check_case);
}

static const struct generate_options kinds[] = {
        {.statements = 20, .context_size = 64, .is_unaligned = true},
        {.statements = 30, .context_size = 64, .uses_maps = true, .uses_calls = true, .is_unaligned = true},
        {.statements = 12, .context_size = 64, .uses_maps = true, .uses_calls = true, .uses_loops = true},
};

static struct object *generated(uint64_t stream, uint64_t seed)
{
        struct generate *g = calloc(1, sizeof(*g));
        struct object *object = NULL;
        struct fault fault = {0};
        struct rng rng;

        rng_seed_stream(&rng, stream, seed);
        generate_program(g, &rng, &kinds[seed % ARRAY_SIZE(kinds)]);
        assert_int_equal(object_of_slots(span_of(g->slots, 8 * g->n), "generated", generate_maps,
                                         ARRAY_SIZE(generate_maps), &object, &fault, NULL),
                         0);
        context_flat(&object->programs[0]->context, 64, true);
        free(g);
        return object;
}

/* Written to a file and read back, it is still the same. */
static struct certificate *through_json(const struct certificate *certificate)
{
        _cleanup_json_ json_t *json = certificate_to_json(certificate), *again = NULL;
        _cleanup_free_ char *text = json_format(json);
        struct certificate *read = NULL;
        struct err err = {0};

        assert_non_null(text);
        assert_int_equal(json_parse(span_of_text(text), "certificate", &again, &err), 0);
        if (certificate_of_json(again, &read, &err) != 0)
                fail_msg("%s", err.text);
        return read;
}

static void test_generated(void **state)
{
        unsigned accepted = 0;

        for (uint64_t seed = 0; seed < 1500; seed++) {
                _cleanup_certificate_ struct certificate *certificate = NULL, *read = NULL;
                _cleanup_object_ struct object *object = generated(77, seed);
                struct verifier_options options = {.profile = profile_find("full"), .disjuncts = (unsigned)(seed % 5)};
                struct fault fault = {0};

                if (certify(object->programs[0], &options, &certificate) != 0)
                        continue;
                accepted++;
                read = through_json(certificate);
                if (audit_check(object->programs[0], read, &options, &fault, NULL) != 0)
                        fail_msg("program %lu: %s at %u: %s", seed, fault_name(fault.kind), fault.slot, fault.text);
        }
        assert_true(accepted > 1000);
}

/* What an accepted certificate claims holds in every run. */
static void run_claims(const struct program *program, const struct certificate *certificate, uint64_t seed,
                       const char *what)
{
        _cleanup_claims_ struct claims claims = {0};
        _cleanup_free_ bool *checks = calloc(program->n_insns, sizeof(*checks));
        _cleanup_cfg_ struct cfg *cfg = NULL;
        struct rng rng;

        assert_int_equal(claims_init(&claims, program), 0);
        assert_int_equal(cfg_build(program, &cfg, NULL, NULL), 0);
        for (uint32_t i = 0; i < cfg->n_blocks; i++)
                checks[cfg->blocks[i].start] = true;
        claims.checks = checks;
        for (uint32_t i = 0; i < certificate->n_contexts; i++)
                for (uint32_t k = 0; k < certificate->contexts[i].n_points; k++)
                        for (const struct certificate_state *s = certificate->contexts[i].points[k].states; s;
                             s = s->next)
                                claims_add(&claims, &certificate->contexts[i].chain,
                                           certificate->contexts[i].points[k].slot, &s->state);
        rng_seed_stream(&rng, seed, 9);
        for (unsigned run = 0; run < 6; run++) {
                _cleanup_store_ struct store *store = NULL;
                struct oracle_options options = {.observe = claims_check, .userdata = &claims};
                struct oracle_result result;
                struct fault fault = {0};
                uint8_t context[64];
                int r;

                assert_int_equal(store_new(program->maps, program->n_maps, &store, NULL), 0);
                for (uint32_t key = 0; key < 6; key++) {
                        uint64_t value[2] = {rng_next(&rng), rng_next(&rng)};

                        store_update(store, rng_below(&rng, 2), &key, value, 0);
                }
                for (size_t i = 0; i < sizeof(context); i++)
                        context[i] = rng_below(&rng, 3) ? (uint8_t)rng_next(&rng) : 0;
                r = oracle_run(program, store, context, &options, &result, &fault, NULL);
                if (r == 2)
                        fail_msg("%s, program %lu: slot %u: %s", what, seed, claims.wrong_slot, claims.wrong);
                if (r == 1)
                        fail_msg("%s, program %lu: %s at %u: %s", what, seed, fault_name(fault.kind), fault.slot,
                                 fault.text);
        }
}

/* One claim is changed, mostly to one that says more than is true. */
static bool mutate_claim(struct certificate *certificate, struct rng *rng)
{
        struct certificate_context *context = &certificate->contexts[rng_below(rng, certificate->n_contexts)];
        struct certificate_point *point = &context->points[rng_below(rng, context->n_points)];
        struct certificate_state *claim = point->states;
        struct state *state = claim ? &claim->state : NULL;
        struct slot *slot = state && state->n_slots > 0 ? &state->slots[rng_below(rng, state->n_slots)] : NULL;
        struct reg *reg = state ? &state->regs[rng_below(rng, 10)] : NULL;

        for (unsigned i = 0; state && i < 20 && reg->kind == REG_UNINIT; i++)
                reg = &state->regs[rng_below(rng, 10)];
        if (slot && slot->size > 0 && rng_below(rng, 3) == 0)
                reg = &slot->value;
        if (!state || reg->kind == REG_UNINIT)
                return false;
        switch (rng_below(rng, 10)) {
        case 0:
                reg->value.word.umax /= 2;
                reg->value.word.smax = MIN(reg->value.word.smax, (int64_t)reg->value.word.umax);
                return true;
        case 1:
                reg->value.half.umin++;
                return true;
        case 2:
                reg->value.tnum.mask &= ~(UINT64_C(1) << rng_below(rng, 64));
                return true;
        case 3:
                reg->value = scalar_const(rng_below(rng, 4));
                return true;
        case 4:
                reg->kind = (uint8_t)rng_below(rng, 7);
                reg->may_be_null = false;
                return true;
        case 5:
                if (slot)
                        slot->init |= (uint8_t)(1u << rng_below(rng, 8));
                return slot;
        case 6:
                reg->id = 1 + (uint32_t)rng_below(rng, 3);
                return true;
        case 7:
                if (context->n_loops == 0)
                        return false;
                context->loops[0].least += rng_below(rng, 2) ? 1 : -1;
                return true;
        case 8: /* the point is moved away */
                point->slot++;
                return true;
        default:
                if (point->n_counts == 0)
                        return false;
                point->counts[0].most -= 1;
                return true;
        }
}

static void test_wrong_claims(void **state)
{
        unsigned accepted = 0, refused = 0;

        for (uint64_t seed = 0; seed < 1500; seed++) {
                _cleanup_certificate_ struct certificate *certificate = NULL;
                _cleanup_object_ struct object *object = generated(78, seed);
                struct verifier_options options = {.profile = profile_find("full")};
                struct fault fault = {0};
                struct rng rng;

                if (certify(object->programs[0], &options, &certificate) != 0)
                        continue;
                rng_seed_stream(&rng, 79, seed);
                if (!mutate_claim(certificate, &rng))
                        continue;
                if (audit_check(object->programs[0], certificate, &options, &fault, NULL) != 0) {
                        assert_true(fault.kind != FAULT_NONE && fault.text[0]);
                        refused++;
                        continue;
                }
                accepted++;
                run_claims(object->programs[0], certificate, seed, "changed claim");
        }
        if (getenv("ASSAY_TEST_VERBOSE"))
                print_message("%u changed claims accepted, %u refused\n", accepted, refused);
        /* A claim that no path needs may be changed to anything; most are needed. */
        assert_true(refused > accepted);
}

/* One instruction is changed, and the certificate of the program as it was is given a digest that fits. */
static void test_other_programs(void **state)
{
        unsigned accepted = 0, refused = 0;

        for (uint64_t seed = 0; seed < 3000; seed++) {
                _cleanup_certificate_ struct certificate *certificate = NULL;
                _cleanup_object_ struct object *object = generated(80, seed), *changed = NULL;
                const struct program *program = object->programs[0];
                struct verifier_options options = {.profile = profile_find("full")};
                _cleanup_free_ uint8_t *slots = malloc(program->n_insns * 8);
                struct fault fault = {0};
                struct rng rng;
                size_t at;

                if (certify(program, &options, &certificate) != 0)
                        continue;
                rng_seed_stream(&rng, 81, seed);
                memcpy(slots, program->slots, program->n_insns * 8);
                at = 8 * rng_below(&rng, program->n_insns);
                slots[at + rng_below(&rng, 8)] ^= (uint8_t)(1u << rng_below(&rng, 8));
                assert_int_equal(object_of_slots(span_of(slots, program->n_insns * 8), "changed", generate_maps,
                                                 ARRAY_SIZE(generate_maps), &changed, &fault, NULL),
                                 0);
                context_flat(&changed->programs[0]->context, 64, true);
                /* As it is, it is for another program. */
                assert_int_equal(audit_check(changed->programs[0], certificate, &options, &fault, NULL), 1);
                assert_int_equal(certificate_digests(changed->programs[0], &options, certificate->digests, NULL), 0);
                if (audit_check(changed->programs[0], certificate, &options, &fault, NULL) != 0) {
                        refused++;
                        continue;
                }
                accepted++;
                run_claims(changed->programs[0], certificate, seed, "changed program");
        }
        if (getenv("ASSAY_TEST_VERBOSE"))
                print_message("%u changed programs accepted, %u refused\n", accepted, refused);
        assert_true(refused > 500 && accepted > 0);
}

/* For another profile, other maps or other rights it says nothing. */
static void test_digests(void **state)
{
        _cleanup_certificate_ struct certificate *certificate = NULL;
        _cleanup_object_ struct object *object = generated(77, 0);
        struct program *program = object->programs[0];
        struct verifier_options options = {.profile = profile_find("embedded")};
        struct fault fault = {0};

        assert_int_equal(certify(program, &options, &certificate), 0);
        assert_int_equal(audit_check(program, certificate, &options, &fault, NULL), 0);
        options.profile = profile_find("full");
        assert_int_equal(audit_check(program, certificate, &options, &fault, NULL), 1);
        assert_int_equal(fault.kind, FAULT_CERTIFICATE);
        assert_non_null(strstr(fault.text, "profile"));
        options.profile = profile_find("embedded");
        options.may_actuate = true;
        assert_int_equal(audit_check(program, certificate, &options, &fault, NULL), 1);
        options.may_actuate = false;
        context_flat(&program->context, 65, true);
        assert_int_equal(audit_check(program, certificate, &options, &fault, NULL), 1);
        assert_non_null(strstr(fault.text, "program"));
        context_flat(&program->context, 64, true);
        object->maps[0].value_size--;
        assert_int_equal(audit_check(program, certificate, &options, &fault, NULL), 1);
        assert_non_null(strstr(fault.text, "maps"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cases),        cmocka_unit_test(test_generated),
                cmocka_unit_test(test_wrong_claims), cmocka_unit_test(test_other_programs),
                cmocka_unit_test(test_digests),
        };

        return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
