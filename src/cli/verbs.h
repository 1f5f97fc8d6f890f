/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/verb.h"

/* One declaration a file verb-*.c; verbs.c lists them in the order of --help. */

extern const struct verb verbs[]; /* ended by one without name */
