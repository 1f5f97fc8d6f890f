/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs.h"

const struct verb *const verbs[] = {
        &verb_run,  &verb_list, &verb_show,   &verb_verify, &verb_exec,   &verb_testbed, &verb_probe,     &verb_load,
        &verb_http, &verb_udp,  &verb_policy, &verb_bpf,    &verb_reflex, &verb_doctor,  &verb_reference, NULL,
};
