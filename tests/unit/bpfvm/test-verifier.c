/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/json.h"
#include "bpfvm/admission.h"
#include "bpfvm/audit.h"
#include "bpfvm/verifier.h"
#include "tests/unit/bpfvm/case.h"

static unsigned seen[FAULT_KINDS + 1]; /* cases that end so; last, those of no kind */

static int verify(const struct program *program, const struct verifier_options *options, struct verdict *ret)
{
        struct err err = {0};
        int r = verifier_check(program, options, ret, &err);

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
        const struct verifier_options options = {.profile = profile_find("full"), .may_actuate = true};
        _cleanup_verdict_ struct verdict verdict = {0};
        uint32_t slot;
        enum fault_kind kind = case_fault(c, &slot);

        seen[kind]++;
        if (kind == FAULT_STEP_LIMIT)
                kind = FAULT_TERMINATION;
        verify(c->object->programs[0], &options, &verdict);
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

/* An accepted program, attached to one place after the other. */
static void attach(const struct case_file *c, const struct verifier_options *options, struct verdict *verdict)
{
        struct admission admission = admission_open(options->profile->max_utilisation_ppm);
        char *rest = c->sections[CASE_ATTACH], *end;

        assert_int_equal(verdict->fault.kind, FAULT_NONE);
        for (uint64_t rate = strtoull(rest, &end, 10); end != rest; rate = strtoull(rest, &end, 10)) {
                uint64_t charge = 0;

                rest = end;
                if (admission_charge(&admission, c->path, verdict->cost_ps, rate, &charge, &verdict->fault) == 1)
                        break;
        }
}

static void add_digests(json_t *json, const struct program *program, const struct verifier_options *options)
{
        uint8_t digests[CERTIFICATE_PARTS][CERTIFICATE_DIGEST];
        json_t *all = json_object();

        assert_int_equal(certificate_digests(program, options, digests, NULL), 0);
        for (unsigned part = 0; part < CERTIFICATE_PARTS; part++) {
                char hex[2 * CERTIFICATE_DIGEST + 1];

                for (unsigned i = 0; i < CERTIFICATE_DIGEST; i++)
                        snprintf(hex + 2 * i, 3, "%02x", digests[part][i]);
                json_object_set_new(all, certificate_part_name((enum certificate_part)part), json_string(hex));
        }
        json_object_set_new(json, "digests", all);
}

/* An accepted program and what somebody says shows it. */
static void audit(const struct case_file *c, const struct verifier_options *options, struct verdict *verdict)
{
        _cleanup_json_ json_t *json = NULL;
        _cleanup_certificate_ struct certificate *certificate = NULL;
        struct err err = {0};

        assert_int_equal(verdict->fault.kind, FAULT_NONE);
        if (json_parse(span_of_text(c->sections[CASE_CERTIFICATE]), c->path, &json, &err) < 0)
                fail_msg("%s", err.text);
        if (!json_object_get(json, "digests"))
                add_digests(json, c->object->programs[0], options);
        if (certificate_of_json(json, &certificate, &err) < 0)
                fail_msg("%s: %s", c->path, err.text);
        assert_true(audit_check(c->object->programs[0], certificate, options, &verdict->fault, &err) >= 0);
}

/* The verifier's own cases, each for its profile. */
static void check_own_case(struct case_file *c)
{
        _cleanup_verdict_ struct verdict verdict = {0};
        struct verifier_options options = {0};
        uint32_t slot;
        enum fault_kind kind = case_fault(c, &slot);
        char profile[32] = "full";

        if (c->sections[CASE_PROFILE])
                assert_int_equal(sscanf(c->sections[CASE_PROFILE], "%31s", profile), 1);
        options.profile = profile_find(profile);
        assert_non_null(options.profile);
        options.may_actuate = options.profile->may_actuate;
        if (c->sections[CASE_BYTES])
                options.max_bytes = strtoull(c->sections[CASE_BYTES], NULL, 10);
        seen[kind]++;
        verify(c->object->programs[0], &options, &verdict);
        if (c->sections[CASE_ATTACH])
                attach(c, &options, &verdict);
        if (c->sections[CASE_CERTIFICATE])
                audit(c, &options, &verdict);
        if (verdict.fault.kind != kind || (kind != FAULT_NONE && verdict.fault.slot != slot))
                fail_msg("%s: expected %s at %u, got %s at %u: %s", c->path, fault_name(kind), slot,
                         fault_name(verdict.fault.kind), verdict.fault.slot, verdict.fault.text);
}

static void test_own(void **state)
{
        case_each("bpf-verify", 80, check_own_case);
}

static void test_every_kind_has_a_case(void **state)
{
        for (enum fault_kind kind = FAULT_NONE; kind < FAULT_KINDS; kind++)
                if (!seen[kind])
                        fail_msg("no case ends in %s", fault_name(kind));
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
                cmocka_unit_test(test_exec),       cmocka_unit_test(test_fault),
                cmocka_unit_test(test_own),        cmocka_unit_test(test_every_kind_has_a_case),
                cmocka_unit_test(test_documented),
        };

        return cmocka_run_group_tests_name("verifier", tests, NULL, NULL);
}
