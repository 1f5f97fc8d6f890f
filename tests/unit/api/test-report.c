/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/api/api.h"

/* r0 = byte 8 of a context that has 8. */
static struct assay_bpf_object *reads_past_the_end(void)
{
        struct assay_bpf_object *object = API_LOAD(I_LOAD_BYTE(0, 1, 8), I_EXIT);

        assert_int_equal(assay_bpf_program_set_context(assay_bpf_object_program(object, 0), 8, 0), 0);
        return object;
}

static void test_accepted(void **state)
{
        _cleanup_api_object_ struct assay_bpf_object *object = API_LOAD(I_MOV(0, 1), I_STORE_WORD(10, -16, 0), I_EXIT);
        _cleanup_api_report_ struct assay_bpf_report *report = NULL;
        size_t size = 1;

        assert_int_equal(assay_bpf_check(assay_bpf_object_program(object, 0), NULL, &report, NULL, 0), 0);
        assert_string_equal(assay_bpf_report_kind(report), "none");
        assert_string_equal(assay_bpf_report_text(report), "");
        assert_string_equal(assay_bpf_report_known(report), "");
        assert_string_equal(assay_bpf_report_suggestion(report), "");
        assert_int_equal(assay_bpf_report_slot(report), -1);
        assert_int_equal(assay_bpf_report_line(report), 0);
        assert_string_equal(assay_bpf_report_file(report), "");
        assert_string_equal(assay_bpf_report_source(report), "");
        assert_null(assay_bpf_report_counterexample(report, &size));
        assert_int_equal(size, 0);
        assert_int_equal(assay_bpf_report_stack_bytes(report), 16);
        assert_int_equal(assay_bpf_check(assay_bpf_object_program(object, 0), NULL, NULL, NULL, 0), 0);
}

static void test_refused(void **state)
{
        _cleanup_api_object_ struct assay_bpf_object *object = reads_past_the_end();
        struct assay_bpf_options options = ASSAY_BPF_OPTIONS_INIT;
        _cleanup_api_report_ struct assay_bpf_report *report = NULL, *searched = NULL;
        const struct assay_bpf_program *program = assay_bpf_object_program(object, 0);
        size_t size = 1;

        assert_int_equal(assay_bpf_check(program, &options, &report, NULL, 0), 1);
        assert_string_equal(assay_bpf_report_kind(report), "bounds");
        assert_string_not_equal(assay_bpf_report_text(report), "");
        assert_string_not_equal(assay_bpf_report_suggestion(report), "");
        assert_int_equal(assay_bpf_report_slot(report), 0);
        assert_null(assay_bpf_report_counterexample(report, &size));
        assert_int_equal(size, 0);

        options.counterexample_ms = 1000;
        assert_int_equal(assay_bpf_check(program, &options, &searched, NULL, 0), 1);
        assert_non_null(assay_bpf_report_counterexample(searched, &size));
        assert_int_equal(size, 8);
}

/* Loops only in the full profile; actuation only with the right. */
static void test_options(void **state)
{
        _cleanup_api_object_ struct assay_bpf_object *loops =
                API_LOAD(I_MOV(0, 0), I_ADD(0, 1), I_JUMP_BACK(0, 10, -2), I_EXIT);
        _cleanup_api_object_ struct assay_bpf_object *actuates =
                API_LOAD(I_MOV(1, 1), I_MOV(2, 5), I_CALL(0x10003), I_EXIT);
        struct assay_bpf_options options = ASSAY_BPF_OPTIONS_INIT;
        _cleanup_api_report_ struct assay_bpf_report *report = NULL;

        assert_int_equal(assay_bpf_check(assay_bpf_object_program(loops, 0), &options, &report, NULL, 0), 1);
        assert_string_equal(assay_bpf_report_kind(report), "loop");
        assert_int_equal(assay_bpf_check(assay_bpf_object_program(actuates, 0), &options, NULL, NULL, 0), 1);
        options.may_actuate = 1;
        assert_int_equal(assay_bpf_check(assay_bpf_object_program(actuates, 0), &options, NULL, NULL, 0), 0);
        options.profile = ASSAY_BPF_FULL;
        assert_int_equal(assay_bpf_check(assay_bpf_object_program(loops, 0), &options, NULL, NULL, 0), 0);
}

static void test_sizes_of_options(void **state)
{
        _cleanup_api_object_ struct assay_bpf_object *object = API_LOAD(I_MOV(0, 0), I_EXIT);
        const struct assay_bpf_program *program = assay_bpf_object_program(object, 0);
        struct {
                struct assay_bpf_options options;
                uint64_t later;
        } newer = {.options = ASSAY_BPF_OPTIONS_INIT};
        char why[ASSAY_BPF_WHY_SIZE] = "";

        newer.options.size = sizeof(newer);
        assert_int_equal(assay_bpf_check(program, &newer.options, NULL, why, sizeof(why)), 0);
        assert_string_equal(why, "");
        newer.later = 1;
        assert_int_equal(assay_bpf_check(program, &newer.options, NULL, why, sizeof(why)), -EINVAL);
        assert_non_null(strstr(why, "options"));

        newer.options.size = offsetof(struct assay_bpf_options, may_actuate);
        newer.options.disjuncts = 1u << 31; /* not looked at */
        assert_int_equal(assay_bpf_check(program, &newer.options, NULL, why, sizeof(why)), 0);
        newer.options.size = 0;
        assert_int_equal(assay_bpf_check(program, &newer.options, NULL, why, sizeof(why)), -EINVAL);
        newer.options = (struct assay_bpf_options)ASSAY_BPF_OPTIONS_INIT;
        newer.options.profile = (enum assay_bpf_profile)2;
        assert_int_equal(assay_bpf_check(program, &newer.options, NULL, why, sizeof(why)), -EINVAL);
        assert_non_null(strstr(why, "profile 2"));
}

static void test_certificate(void **state)
{
        _cleanup_api_object_ struct assay_bpf_object *object = API_LOAD(I_MOV(0, 7), I_EXIT);
        _cleanup_api_object_ struct assay_bpf_object *other = API_LOAD(I_MOV(0, 8), I_EXIT);
        _cleanup_api_object_ struct assay_bpf_object *unsafe = reads_past_the_end();
        const struct assay_bpf_program *program = assay_bpf_object_program(object, 0);
        struct assay_bpf_options options = ASSAY_BPF_OPTIONS_INIT;
        _cleanup_api_report_ struct assay_bpf_report *holds = NULL, *wrong = NULL, *refused = NULL;
        _cleanup_free_ char *certificate = NULL;
        char why[ASSAY_BPF_WHY_SIZE] = "", *none = NULL;
        size_t size = 0;

        assert_int_equal(assay_bpf_certify(program, NULL, &certificate, &size, NULL, NULL, 0), 0);
        assert_int_equal(strlen(certificate), size);
        assert_int_equal(assay_bpf_audit(program, NULL, certificate, size, &holds, NULL, 0), 0);
        assert_string_equal(assay_bpf_report_kind(holds), "none");

        assert_int_equal(assay_bpf_audit(assay_bpf_object_program(other, 0), NULL, certificate, size, &wrong, NULL, 0),
                         1);
        assert_string_equal(assay_bpf_report_kind(wrong), "certificate");
        options.profile = ASSAY_BPF_FULL;
        assert_int_equal(assay_bpf_audit(program, &options, certificate, size, NULL, NULL, 0), 1);
        assert_int_equal(assay_bpf_audit(program, NULL, certificate, size - 2, NULL, why, sizeof(why)), -EINVAL);
        assert_string_not_equal(why, "");
        assert_int_equal(assay_bpf_audit(program, NULL, "{}", 2, NULL, why, sizeof(why)), -EINVAL);

        assert_int_equal(assay_bpf_certify(assay_bpf_object_program(unsafe, 0), NULL, &none, &size, &refused, NULL, 0),
                         1);
        assert_null(none);
        assert_string_equal(assay_bpf_report_kind(refused), "bounds");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_accepted),    cmocka_unit_test(test_refused),
                cmocka_unit_test(test_options),     cmocka_unit_test(test_sizes_of_options),
                cmocka_unit_test(test_certificate),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
