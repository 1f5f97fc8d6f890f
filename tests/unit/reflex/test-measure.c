/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "base/macro.h"
#include "reflex/measure.h"

/* How often each answer came, over the records that the audit still has. */
static void answers(struct measure *m, size_t ret[static ANSWERS])
{
        struct audit_record record;

        memset(ret, 0, ANSWERS * sizeof(*ret));
        while (audit_next(&m->monitor.audit, &record))
                ret[record.answer]++;
}

/* Each case measures what its name says, and nothing else. */
static void test_cases_are_what_they_are_called(void **state)
{
        static const enum answer only[] = {
                [MEASURE_ALLOW] = ANSWER_ALLOW,
                [MEASURE_CLAMP] = ANSWER_CLAMP,
                [MEASURE_SAFE] = ANSWER_SAFE,
                [MEASURE_REJECT] = ANSWER_REJECT,
        };
        size_t n[ANSWERS];
        struct measure m;

        for (int which = MEASURE_ALLOW; which < MEASURE_CASES; which++) {
                measure_init(&m, (enum measure_case)which, 1);
                assert_true(measure_batch(&m, 2 * MEASURE_REQUESTS, 1) >= 0);
                answers(&m, n);
                assert_int_equal(n[only[which]], AUDIT_RECORDS);
        }
        measure_init(&m, MEASURE_MIXED, 1);
        measure_batch(&m, MEASURE_REQUESTS, 1);
        answers(&m, n);
        assert_true(n[ANSWER_ALLOW] > 0 && n[ANSWER_CLAMP] > 0 && n[ANSWER_REJECT] > 0);
}

static void test_every_request_is_decided(void **state)
{
        struct measure m;

        for (unsigned repeat = 1; repeat < 4; repeat++) {
                measure_init(&m, MEASURE_MIXED, 7);
                measure_batch(&m, 100, repeat);
                measure_batch(&m, 11, repeat);
                assert_int_equal(m.monitor.audit.n_written, 111 * repeat);
        }
        assert_null(measure_case_names[MEASURE_CASES]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cases_are_what_they_are_called),
                cmocka_unit_test(test_every_request_is_decided),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
