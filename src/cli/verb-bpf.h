/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/verb.h"

/* The sub-verbs of `assay bpf`, one a file verb-bpf-NAME.c; verb-bpf.c lists them. */
extern const struct verb verb_bpf_audit;
extern const struct verb verb_bpf_calibrate;
extern const struct verb verb_bpf_check;
extern const struct verb verb_bpf_disasm;
extern const struct verb verb_bpf_exec;
extern const struct verb verb_bpf_explain;
