/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "bpfvm/cfg.h"
#include "bpfvm/interp.h"
#include "bpfvm/oracle.h"
#include "tests/unit/bpfvm/case.h"

/* Each file's program through decoder, graph and both interpreters: all of them have to agree with the file. */

static int check_graph(const struct program *program, struct fault *fault)
{
        _cleanup_cfg_ struct cfg *cfg = NULL;

        if (program->fault.kind != FAULT_NONE) {
                *fault = program->fault;
                return 1;
        }
        return cfg_build(program, &cfg, fault, NULL);
}

static uint64_t run_oracle(struct case_file *c, bool is_lax, int *ret_r, struct fault *fault)
{
        _cleanup_store_ struct store *store = NULL;
        _cleanup_free_ uint8_t *context = malloc(c->mem_len + 1);
        const struct program *program = c->object->programs[0];
        struct oracle_options options = {.is_lax = is_lax, .max_steps = 10000000};
        struct oracle_result result = {0};

        assert_int_equal(store_new(program->maps, program->n_maps, &store, NULL), 0);
        if (c->mem_len > 0)
                memcpy(context, c->mem, c->mem_len);
        *ret_r = oracle_run(program, store, c->mem_len > 0 ? context : NULL, &options, &result, fault, NULL);
        return result.r0;
}

static uint64_t run_interp(struct case_file *c)
{
        _cleanup_store_ struct store *store = NULL;
        _cleanup_interp_ struct interp *interp = NULL;
        _cleanup_free_ uint8_t *context = malloc(c->mem_len + 1);
        const struct program *program = c->object->programs[0];
        struct fault fault = {0};
        uint64_t r0 = 0, again = 0;

        assert_int_equal(store_new(program->maps, program->n_maps, &store, NULL), 0);
        assert_int_equal(interp_new(program, store, NULL, &interp, NULL), 0);
        for (int i = 0; i < 2; i++) {
                if (c->mem_len > 0)
                        memcpy(context, c->mem, c->mem_len);
                store_clear(store);
                assert_int_equal(interp_run(interp, c->mem_len > 0 ? context : NULL, 10000000, i ? &again : &r0,
                                            &fault),
                                 0);
        }
        assert_int_equal(r0, again);
        return r0;
}

static void check_case(struct case_file *c)
{
        struct fault fault = {0};
        uint32_t slot;
        enum fault_kind kind = case_fault(c, &slot);
        uint64_t want, got = 0;
        int r;

        r = check_graph(c->object->programs[0], &fault);
        if (r == 0)
                got = run_oracle(c, false, &r, &fault);
        if (kind != FAULT_NONE) {
                if (r != 1 || fault.kind != kind || fault.slot != slot)
                        fail_msg("%s: expected %s at %u, got %s at %u: %s", c->path, fault_name(kind), slot,
                                 fault_name(fault.kind), fault.slot, fault.text);
                assert_true(fault.text[0] != 0);
                return;
        }

        if (r != 0)
                fail_msg("%s: %s at %u: %s", c->path, fault_name(fault.kind), fault.slot, fault.text);
        want = strtoull(c->sections[CASE_RESULT], NULL, 0);
        if (got != want)
                fail_msg("%s: checking interpreter: 0x%lx, expected 0x%lx", c->path, got, want);
        got = run_oracle(c, true, &r, &fault);
        if (r != 0 || got != want)
                fail_msg("%s: lax: %d, 0x%lx, expected 0x%lx %s", c->path, r, got, want, fault.text);
        got = run_interp(c);
        if (got != want)
                fail_msg("%s: interpreter: 0x%lx, expected 0x%lx", c->path, got, want);
}

static void test_cases(void **state)
{
        case_each("bpf/exec", 50, check_case);
}

static void test_faults(void **state)
{
        case_each("bpf/fault", 30, check_case);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cases),
                cmocka_unit_test(test_faults),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
