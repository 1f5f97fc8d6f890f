/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>

#include "base/file.h"
#include "base/json.h"
#include "bpfvm/audit.h"
#include "cli/bpf-check.h"
#include "cli/bpf-input.h"
#include "cli/print.h"
#include "cli/verb-bpf.h"

#define CERTIFICATE_BYTES_MAX (256u << 20)

struct audit_verb {
        struct bpf_input input;
        struct bpf_check check;
        bool json;
};

static const struct option options[] = {
        BPF_INPUT_OPTIONS(struct audit_verb, input),
        BPF_CHECK_OPTIONS(struct audit_verb, check),
        {"json", 0, OPTION_FLAG, offsetof(struct audit_verb, json), .help = "print JSON"},
        {0},
};

static int load_certificate(const char *path, struct certificate **ret, struct err *err)
{
        _cleanup_free_ char *text = NULL;
        _cleanup_json_ json_t *json = NULL;
        size_t len;
        int r;

        r = file_read(AT_FDCWD, path, CERTIFICATE_BYTES_MAX, &text, &len, err);
        if (r >= 0)
                r = json_parse(span_of(text, len), path, &json, err);
        return r < 0 ? r : certificate_of_json(json, ret, err);
}

static int print_result(const struct audit_verb *o, const struct program *program, const struct fault *fault,
                        bool holds, struct err *err)
{
        _cleanup_text_ struct text out = {0};

        if (o->json)
                return print_json(json_pack("{s:i, s:s, s:b, s:o*}", "assay", 1, "program", program->name, "holds",
                                            holds, "fault", holds ? NULL : bpf_fault_to_json(program, fault)),
                                  err);
        if (!holds) {
                bpf_print_fault(program, fault);
                return 0;
        }
        print_visible(&out, program->name);
        text_addf(&out, ": the certificate shows that it is safe for profile %s\n",
                  bpf_check_profiles[o->check.profile]);
        return print_text(&out, err);
}

static int run_audit(const void *given, int argc, char **argv, struct err *err)
{
        const struct audit_verb *o = given;
        _cleanup_certificate_ struct certificate *certificate = NULL;
        _cleanup_object_ struct object *object = NULL;
        struct verifier_options how;
        struct cost_table costs;
        struct program *program = NULL;
        struct fault fault = {0};
        int r, outcome;

        r = bpf_check_options(&o->check, &costs, &how, err);
        if (r >= 0)
                r = bpf_input_load(&o->input, argv[0], &object, err);
        if (r >= 0)
                r = bpf_input_program(&o->input, object, &program, err);
        if (r >= 0)
                r = load_certificate(argv[1], &certificate, err);
        if (r < 0)
                return r;
        outcome = audit_check(program, certificate, &how, &fault, err);
        if (outcome < 0)
                return outcome;
        r = print_result(o, program, &fault, outcome == 0, err);
        return r < 0 ? r : outcome == 0 ? 0 : 3;
}

const struct verb verb_bpf_audit = {
        .name = "audit",
        .arguments = "FILE CERTIFICATE",
        .summary = "re-check a program by the certificate of its check",
        .description = "Goes through the certificate that `assay bpf check --certificate` wrote once, with rules and "
                       "arithmetic of\n"
                       "its own. The program, its maps, the profile and the rights have to be those of the check. Exit "
                       "3 if the\n"
                       "certificate does not show that the program is safe.",
        .min_args = 2,
        .max_args = 2,
        .options = options,
        .options_size = sizeof(struct audit_verb),
        .run = run_audit,
};
