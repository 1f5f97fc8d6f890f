/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "bpfvm/assemble.h"
#include "bpfvm/cfg.h"
#include "bpfvm/elf.h"
#include "bpfvm/interp.h"
#include "bpfvm/oracle.h"
#include "tests/fault.h"

/* Memory runs out at each allocation in turn: -ENOMEM, nothing half made, nothing lost (a sanitizer sees that). */

static const struct map_def maps[] = {
        {.name = "a",
         .kind = MAP_ARRAY,
         .key_size = 4,
         .value_size = 8,
         .max_entries = 2,
         .initial = {(const uint8_t *)"x", 1}},
        {.name = "h", .kind = MAP_HASH, .key_size = 8, .value_size = 8, .max_entries = 2},
        {.name = "r", .kind = MAP_RING, .max_entries = 4096},
};

static const char text[] = "r1 = map[0]\ncall f\nif r0 == 0 goto +1\nr0 = 1\nexit\nf: call g\nexit\ng: r0 = 2\nexit\n";

static int everything(void)
{
        _cleanup_free_ uint8_t *slots = NULL;
        _cleanup_object_ struct object *object = NULL;
        _cleanup_cfg_ struct cfg *cfg = NULL;
        _cleanup_store_ struct store *store = NULL;
        _cleanup_interp_ struct interp *interp = NULL;
        struct oracle_result result;
        struct fault fault;
        uint64_t r0;
        size_t len;
        int r;

        r = assemble_text(span_of_text(text), "t", &slots, &len, NULL);
        if (r == 0)
                r = object_of_slots(span_of(slots, len), "t", maps, ARRAY_SIZE(maps), &object, &fault, NULL);
        if (r == 0)
                r = cfg_build(object->programs[0], &cfg, &fault, NULL);
        if (r == 0)
                r = store_new(object->maps, object->n_maps, &store, NULL);
        if (r == 0)
                r = interp_new(object->programs[0], store, NULL, &interp, NULL);
        if (r == 0)
                r = interp_run(interp, NULL, UINT64_MAX, &r0, &fault);
        if (r == 0)
                r = oracle_run(object->programs[0], store, NULL, NULL, &result, &fault, NULL);
        return r;
}

static void test_programs_and_runs(void **state)
{
        unsigned n = 1;

        for (;; n++) {
                int r;

                fault_arm(FAULT_ALLOCATION, n);
                r = everything();
                if (!fault_disarm()) {
                        assert_int_equal(r, 0);
                        break;
                }
                assert_int_equal(r, -ENOMEM);
        }
        assert_true(n > 20);
}

static void test_objects(void **state)
{
        _cleanup_free_ char *path = NULL, *bytes = NULL;
        struct err err = {0};
        unsigned n = 1;
        size_t len;

        assert_true(asprintf(&path, "%s/../../fuzz/corpus/bpf-elf/maps-and-calls", getenv("ASSAY_TEST_CASES")) > 0);
        assert_int_equal(file_read(AT_FDCWD, path, ELF_FILE_MAX, &bytes, &len, &err), 0);
        for (;; n++) {
                _cleanup_object_ struct object *object = NULL;
                int r;

                fault_arm(FAULT_ALLOCATION, n);
                r = elf_load(span_of(bytes, len), "t", &object, &err);
                if (!fault_disarm()) {
                        assert_int_equal(r, 0);
                        break;
                }
                assert_int_equal(r, -ENOMEM);
                assert_null(object);
        }
        assert_true(n > 20);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_programs_and_runs),
                cmocka_unit_test(test_objects),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
