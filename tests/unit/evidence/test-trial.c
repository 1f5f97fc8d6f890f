/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "evidence/trial.h"
#include "tests/unit/evidence/synthetic.h"

static void test_parse(void **state)
{
        _cleanup_json_ json_t *json = synthetic_trial("0007-tree-600mbit-r2", "tree/600mbit", 40000, 10000);
        _cleanup_trial_ struct trial t = {0};
        int64_t count;

        synthetic_patch(json, "{\"round\": 2, \"counts\": {\"duplicates\": 3}}");
        assert_int_equal(trial_parse(json, "trial.json", &t, NULL), 0);
        assert_string_equal(t.name, "0007-tree-600mbit-r2");
        assert_string_equal(t.cell, "tree/600mbit");
        assert_int_equal(t.round, 2);
        assert_int_equal(t.slots, 40000);
        assert_int_equal(t.warmup_slots, 10000);
        assert_true(trial_count(&t, "duplicates", &count));
        assert_int_equal(count, 3);
        assert_false(trial_count(&t, "absent", &count));
        assert_int_equal(count, 0);
}

static void test_load(void **state)
{
        _cleanup_json_ json_t *json = synthetic_trial("t", "a/b", 0, 0);
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_trial_ struct trial t = {0};
        struct err err = {0};

        assert_int_equal(trial_load(scratch.fd, "trial t", &t, &err), -ENOENT);
        assert_int_equal(json_save(scratch.fd, "trial.json", json, NULL), 0);
        assert_int_equal(trial_load(scratch.fd, "trial t", &t, &err), 0);
        assert_string_equal(t.cell, "a/b");
}

static void test_refuses(void **state)
{
        static const struct {
                const char *patch, *expected;
        } cases[] = {
                {"{\"assay\": 2}", "version 2"},
                {"{\"round\": -1}", "\"round\" is -1"},
                {"{\"round\": \"1\"}", "\"round\""},
                {"{\"counts\": {\"warmup_slots\": 101}}", "101 warm-up slots of 100"},
                {"{\"counts\": {\"warmup_slots\": -1}}", "-1 warm-up slots of 100"},
                {"{\"cell\": null}", "\"cell\""},
                {"{\"counts\": []}", "\"counts\""},
                {"{\"clock\": {\"realtime_step_ns\": null}}", "\"realtime_step_ns\""},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *json = synthetic_trial("t", "a/b", 100, 10);
                struct err err = {0};
                struct trial t;

                synthetic_patch(json, cases[i].patch);
                assert_int_equal(trial_parse(json, "trial.json", &t, &err), -EINVAL);
                assert_int_equal(err.kind, ERR_DATA);
                assert_non_null(strstr(err.text, cases[i].expected));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_load),
                cmocka_unit_test(test_refuses),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
