/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "base/rng.h"
#include "bpfvm/audit.h"
#include "bpfvm/elf.h"
#include "tests/bpf-claim.h"

/* C programs as people write them, compiled in several ways: each is accepted, its certificate is one that the auditor
 * agrees with, and on random input and maps what is claimed of each instruction holds. */

static const char *folder;
static char **objects;
static int n_objects;

static void certify(const struct program *program, const struct verifier_options *options, const char *name)
{
        _cleanup_certificate_ struct certificate *certificate = NULL;
        _cleanup_verdict_ struct verdict verdict = {0};
        struct fault fault = {0};
        struct err err = {0};
        int r = certificate_make(program, options, &certificate, &verdict, &err);

        if (r != 0)
                fail_msg("%s: %s at %u: %s%s", name, fault_name(verdict.fault.kind), verdict.fault.slot,
                         verdict.fault.text, err.text);
        assert_true(verdict.transfers <= verdict.transfers_bound);
        assert_true(verdict.comparisons <= verdict.comparisons_bound);
        if (audit_check(program, certificate, options, &fault, &err) != 0)
                fail_msg("%s: the auditor says %s at %u: %s", name, fault_name(fault.kind), fault.slot, fault.text);
}

/* Small numbers as often as any: indices and lengths that make sense. */
static void fill(struct rng *rng, uint8_t *bytes, size_t n)
{
        bool is_small = rng_below(rng, 2);

        for (size_t i = 0; i < n; i++)
                bytes[i] = is_small && i % 4 ? 0 : (uint8_t)(is_small ? rng_below(rng, 40) : rng_next(rng));
}

/* Where the worst case is that long, a run may be cut off. */
#define STEPS_MAX 200000

static bool may_take(uint64_t cost_ps, uint64_t steps)
{
        return cost_ps / cost_default()->class_ps[COST_ALU] >= steps;
}

static void run(const struct program *program, const struct verifier_options *options, const char *name)
{
        _cleanup_claims_ struct claims claims = {0};
        _cleanup_verdict_ struct verdict verdict = {0};
        _cleanup_store_ struct store *store = NULL;
        _cleanup_free_ uint8_t *context = malloc(program->context.size + 1u);
        struct verifier_options observing = *options;
        struct oracle_options how = {.max_steps = STEPS_MAX, .observe = claims_check, .userdata = &claims};
        struct rng rng;

        assert_int_equal(claims_init(&claims, program), 0);
        observing.observe = claims_add;
        observing.userdata = &claims;
        assert_int_equal(verifier_check(program, &observing, &verdict, NULL), 0);
        assert_int_equal(store_new(program->maps, program->n_maps, &store, NULL), 0);
        rng_seed(&rng, 7);
        for (unsigned i = 0; i < 30; i++) {
                struct oracle_result result;
                struct fault fault = {0};
                int r;

                fill(&rng, context, program->context.size);
                r = oracle_run(program, store, program->context.size > 0 ? context : NULL, &how, &result, &fault, NULL);
                if (r == 2)
                        fail_msg("%s, slot %u: %s", name, claims.wrong_slot, claims.wrong);
                if (r != 0 && !(fault.kind == FAULT_STEP_LIMIT && may_take(verdict.cost_ps, STEPS_MAX)))
                        fail_msg("%s, slot %u: %s %s", name, fault.slot, fault_name(fault.kind), fault.text);
        }
}

static void check_object(const char *name)
{
        struct verifier_options options = {.profile = profile_find("full"), .may_actuate = true};
        _cleanup_object_ struct object *object = NULL;
        _cleanup_free_ char *path = NULL, *bytes = NULL;
        struct err err = {0};
        size_t len;

        assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
        if (file_read(AT_FDCWD, path, 1 << 20, &bytes, &len, &err) < 0)
                fail_msg("%s", err.text);
        if (elf_load(span_of(bytes, len), name, &object, &err) != 0)
                fail_msg("%s", err.text);
        assert_true(object->n_programs > 0);
        for (uint32_t i = 0; i < object->n_programs; i++) {
                certify(object->programs[i], &options, name);
                run(object->programs[i], &options, name);
        }
}

static void test_corpus(void **state)
{
        assert_true(n_objects > 20);
        for (int i = 0; i < n_objects; i++)
                check_object(objects[i]);
}

/* Arguments: the folder, and the objects in it. */
int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_corpus)};

        folder = argv[1];
        objects = argv + 2;
        n_objects = argc - 2;
        return cmocka_run_group_tests_name("corpus", tests, NULL, NULL);
}
