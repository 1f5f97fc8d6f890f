/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "bpfvm/verifier.h"
#include "tests/unit/bpfvm/case.h"

static int verify(const struct program *program, const char *profile, struct verdict *ret)
{
        struct verifier_options options = {.profile = profile_find(profile), .may_actuate = true};
        struct err err = {0};
        int r = verifier_check(program, &options, ret, &err);

        if (r < 0)
                fail_msg("%s", err.text);
        assert_true(ret->transfers <= ret->transfers_bound);
        assert_true(ret->comparisons <= ret->comparisons_bound);
        return r;
}

/* What the interpreters run, the full profile accepts; what they refuse, so does it, for the same reason and in the
 * same place. A program that runs on without end is refused for that. */
static void check_case(struct case_file *c)
{
        _cleanup_verdict_ struct verdict verdict = {0};
        uint32_t slot;
        enum fault_kind kind = case_fault(c, &slot);

        if (kind == FAULT_STEP_LIMIT)
                kind = FAULT_TERMINATION;
        verify(c->object->programs[0], "full", &verdict);
        if (verdict.fault.kind != kind || (kind != FAULT_NONE && verdict.fault.slot != slot))
                fail_msg("%s: expected %s at %u, got %s at %u: %s", c->path, fault_name(kind), slot,
                         fault_name(verdict.fault.kind), verdict.fault.slot, verdict.fault.text);
}

static void test_exec(void **state)
{
        case_each("bpf/exec", 50, check_case);
}

static void test_fault(void **state)
{
        case_each("bpf/fault", 50, check_case);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_exec),
                cmocka_unit_test(test_fault),
        };

        return cmocka_run_group_tests_name("verifier", tests, NULL, NULL);
}
