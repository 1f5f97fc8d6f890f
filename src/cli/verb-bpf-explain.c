/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "bpfvm/explain.h"
#include "cli/bpf-check.h"
#include "cli/bpf-input.h"
#include "cli/print.h"
#include "cli/verb-bpf.h"

struct explain_options {
        struct bpf_input input;
        struct bpf_check check;
};

static const struct option options[] = {
        BPF_INPUT_OPTIONS(struct explain_options, input),
        BPF_CHECK_OPTIONS(struct explain_options, check),
        {0},
};

static int run_explain(const void *given, int argc, char **argv, struct err *err)
{
        const struct explain_options *o = given;
        _cleanup_object_ struct object *object = NULL;
        _cleanup_verdict_ struct verdict verdict = {0};
        _cleanup_text_ struct text states = {0}, out = {0};
        struct verifier_options how;
        struct cost_table costs;
        struct program *program = NULL;
        int r, outcome;

        r = bpf_check_options(&o->check, &costs, &how, err);
        if (r == 0)
                r = bpf_input_load(&o->input, argv[0], &object, err);
        if (r == 0)
                r = bpf_input_program(&o->input, object, &program, err);
        if (r < 0)
                return r;
        outcome = explain_states(program, &how, &states, &verdict, err);
        if (outcome < 0)
                return outcome;
        for (char *line = states.data; line && *line;) {
                char *end = strchr(line, '\n');

                text_add_visible(&out, line, (size_t)(end - line));
                text_add(&out, "\n");
                line = end + 1;
        }
        r = states.failed ? err_set_nomem(err) : print_text(&out, err);
        if (r < 0 || outcome == 0)
                return r;
        bpf_print_fault(program, &verdict.fault);
        return 3;
}

const struct verb verb_bpf_explain = {
        .name = "explain",
        .arguments = "FILE",
        .summary = "show what holds before each instruction",
        .description =
                "Prints every instruction with the states that the check finds there: one line a state, for each chain "
                "of\n"
                "calls; of a refused program up to the refusal. Registers that are not read any more are left out.",
        .min_args = 1,
        .max_args = 1,
        .options = options,
        .options_size = sizeof(struct explain_options),
        .run = run_explain,
};
