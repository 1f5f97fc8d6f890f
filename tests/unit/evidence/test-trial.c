/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"
#include "evidence/trial.h"

static const char valid_trial[] =
        "{\"assay\": 1, \"trial\": \"0007-tree-600mbit-r2\", \"index\": 7, \"cell\": \"tree/600mbit\", \"round\": 2,"
        " \"extra\": 0, \"campaign\": 1, \"host\": \"h\", \"failure\": \"\", \"reason\": \"\", \"valid\": true,"
        " \"started_realtime_ns\": 5, \"ended_realtime_ns\": 9, \"warmup_slots\": 10000, \"slots\": 40000,"
        " \"counts\": {\"duplicates\": 3}, \"clock\": {\"realtime_step_ns\": 0},"
        " \"proof\": {\"before\": {\"holds\": true}, \"after\": {\"holds\": true}},"
        " \"background\": {\"b\": {\"duration_ns\": 1000000000, \"ceiling_bps\": 8000, \"offered_bytes\": 100,"
        " \"delivered_bytes\": 97}, \"a\": {\"duration_ns\": 1000000000, \"ceiling_bps\": 0, \"offered_bytes\": 0}}}";

static json_t *valid_json(void)
{
        json_t *json = NULL;

        assert_int_equal(json_parse(span_of_text(valid_trial), "trial.json", &json, NULL), 0);
        return json;
}

/* The reason after @patch was merged into the valid trial; NULL patches nothing. */
static const char *reason_after(const char *patch, int64_t missed)
{
        static char reason[TRIAL_REASON_SIZE];
        _cleanup_json_ json_t *json = valid_json(), *over = NULL;
        _cleanup_trial_ struct trial trial = {0};
        bool valid;

        if (patch) {
                assert_int_equal(json_parse(span_of_text(patch), "patch", &over, NULL), 0);
                assert_int_equal(json_object_update_recursive(json, over), 0);
        }
        assert_int_equal(trial_parse(json, "trial.json", &trial, NULL), 0);
        valid = trial_judge(&trial, missed, reason);
        assert_int_equal(valid, reason[0] == '\0');
        return reason;
}

static void test_parse(void **state)
{
        _cleanup_json_ json_t *json = valid_json();
        _cleanup_trial_ struct trial t = {0};
        int64_t count;

        assert_int_equal(trial_parse(json, "trial.json", &t, NULL), 0);
        assert_string_equal(t.name, "0007-tree-600mbit-r2");
        assert_string_equal(t.cell, "tree/600mbit");
        assert_int_equal(t.round, 2);
        assert_int_equal(t.slots, 40000);
        assert_true(t.is_valid);
        assert_true(trial_count(&t, "duplicates", &count));
        assert_int_equal(count, 3);
        assert_false(trial_count(&t, "absent", &count));
        assert_int_equal(count, 0);
}

static void test_parse_refuses(void **state)
{
        static const struct {
                const char *patch, *expected;
        } cases[] = {
                {"{\"assay\": 2}", "version 2"},
                {"{\"slots\": -1}", "\"slots\" is -1"},
                {"{\"slots\": \"1\"}", "\"slots\""},
                {"{\"warmup_slots\": 40001}", "40001 warm-up slots of 40000"},
                {"{\"cell\": null}", "\"cell\""},
                {"{\"counts\": []}", "\"counts\""},
                {"{\"clock\": {\"realtime_step_ns\": null}}", "\"realtime_step_ns\""},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *json = valid_json(), *over = NULL;
                struct err err = {0};
                struct trial t;

                assert_int_equal(json_parse(span_of_text(cases[i].patch), "patch", &over, NULL), 0);
                json_object_update_recursive(json, over);
                assert_int_equal(trial_parse(json, "trial.json", &t, &err), -EINVAL);
                assert_int_equal(err.kind, ERR_DATA);
                assert_non_null(strstr(err.text, cases[i].expected));
        }
}

static void test_valid(void **state)
{
        assert_string_equal(reason_after(NULL, 0), "");
        assert_string_equal(reason_after(NULL, 30), ""); /* 0.1% of 30000 */
}

static void test_missed_slots(void **state)
{
        assert_string_equal(reason_after(NULL, 31), "31 of 30000 slots missed, at most 30 may be");
        assert_int_equal(trial_missed_max(2000), 10); /* the least is 10 */
        assert_int_equal(trial_missed_max(0), 10);
}

static void test_rules_of_validity(void **state)
{
        static const struct {
                const char *patch, *expected;
        } cases[] = {
                {"{\"failure\": \"the reflector died\"}", "the reflector died"},
                {"{\"proof\": {\"before\": {\"holds\": false, \"reason\": \"TTL 255\"}}}",
                 "before the measurement: TTL 255"},
                {"{\"proof\": {\"after\": null}}", "after the measurement: no proof was taken"},
                {"{\"clock\": {\"realtime_step_ns\": -100001}}", "set by -100001 ns"},
                {"{\"clock\": {\"realtime_step_ns\": 100001}}", "set by 100001 ns"},
                {"{\"background\": {\"b\": {\"delivered_bytes\": 96}}}", "background b: 96 of 100 bytes delivered"},
                {"{\"background\": {\"b\": {\"delivered_bytes\": null}}}", "background b: 0 of 100 bytes"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_non_null(strstr(reason_after(cases[i].patch, 0), cases[i].expected));
}

/* 1000 bytes in a second are 8000 bit/s: at the ceiling drops are what the experiment is about. */
static void test_overload_may_drop(void **state)
{
        assert_string_equal(reason_after("{\"background\": {\"b\": {\"offered_bytes\": 1000, \"delivered_bytes\": 1}}}",
                                         0),
                            "");
        assert_string_not_equal(
                reason_after("{\"background\": {\"b\": {\"offered_bytes\": 999, \"delivered_bytes\": 1}}}", 0), "");
}

static void test_all_reasons_are_named_in_order(void **state)
{
        const char *reason = reason_after("{\"failure\": \"x\", \"background\": {\"b\": {\"delivered_bytes\": 0},"
                                          " \"a\": {\"offered_bytes\": 7}}}",
                                          99999);
        const char *a = strstr(reason, "background a"), *b = strstr(reason, "background b");

        assert_memory_equal(reason, "x; ", 3);
        assert_non_null(strstr(reason, "99999 of 30000"));
        assert_true(a && b && a < b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_parse_refuses),
                cmocka_unit_test(test_valid),
                cmocka_unit_test(test_missed_slots),
                cmocka_unit_test(test_rules_of_validity),
                cmocka_unit_test(test_overload_may_drop),
                cmocka_unit_test(test_all_reasons_are_named_in_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
