/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "evidence/validity.h"
#include "tests/unit/evidence/synthetic.h"

/* At 1000 bytes in its second load b offers what its ceiling of 8000 bit/s is. */
#define BACKGROUND                                                                                                     \
        "{\"background\": {\"b\": {\"duration_ns\": 1000000000, \"ceiling_bps\": 8000, \"offered_bytes\": 100,"        \
        " \"sent_bytes\": 97, \"delivered_bytes\": 97}, \"a\": {\"duration_ns\": 1000000000, \"ceiling_bps\": 0, "     \
        "\"offered_bytes\": 0}}}"

/* The reason after @patch was laid over a valid trial of 30000 slots after the warm-up. */
static const char *reason_after(const char *patch, int64_t missed, int64_t negative)
{
        static char reason[VALIDITY_REASON_SIZE];
        _cleanup_json_ json_t *json = synthetic_trial("t", "a/b", 40000, 10000);
        const struct series_set set = {.missed = missed, .negative = negative};
        _cleanup_trial_ struct trial trial = {0};
        bool is_valid;

        synthetic_patch(json, BACKGROUND);
        synthetic_patch(json, patch);
        assert_int_equal(trial_parse(json, "trial.json", &trial, NULL), 0);
        is_valid = validity_check(&trial, &set, reason);
        assert_int_equal(is_valid, reason[0] == '\0');
        return reason;
}

static void test_valid(void **state)
{
        assert_string_equal(reason_after("{}", 0, 0), "");
        assert_string_equal(reason_after("{}", 30, 0), ""); /* 0.1% */
}

static void test_missed_slots(void **state)
{
        assert_string_equal(reason_after("{}", 31, 0), "31 of 30000 slots missed, at most 30 may be");
        assert_int_equal(validity_missed_max(2000), 10); /* the least is 10 */
        assert_int_equal(validity_missed_max(0), 10);
}

static void test_rules(void **state)
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
                {"{\"background\": {\"b\": {\"delivered_bytes\": null}}}", "background b: 0 of 100 bytes delivered"},
                {"{\"background\": {\"b\": {\"sent_bytes\": 96}}}", "background b: 96 of 100 bytes sent"},
                {"{\"background\": {\"b\": {\"sent_bytes\": null}}}", "background b: 0 of 100 bytes sent"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_non_null(strstr(reason_after(cases[i].patch, 0, 0), cases[i].expected));
        assert_string_equal(reason_after("{}", 0, 2), "2 durations are negative");
}

/* A rate above the ceiling has to be offered all the same. */
static void test_overload_may_drop(void **state)
{
        static const struct {
                int offered, sent;
                const char *expected;
        } cases[] = {
                {1000, 1000, ""},
                {999, 999, "background b: 1 of 999 bytes delivered, expected at least 97%"},
                {1000, 969, "background b: 969 of 1000 bytes sent, expected at least 97%"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char patch[128];

                snprintf(patch, sizeof(patch),
                         "{\"background\": {\"b\": {\"offered_bytes\": %d, \"sent_bytes\": %d, \"delivered_bytes\": "
                         "1}}}",
                         cases[i].offered, cases[i].sent);
                assert_string_equal(reason_after(patch, 0, 0), cases[i].expected);
        }
}

static void test_all_reasons_in_order(void **state)
{
        const char *reason = reason_after("{\"background\": {\"b\": {\"delivered_bytes\": 0}, \"a\":"
                                          " {\"offered_bytes\": 7}}}",
                                          99999, 0);
        const char *a = strstr(reason, "background a"), *b = strstr(reason, "background b");

        assert_memory_equal(reason, "99999 of 30000", 14);
        assert_true(a && b && a < b);
}

/* What was not reached is no further reason. */
static void test_a_failure_stands_alone(void **state)
{
        assert_string_equal(reason_after("{\"failure\": \"x\", \"proof\": {\"after\": null}}", 99999, 1), "x");
}

static void test_long_reasons_are_cut(void **state)
{
        char patch[2 * VALIDITY_REASON_SIZE];

        snprintf(patch, sizeof(patch), "{\"failure\": \"%0*d\"}", VALIDITY_REASON_SIZE + 100, 0);
        assert_int_equal(strlen(reason_after(patch, 99999, 1)), VALIDITY_REASON_SIZE - 1);
}

static void judge(json_t *record, int dirfd, bool expected)
{
        char reason[VALIDITY_REASON_SIZE];
        struct err err = {0};
        bool is_valid;

        if (validity_judge(dirfd, record, &is_valid, reason, &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(is_valid, expected);
        assert_int_equal(json_is_true(json_object_get(record, "valid")), expected);
        assert_string_equal(json_string_value(json_object_get(record, "reason")), reason);
}

static void test_judge_reads_the_samples(void **state)
{
        _cleanup_json_ json_t *record = synthetic_trial("t", "a/b", 20, 2);
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        struct synthetic_row rows[20];

        json_object_del(record, "valid");
        json_object_del(record, "reason");
        judge(record, scratch.fd, false); /* no samples: all 18 slots missed */
        for (int64_t i = 0; i < 20; i++)
                rows[i] = i < 10 ? synthetic_missed(i) : synthetic_answer(i, 1000); /* 8 of them after the warm-up */
        synthetic_samples(scratch.fd, rows, 20);
        judge(record, scratch.fd, true);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_valid),
                cmocka_unit_test(test_missed_slots),
                cmocka_unit_test(test_rules),
                cmocka_unit_test(test_overload_may_drop),
                cmocka_unit_test(test_all_reasons_in_order),
                cmocka_unit_test(test_a_failure_stands_alone),
                cmocka_unit_test(test_long_reasons_are_cut),
                cmocka_unit_test(test_judge_reads_the_samples),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
