/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verb-bpf.h"

#include "cli/verbs.h"

static const struct verb *const verbs_of_bpf[] = {
        &verb_bpf_check,
        &verb_bpf_explain,
        &verb_bpf_audit,
        &verb_bpf_exec,
        &verb_bpf_disasm,
        &verb_bpf_calibrate,
        NULL,
};

const struct verb verb_bpf = {
        .name = "bpf",
        .summary = "check, run and show small BPF programs",
        .verbs = verbs_of_bpf,
};
