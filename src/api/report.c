/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "api/api-internal.h"
#include "base/clock.h"
#include "base/json.h"
#include "bpfvm/audit.h"
#include "bpfvm/explain.h"

#define SEARCH_SEED 1 /* of counterexamples: the same program gives the same one */

int api_copy_sized(void *to, size_t to_size, const void *from, size_t from_size)
{
        const char *more = (const char *)from + to_size;

        if (from_size < sizeof(size_t))
                return -EINVAL;
        for (size_t i = to_size; i < from_size; i++, more++)
                if (*more)
                        return -EINVAL;
        memset(to, 0, to_size);
        memcpy(to, from, MIN(from_size, to_size));
        return 0;
}

int api_options(const struct assay_bpf_options *given, struct verifier_options *ret, unsigned *ret_counterexample_ms,
                struct err *err)
{
        static const char *const profiles[] = {[ASSAY_BPF_EMBEDDED] = "embedded", [ASSAY_BPF_FULL] = "full"};
        struct assay_bpf_options options = ASSAY_BPF_OPTIONS_INIT;

        if (given && api_copy_sized(&options, sizeof(options), given, given->size) < 0)
                return err_set(err, ERR_USAGE, EINVAL,
                               "options: their size is not set, or something is asked that this release does not know");
        if ((size_t)options.profile >= ARRAY_SIZE(profiles))
                return err_set(err, ERR_USAGE, EINVAL, "options: there is no profile %d", (int)options.profile);
        *ret = (struct verifier_options){.profile = profile_find(profiles[options.profile]),
                                         .may_actuate = options.may_actuate != 0,
                                         .disjuncts = options.disjuncts};
        if (ret_counterexample_ms)
                *ret_counterexample_ms = options.counterexample_ms;
        return 0;
}

int api_report(const struct program *program, struct verdict *verdict, struct counterexample *example,
               struct assay_bpf_report **ret, struct err *err)
{
        struct assay_bpf_report *report = ret ? calloc(1, sizeof(*report)) : NULL;

        if (!report) {
                verdict_done(verdict);
                counterexample_free(example);
                return ret ? err_set_nomem(err) : 0;
        }
        report->program = program;
        report->verdict = *verdict;
        report->example = example;
        *verdict = (struct verdict){0};
        *ret = report;
        return 0;
}

API void assay_bpf_report_free(struct assay_bpf_report *report)
{
        if (!report)
                return;
        verdict_done(&report->verdict);
        counterexample_free(report->example);
        free(report);
}

/* Return: 0 accepted; 1 refused; both with a report. */
static int finish(const struct program *program, const struct verifier_options *options, unsigned counterexample_ms,
                  int outcome, struct verdict *verdict, struct assay_bpf_report **ret, struct err *err)
{
        const struct counterexample_effort effort = {.ns = counterexample_ms * NSEC_PER_MSEC};
        struct counterexample *example = NULL;
        int r = 0;

        if (outcome == 1 && ret && effort.ns > 0)
                r = counterexample_find(program, options, verdict, &effort, SEARCH_SEED, &example, err);
        if (r < 0) {
                verdict_done(verdict);
                return r;
        }
        r = api_report(program, verdict, example, ret, err);
        return r < 0 ? r : outcome;
}

API int assay_bpf_check(const struct assay_bpf_program *program, const struct assay_bpf_options *options,
                        struct assay_bpf_report **ret, char *why, size_t why_size)
{
        struct verifier_options how = {0};
        struct verdict verdict = {0};
        unsigned counterexample_ms;
        struct err err = {0};
        int r = api_options(options, &how, &counterexample_ms, &err);

        if (r == 0)
                r = verifier_check(program->program, &how, &verdict, &err);
        if (r >= 0)
                r = finish(program->program, &how, counterexample_ms, r, &verdict, ret, &err);
        return api_result(r, &err, why, why_size);
}

static char *certificate_text(const struct certificate *certificate)
{
        _cleanup_json_ json_t *json = certificate_to_json(certificate);

        return json ? json_format(json) : NULL;
}

API int assay_bpf_certify(const struct assay_bpf_program *program, const struct assay_bpf_options *options,
                          char **ret_certificate, size_t *ret_size, struct assay_bpf_report **ret, char *why,
                          size_t why_size)
{
        _cleanup_certificate_ struct certificate *certificate = NULL;
        _cleanup_free_ char *text = NULL;
        struct verifier_options how = {0};
        _cleanup_verdict_ struct verdict verdict = {0};
        unsigned counterexample_ms;
        struct err err = {0};
        int r = api_options(options, &how, &counterexample_ms, &err);

        if (r == 0)
                r = certificate_make(program->program, &how, &certificate, &verdict, &err);
        if (r == 0) {
                text = certificate_text(certificate);
                if (!text)
                        r = err_set_nomem(&err);
        }
        if (r >= 0)
                r = finish(program->program, &how, counterexample_ms, r, &verdict, ret, &err);
        if (r == 0) {
                *ret_size = strlen(text);
                *ret_certificate = TAKE_PTR(text);
        }
        return api_result(r, &err, why, why_size);
}

API int assay_bpf_audit(const struct assay_bpf_program *program, const struct assay_bpf_options *options,
                        const void *certificate, size_t size, struct assay_bpf_report **ret, char *why, size_t why_size)
{
        _cleanup_certificate_ struct certificate *claims = NULL;
        _cleanup_json_ json_t *json = NULL;
        struct verifier_options how = {0};
        struct verdict verdict = {0};
        struct err err = {0};
        int r = api_options(options, &how, NULL, &err), outcome;

        if (r == 0)
                r = json_parse(span_of(certificate, size), "certificate", &json, &err);
        if (r == 0)
                r = certificate_of_json(json, &claims, &err);
        if (r == 0)
                r = audit_check(program->program, claims, &how, &verdict.fault, &err);
        outcome = r;
        if (r == 0)
                verdict.fault = (struct fault){.kind = FAULT_NONE};
        if (r >= 0)
                r = api_report(program->program, &verdict, NULL, ret, &err);
        return api_result(r < 0 ? r : outcome, &err, why, why_size);
}

static const struct program_line *line_of(const struct assay_bpf_report *report)
{
        uint32_t slot = report->verdict.fault.slot;

        if (report->verdict.fault.kind == FAULT_NONE || slot == FAULT_NO_SLOT)
                return NULL;
        return program_line_at(report->program, slot);
}

API const char *assay_bpf_report_kind(const struct assay_bpf_report *report)
{
        return fault_name(report->verdict.fault.kind);
}

API const char *assay_bpf_report_text(const struct assay_bpf_report *report)
{
        return report->verdict.fault.kind == FAULT_NONE ? "" : report->verdict.fault.text;
}

API const char *assay_bpf_report_known(const struct assay_bpf_report *report)
{
        return report->verdict.known ? report->verdict.known : "";
}

API const char *assay_bpf_report_suggestion(const struct assay_bpf_report *report)
{
        return report->verdict.fault.kind == FAULT_NONE ? "" : explain_suggestion(report->program, &report->verdict);
}

API long assay_bpf_report_slot(const struct assay_bpf_report *report)
{
        const struct fault *fault = &report->verdict.fault;

        return fault->kind == FAULT_NONE || fault->slot == FAULT_NO_SLOT ? -1 : (long)fault->slot;
}

API unsigned assay_bpf_report_line(const struct assay_bpf_report *report)
{
        const struct program_line *line = line_of(report);

        return line ? line->line : 0;
}

API const char *assay_bpf_report_file(const struct assay_bpf_report *report)
{
        const struct program_line *line = line_of(report);

        return line ? line->file : "";
}

API const char *assay_bpf_report_source(const struct assay_bpf_report *report)
{
        const struct program_line *line = line_of(report);

        return line ? line->text : "";
}

API const void *assay_bpf_report_counterexample(const struct assay_bpf_report *report, size_t *ret_size)
{
        *ret_size = report->example ? report->program->context.size : 0;
        return report->example ? report->example->context : NULL;
}

API uint64_t assay_bpf_report_cost_ns(const struct assay_bpf_report *report)
{
        return report->verdict.cost_ps / 1000;
}

API size_t assay_bpf_report_stack_bytes(const struct assay_bpf_report *report)
{
        return report->verdict.stack_bytes;
}
