/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/verb.h"

/* One declaration a file verb-*.c; verbs.c lists them in the order of --help. */
extern const struct verb verb_bpf;
extern const struct verb verb_doctor;
extern const struct verb verb_exec;
extern const struct verb verb_http;
extern const struct verb verb_list;
extern const struct verb verb_load;
extern const struct verb verb_policy;
extern const struct verb verb_probe;
extern const struct verb verb_reference;
extern const struct verb verb_reflex;
extern const struct verb verb_run;
extern const struct verb verb_show;
extern const struct verb verb_testbed;
extern const struct verb verb_udp;
extern const struct verb verb_verify;

extern const struct verb *const verbs[]; /* ended by NULL */
