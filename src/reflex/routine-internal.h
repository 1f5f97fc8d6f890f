/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bpfvm/interp.h"
#include "reflex/routine.h"

struct routine {
        struct object *object;
        const struct program *program;
        struct store *store;
        uint64_t cost_ps;
        uint64_t budget; /* of interp_run(); see routine.c */

        /* What the pipeline it is attached to adds. */
        struct interp *interp;
        struct routine *next; /* in a list of retired ones */
};
