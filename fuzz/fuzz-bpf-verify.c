/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/bpf-exercise.h"
#include "fuzz/fuzz.h"

#include "bpfvm/audit.h"
#include "bpfvm/counterexample.h"
#include "tests/bpf-claim.h"

/* One byte for the size of the context, then encoded slots, beside maps of every kind: verified, and then run. What is
 * accepted does not fault, is at each instruction what was claimed, and has a certificate that the auditor agrees with.
 */

static void run_accepted(const struct program *program, const struct verifier_options *how)
{
        _cleanup_claims_ struct claims claims = {0};
        _cleanup_verdict_ struct verdict verdict = {0};
        _cleanup_store_ struct store *store = NULL;
        struct verifier_options observing = *how;
        struct oracle_options options = {.max_steps = EXERCISE_STEPS,
                                         .embed = &exercise_embed,
                                         .observe = claims_check,
                                         .userdata = &claims};
        uint8_t context[128];

        exercise_require(claims_init(&claims, program) == 0);
        observing.observe = claims_add;
        observing.userdata = &claims;
        exercise_require(verifier_check(program, &observing, &verdict, NULL) == 0);
        exercise_require(store_new(program->maps, program->n_maps, &store, NULL) == 0);
        for (unsigned i = 0; i < 4; i++) {
                struct oracle_result result;
                struct fault fault = {0};
                int r;

                memset(context, i == 0 ? 0 : i == 1 ? 0xff : i == 2 ? 1 : 0x80, sizeof(context));
                r = oracle_run(program, store, context, &options, &result, &fault, NULL);
                exercise_require(r == 0 || (r == 1 && fault.kind == FAULT_STEP_LIMIT));
        }
}

static void check_accepted(const struct program *program, const struct verifier_options *options)
{
        _cleanup_certificate_ struct certificate *certificate = NULL;
        _cleanup_verdict_ struct verdict verdict = {0};
        struct fault fault = {0};

        exercise_require(certificate_make(program, options, &certificate, &verdict, NULL) == 0);
        exercise_require(audit_check(program, certificate, options, &fault, NULL) == 0);
}

static void check_refused(const struct program *program, const struct verifier_options *options,
                          const struct verdict *verdict)
{
        const struct counterexample_effort effort = {.steps = 2000};
        _cleanup_counterexample_ struct counterexample *example = NULL;
        struct fault fault = {0};

        exercise_require(verdict->fault.kind != FAULT_NONE && verdict->fault.text[0] != 0);
        if (counterexample_find(program, options, verdict, &effort, 1, &example, NULL) != 1)
                return;
        exercise_require(counterexample_replay(program, options, example, &fault, NULL) == 0);
        exercise_require(fault.kind == verdict->fault.kind && fault.slot == verdict->fault.slot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct verifier_options options = {.profile = profile_find("full"), .may_actuate = true, .max_bytes = 1 << 26};
        _cleanup_object_ struct object *object = NULL;
        _cleanup_verdict_ struct verdict verdict = {0};
        struct fault fault = {0};
        struct program *program;
        int r;

        if (size == 0 || size > 4096 ||
            object_of_slots(span_of(data + 1, size - 1), "fuzz", exercise_maps, ARRAY_SIZE(exercise_maps), &object,
                            &fault, NULL) != 0)
                return 0;
        program = object->programs[0];
        context_flat(&program->context, data[0] & 0x7f, !(data[0] & 0x80));
        r = verifier_check(program, &options, &verdict, NULL);
        exercise_require(r >= 0);
        exercise_require(verdict.transfers <= verdict.transfers_bound || verdict.transfers == 0);
        exercise_require(verdict.comparisons <= verdict.comparisons_bound || verdict.comparisons == 0);
        if (r == 0) {
                run_accepted(program, &options);
                check_accepted(program, &options);
        } else {
                check_refused(program, &options, &verdict);
        }
        return 0;
}
