/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/bpf-exercise.h"
#include "fuzz/fuzz.h"

#include "base/json.h"
#include "bpfvm/audit.h"
#include "tests/bpf-claim.h"

/* Certificates, any bytes, for one program with a lookup, a call, a spilled pointer and a loop. What the auditor agrees
 * with is true in every run. */
static const char source[] = "r6 = r1\n"
                             "*(u64 *)(r10 - 16) = r1\n"
                             "r7 = *(u32 *)(r1 + 0)\n"
                             "*(u32 *)(r10 - 4) = r7\n"
                             "r1 = map[0]\n"
                             "r2 = r10\n"
                             "r2 += -4\n"
                             "call map_lookup_elem\n"
                             "if r0 == 0 goto out\n"
                             "r7 &= 7\n"
                             "r0 += r7\n"
                             "r1 = *(u8 *)(r0 + 0)\n"
                             "r2 = 2\n"
                             "call weigh\n"
                             "r6 = *(u64 *)(r10 - 16)\n"
                             "r8 = *(u8 *)(r6 + 4)\n"
                             "r9 = 0\n"
                             "again: r9 += 1\n"
                             "r0 += r9\n"
                             "if r9 < r8 goto again\n"
                             "exit\n"
                             "out: r0 = 0\n"
                             "exit\n"
                             "weigh: r0 = r1\n"
                             "r0 *= r2\n"
                             "if r0 > 100 goto +1\n"
                             "r0 = 100\n"
                             "exit\n";

static struct object *program_of(void)
{
        _cleanup_free_ uint8_t *slots = NULL;
        struct object *object = NULL;
        struct fault fault;
        size_t len;

        exercise_require(assemble_text(span_of_text(source), "fuzz", &slots, &len, NULL) == 0);
        exercise_require(object_of_slots(span_of(slots, len), "fuzz", exercise_maps, ARRAY_SIZE(exercise_maps), &object,
                                         &fault, NULL) == 0);
        context_flat(&object->programs[0]->context, 16, false);
        return object;
}

/* Claims hold where blocks begin. */
static void run_claims(const struct program *program, const struct certificate *certificate)
{
        _cleanup_claims_ struct claims claims = {0};
        _cleanup_store_ struct store *store = NULL;
        _cleanup_cfg_ struct cfg *cfg = NULL;
        struct oracle_options options = {.embed = &exercise_embed, .observe = claims_check, .userdata = &claims};
        bool checks[64] = {0};

        exercise_require(claims_init(&claims, program) == 0 && program->n_insns <= 64);
        exercise_require(cfg_build(program, &cfg, NULL, NULL) == 0);
        for (uint32_t i = 0; i < cfg->n_blocks; i++)
                checks[cfg->blocks[i].start] = true;
        claims.checks = checks;
        for (uint32_t i = 0; i < certificate->n_contexts; i++)
                for (uint32_t k = 0; k < certificate->contexts[i].n_points; k++)
                        for (const struct certificate_state *s = certificate->contexts[i].points[k].states; s;
                             s = s->next)
                                claims_add(&claims, &certificate->contexts[i].chain,
                                           certificate->contexts[i].points[k].slot, &s->state);
        exercise_require(store_new(program->maps, program->n_maps, &store, NULL) == 0);
        for (unsigned i = 0; i < 8; i++) {
                uint8_t context[16] = {(uint8_t)i, 0, 0, 0, (uint8_t)(i * 37)};
                struct oracle_result result;
                struct fault fault = {0};

                exercise_require(oracle_run(program, store, context, &options, &result, &fault, NULL) == 0);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct verifier_options options = {.profile = profile_find("full")};
        _cleanup_object_ struct object *object = program_of();
        _cleanup_certificate_ struct certificate *certificate = NULL;
        _cleanup_json_ json_t *json = NULL;
        struct fault fault = {0};

        if (json_parse(span_of(data, size), "fuzz", &json, NULL) < 0 ||
            certificate_of_json(json, &certificate, NULL) < 0)
                return 0;
        if (audit_check(object->programs[0], certificate, &options, &fault, NULL) != 0) {
                exercise_require(fault.kind != FAULT_NONE && fault.text[0] != 0);
                return 0;
        }
        run_claims(object->programs[0], certificate);
        return 0;
}
