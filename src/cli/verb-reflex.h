/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/verb.h"

/* The sub-verbs of `assay reflex`, one a file verb-reflex-NAME.c; verb-reflex.c lists them. */
extern const struct verb verb_reflex_corpus;
extern const struct verb verb_reflex_decide;
extern const struct verb verb_reflex_run;
