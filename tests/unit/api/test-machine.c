/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/api/api.h"

#include "tests/fault.h"

/* Maps are tested from outside, in tests/e2e/library-user.c: only compiled objects have them. */

static void test_run(void **state)
{
        _cleanup_api_object_ struct assay_bpf_object *object =
                API_LOAD(I_LOAD_WORD(0, 1, 4), I_STORE_WORD(1, 0, 0), I_ADD(0, 1), I_EXIT);
        struct assay_bpf_program *program = assay_bpf_object_program(object, 0);
        _cleanup_api_machine_ struct assay_bpf_machine *machine = NULL;
        uint32_t context[2] = {1, 41};
        uint64_t result = 0;

        assert_int_equal(assay_bpf_program_set_context(program, sizeof(context), 1), 0);
        assert_int_equal(assay_bpf_machine_new(program, NULL, NULL, &machine, NULL, NULL, 0), 0);
        assert_int_equal(assay_bpf_machine_run(machine, context, sizeof(context), &result), 0);
        assert_int_equal(result, 42);
        assert_int_equal(context[0], 41);
        assert_int_equal(assay_bpf_machine_run(machine, context, sizeof(context) - 1, &result), -EINVAL);
        assert_int_equal(assay_bpf_machine_run(machine, context, 0, &result), -EINVAL);

        /* what it was checked for stays, whatever is said of the program later */
        assert_int_equal(assay_bpf_program_set_context(program, 1, 1), 0);
        assert_int_equal(assay_bpf_machine_run(machine, context, 1, &result), -EINVAL);
        assert_int_equal(assay_bpf_machine_run(machine, context, sizeof(context), &result), 0);
        assert_int_equal(assay_bpf_machine_map(machine, "any"), -ENOENT);
        assert_int_equal(assay_bpf_machine_read(machine, 0, context, 4, &result, 8), -EINVAL);
        assert_int_equal(assay_bpf_machine_take(machine, 0, context, 4, (size_t[]){0}), -EINVAL);
}

static void test_refused_has_no_machine(void **state)
{
        _cleanup_api_object_ struct assay_bpf_object *object = API_LOAD(I_LOAD_BYTE(0, 1, 0), I_EXIT);
        _cleanup_api_report_ struct assay_bpf_report *report = NULL;
        struct assay_bpf_machine *machine = NULL;

        assert_int_equal(assay_bpf_machine_new(assay_bpf_object_program(object, 0), NULL, NULL, &machine, &report, NULL,
                                               0),
                         1);
        assert_null(machine);
        assert_string_equal(assay_bpf_report_kind(report), "not-pointer");
}

struct seen {
        uint32_t helper;
        uint64_t args[2];
        unsigned times;
};

static int64_t actuate(void *userdata, uint32_t helper, const uint64_t *args)
{
        struct seen *seen = userdata;

        seen->helper = helper;
        seen->args[0] = args[0];
        seen->args[1] = args[1];
        return 77;
}

static uint64_t time_ns(void *userdata)
{
        struct seen *seen = userdata;

        seen->times++;
        return 123456789;
}

static void test_hooks(void **state)
{
        _cleanup_api_object_ struct assay_bpf_object *pwm =
                API_LOAD(I_MOV(1, 3), I_MOV(2, 45), I_CALL(0x10003), I_EXIT);
        _cleanup_api_object_ struct assay_bpf_object *now = API_LOAD(I_CALL(5), I_EXIT);
        _cleanup_api_machine_ struct assay_bpf_machine *moves = NULL, *bare = NULL, *asks = NULL;
        struct assay_bpf_options options = ASSAY_BPF_OPTIONS_INIT;
        struct assay_bpf_hooks hooks = ASSAY_BPF_HOOKS_INIT;
        const struct assay_bpf_program *program = assay_bpf_object_program(pwm, 0);
        struct seen seen = {0};
        char why[ASSAY_BPF_WHY_SIZE] = "";
        uint64_t result = 0;

        options.may_actuate = 1;
        hooks.userdata = &seen;
        hooks.actuate = actuate;
        hooks.time_ns = time_ns;
        assert_int_equal(assay_bpf_machine_new(program, &options, &hooks, &moves, NULL, NULL, 0), 0);
        assert_int_equal(assay_bpf_machine_run(moves, NULL, 0, &result), 0);
        assert_int_equal(result, 77);
        assert_int_equal(seen.helper, 0x10003);
        assert_int_equal(seen.args[0], 3);
        assert_int_equal(seen.args[1], 45);

        assert_int_equal(assay_bpf_machine_new(program, &options, NULL, &bare, NULL, NULL, 0), 0);
        assert_int_equal(assay_bpf_machine_run(bare, NULL, 0, &result), 0);
        assert_int_equal((int64_t)result, -ENOSYS);

        assert_int_equal(assay_bpf_machine_new(assay_bpf_object_program(now, 0), NULL, &hooks, &asks, NULL, NULL, 0),
                         0);
        assert_int_equal(assay_bpf_machine_run(asks, NULL, 0, &result), 0);
        assert_int_equal(result, 123456789);
        assert_int_equal(seen.times, 1);

        hooks.size = 0;
        assert_int_equal(assay_bpf_machine_new(program, &options, &hooks, &bare, NULL, why, sizeof(why)), -EINVAL);
        assert_non_null(strstr(why, "hooks"));
}

/* Whatever allocation fails: it is said, or was made up for (the check of a refused program is repeated). */
static void test_no_memory(void **state)
{
        const uint64_t words[] = {I_MOV(0, 1), I_STORE_WORD(10, -8, 0), I_EXIT};
        bool has_struck = true;
        unsigned failures = 0;

        for (unsigned n = 1; has_struck; n++) {
                _cleanup_api_object_ struct assay_bpf_object *object = NULL;
                _cleanup_api_machine_ struct assay_bpf_machine *machine = NULL;
                _cleanup_api_report_ struct assay_bpf_report *report = NULL;
                uint64_t result = 0;
                int r;

                fault_arm(FAULT_ALLOCATION, n);
                r = assay_bpf_object_load(words, sizeof(words), "t", &object, NULL, 0);
                if (r == 0)
                        r = assay_bpf_machine_new(assay_bpf_object_program(object, 0), NULL, NULL, &machine, &report,
                                                  NULL, 0);
                has_struck = fault_disarm();
                failures += r != 0;
                assert_true(has_struck || r == 0);
                if (r == 0) {
                        assert_int_equal(assay_bpf_machine_run(machine, NULL, 0, &result), 0);
                        assert_int_equal(result, 1);
                } else if (r == 1) {
                        assert_string_equal(assay_bpf_report_kind(report), "state-limit");
                } else {
                        assert_int_equal(r, -ENOMEM);
                        assert_null(report);
                }
                assert_int_equal(machine != NULL, r == 0);
        }
        assert_true(failures >= 10);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_run),
                cmocka_unit_test(test_refused_has_no_machine),
                cmocka_unit_test(test_hooks),
                cmocka_unit_test(test_no_memory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
