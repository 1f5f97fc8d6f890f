/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verb-reflex.h"

#include "cli/verbs.h"

static const struct verb *const verbs_of_reflex[] = {
        &verb_reflex_run,
        &verb_reflex_decide,
        &verb_reflex_corpus,
        NULL,
};

const struct verb verb_reflex = {
        .name = "reflex",
        .summary = "let verified programs actuate, within what a monitor allows",
        .verbs = verbs_of_reflex,
};
