/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "bpfvm/oracle.h"
#include "bpfvm/specimen.h"
#include "bpfvm/verifier.h"

/* What the programs return was worked out by hand from what they are said to do. */
static const struct {
        const char *name;
        uint32_t n_slots, word; /* the context's first */
        uint64_t r0;
} known[] = {
        {"minimal", 2, 0, 0},
        {"arithmetic", 5, 0, 125},
        {"linear", 6, 0, 3},
        {"one-branch", 6, 0, 0},
        {"multi-branch", 8, 0, 10},
        {"add:3", 3, 0, 1},
        {"add:10", 10, 0, 36},
        {"add:1000", 1000, 0, 49401},
        {"diamonds:1", 6, 0, 0},
        {"diamonds:1", 6, 1, 1},
        {"diamonds:31", 96, 0xffffffff, 0x7fffffff},
        {"diamonds:31", 96, 0x80000000, 0},
        {"diamonds:33", 102, 0x00000003, 6}, /* the bits 0 and 1 twice */
};

static void test_known_results(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
                _cleanup_object_ struct object *object = NULL;
                _cleanup_store_ struct store *store = NULL;
                uint8_t context[192] = {0};
                struct oracle_result result;
                struct fault fault;

                assert_true(specimen_is(known[i].name));
                assert_int_equal(specimen_new(known[i].name, &object, NULL), 0);
                assert_int_equal(object->programs[0]->n_insns, known[i].n_slots);
                assert_int_equal(object->programs[0]->context.size, sizeof(context));
                memcpy(context, &known[i].word, sizeof(known[i].word));
                assert_int_equal(store_new(NULL, 0, &store, NULL), 0);
                assert_int_equal(oracle_run(object->programs[0], store, context, NULL, &result, &fault, NULL), 0);
                assert_int_equal(result.r0, known[i].r0);
        }
}

static void test_accepted_by_both_profiles(void **state)
{
        static const char *const names[] = {"minimal",      "arithmetic", "linear",       "one-branch",
                                            "multi-branch", "add:10000",  "diamonds:512", "diamonds:20000"};
        static const char *const profiles[] = {"embedded", "full"};

        for (size_t i = 0; i < ARRAY_SIZE(names) * ARRAY_SIZE(profiles); i++) {
                const struct verifier_options options = {.profile = profile_find(profiles[i % 2])};
                _cleanup_object_ struct object *object = NULL;
                _cleanup_verdict_ struct verdict verdict = {0};

                assert_int_equal(specimen_new(names[i / 2], &object, NULL), 0);
                assert_int_equal(verifier_check(object->programs[0], &options, &verdict, NULL), 0);
        }
}

static void test_unknown(void **state)
{
        static const char *const names[] = {"",          "add",        "add:",        "add:2",     "add:20001",
                                            "add:x",     "add:-5",     "add:10 ",     "minimal:2", "maximal",
                                            "diamonds:", "diamonds:0", "diamonds:1e3"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                struct object *object = NULL;
                struct err err = {0};

                assert_false(specimen_is(names[i]));
                assert_int_equal(specimen_new(names[i], &object, &err), -EINVAL);
                assert_null(object);
                assert_int_equal(err.kind, ERR_USAGE);
                assert_non_null(strstr(err.text, "diamonds:N"));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_known_results),
                cmocka_unit_test(test_accepted_by_both_profiles),
                cmocka_unit_test(test_unknown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
