/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "bpfvm/verifier.h"
#include "tests/unit/bpfvm/case.h"

static unsigned seen[FAULT_KINDS]; /* cases that end so */

static int verify(const struct program *program, const char *profile, bool is_actuating, struct verdict *ret)
{
        struct verifier_options options = {.profile = profile_find(profile)};
        struct err err = {0};
        int r;

        assert_non_null(options.profile);
        options.may_actuate = options.profile->may_actuate || is_actuating;
        r = verifier_check(program, &options, ret, &err);
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
        verify(c->object->programs[0], "full", true, &verdict);
        seen[kind]++;
        if (kind == FAULT_NONE && (verdict.fault.kind == FAULT_DIVISION || verdict.fault.kind == FAULT_SHIFT))
                return;
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

/* The verifier's own cases, each for its profile. */
static void check_own_case(struct case_file *c)
{
        _cleanup_verdict_ struct verdict verdict = {0};
        uint32_t slot;
        enum fault_kind kind = case_fault(c, &slot);
        char profile[32] = "full";

        if (c->sections[CASE_PROFILE])
                assert_int_equal(sscanf(c->sections[CASE_PROFILE], "%31s", profile), 1);
        seen[kind]++;
        verify(c->object->programs[0], profile, false, &verdict);
        if (verdict.fault.kind != kind || verdict.fault.slot != (kind == FAULT_NONE ? 0 : slot))
                fail_msg("%s: expected %s at %u, got %s at %u: %s", c->path, fault_name(kind), slot,
                         fault_name(verdict.fault.kind), verdict.fault.slot, verdict.fault.text);
}

static void test_own(void **state)
{
        case_each("bpf-verify", 80, check_own_case);
}

/* Each kind that a check can end in has a case. */
static void test_kinds(void **state)
{
        const enum fault_kind elsewhere[] = {
                FAULT_LENGTH,       /* no text gives half a slot: test-isa */
                FAULT_INSN_LIMIT,   /* too long for a file: below */
                FAULT_RETURN_VALUE, /* no context asks for a range yet */
                FAULT_UTILISATION,  /* when a program is attached */
                FAULT_CERTIFICATE,  /* what the auditor says: test-audit */
                FAULT_STEP_LIMIT,   /* when it runs */
        };

        for (enum fault_kind kind = FAULT_NONE; kind < FAULT_KINDS; kind++) {
                bool is_elsewhere = false;

                for (size_t i = 0; i < ARRAY_SIZE(elsewhere); i++)
                        is_elsewhere = is_elsewhere || kind == elsewhere[i];
                if (!seen[kind] && !is_elsewhere)
                        fail_msg("no case ends in %s", fault_name(kind));
        }
}

/* The document lists every kind, by its name. */
static void test_documented(void **state)
{
        _cleanup_free_ char *path = NULL, *text = NULL;
        struct err err = {0};
        size_t len;

        assert_true(asprintf(&path, "%s/../../docs/formats/bpf-errors.md", getenv("ASSAY_TEST_CASES")) > 0);
        if (file_read(AT_FDCWD, path, 1 << 20, &text, &len, &err) < 0)
                fail_msg("%s", err.text);
        for (enum fault_kind kind = FAULT_NONE + 1; kind < FAULT_KINDS; kind++) {
                char row[64];

                snprintf(row, sizeof(row), "| `%s` |", fault_name(kind));
                if (!strstr(text, row) || !strstr(strstr(text, row), fault_meaning(kind)))
                        fail_msg("bpf-errors.md lacks %s", fault_name(kind));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_exec),  cmocka_unit_test(test_fault),      cmocka_unit_test(test_own),
                cmocka_unit_test(test_kinds), cmocka_unit_test(test_documented),
        };

        return cmocka_run_group_tests_name("verifier", tests, NULL, NULL);
}
