/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/api/api.h"

static void test_raw(void **state)
{
        _cleanup_api_object_ struct assay_bpf_object *object = API_LOAD(I_MOV(0, 42), I_EXIT);
        struct assay_bpf_program *program = assay_bpf_object_program(object, 0);

        assert_int_equal(assay_bpf_object_programs(object), 1);
        assert_non_null(program);
        assert_null(assay_bpf_object_program(object, 1));
        assert_null(assay_bpf_object_program(object, SIZE_MAX));
        assert_string_equal(assay_bpf_program_name(program), "t");
        assert_ptr_equal(assay_bpf_object_find(object, "t"), program);
        assert_null(assay_bpf_object_find(object, "u"));
        assert_int_equal(assay_bpf_program_context_size(program), 0);
        assert_int_equal(assay_bpf_program_set_context(program, 64, 0), 0);
        assert_int_equal(assay_bpf_program_context_size(program), 64);
        assert_int_equal(assay_bpf_program_set_context(program, ((size_t)1 << 30) + 1, 1), -E2BIG);
        assert_int_equal(assay_bpf_program_context_size(program), 64);
}

/* Bytes that begin as an ELF file, and are none. */
static void test_bad_object(void **state)
{
        static const char bytes[] = "\177ELF nothing else";
        struct assay_bpf_object *object = NULL;
        char why[ASSAY_BPF_WHY_SIZE] = "", small[8] = "";

        assert_int_equal(assay_bpf_object_load(bytes, sizeof(bytes), "some.o", &object, why, sizeof(why)), -EINVAL);
        assert_null(object);
        assert_non_null(strstr(why, "some.o"));
        assert_int_equal(assay_bpf_object_load(bytes, sizeof(bytes), "some.o", &object, small, sizeof(small)), -EINVAL);
        assert_int_equal(strlen(small), sizeof(small) - 1);
        assert_memory_equal(small, why, sizeof(small) - 1);
        assert_int_equal(assay_bpf_object_load(bytes, sizeof(bytes), "some.o", &object, NULL, 0), -EINVAL);
}

static void test_nothing_is_freed(void **state)
{
        assay_bpf_object_free(NULL);
        assay_bpf_report_free(NULL);
        assay_bpf_machine_free(NULL);
        assert_non_null(strchr(assay_bpf_version(), '.'));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_raw),
                cmocka_unit_test(test_bad_object),
                cmocka_unit_test(test_nothing_is_freed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
