/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

#include "bpfvm/verifier.h"
#include "cli/option.h"

/* What the verbs that verify have in common: for what a program is checked. */
struct bpf_check {
        int profile;   /* index into bpf_check_profiles */
        int actuation; /* index into bpf_check_rights */
        int64_t disjuncts;
        const char *costs; /* NULL: the assumed ones */
};

extern const char *const bpf_check_profiles[];
extern const char *const bpf_check_rights[];

/* Rows for a verb's table of options; @member is a struct bpf_check in the options struct @type. */
#define BPF_CHECK_OPTIONS(type, member)                                                                                \
        {"profile",                                                                                                    \
         0,                                                                                                            \
         OPTION_CHOICE,                                                                                                \
         offsetof(type, member.profile),                                                                               \
         "NAME",                                                                                                       \
         "full",                                                                                                       \
         .choices = bpf_check_profiles,                                                                                \
         .help = "what the program may do and use: full or embedded"},                                                 \
                {"actuation",                                                                                          \
                 0,                                                                                                    \
                 OPTION_CHOICE,                                                                                        \
                 offsetof(type, member.actuation),                                                                     \
                 "RIGHT",                                                                                              \
                 "profile",                                                                                            \
                 .choices = bpf_check_rights,                                                                          \
                 .help = "the right to actuate: allow, deny, or as the profile says"},                                 \
                {"disjuncts",                                                                                          \
                 0,                                                                                                    \
                 OPTION_QUANTITY,                                                                                      \
                 offsetof(type, member.disjuncts),                                                                     \
                 "COUNT",                                                                                              \
                 NULL,                                                                                                 \
                 UNIT_COUNT,                                                                                           \
                 0,                                                                                                    \
                 VERIFIER_DISJUNCTS_MAX,                                                                               \
                 .help = "states kept apart where paths meet; 0 is the default"},                                      \
        {                                                                                                              \
                "costs", 0, OPTION_STRING, offsetof(type, member.costs), "FILE",                                       \
                        .help = "a table of costs, as calibrate writes it"                                             \
        }

/* bpf_check_options - the verifier's options that were asked for
 * @table: room for the costs, for as long as @ret
 *
 * Return: 0; a negative errno with the reason in @err.
 */
int bpf_check_options(const struct bpf_check *check, struct cost_table *table, struct verifier_options *ret,
                      struct err *err);
