/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/adapter.h"
#include "campaign/command.h"
#include "campaign/stage.h"

/* Boundaries that commands run in. Their adapters embed this as their first member. */
struct enclosure {
        struct boundary base;
        struct stage stage;    /* STAGE_INIT until it is asked for */
        bool has_own_peer;     /* clients reach the origin at stage.proxy */
        bool is_forward_proxy; /* and send it requests in absolute form */
        bool is_cut_off;       /* nothing outside can be reached, the origin neither */
        const char *record;    /* where a run is to be recorded, and proven anew, by a boundary that does; else NULL */

        /* Lets @line run inside: puts words in front of it, or takes its place. NULL: it runs as it is. */
        int (*wrap)(struct enclosure *e, struct command_line *line, struct err *err);
};

/* enclosure_stage - its stage, made where it is not there yet */
int enclosure_stage(struct enclosure *e, struct err *err);

/* enclosure_wrap - let @line run inside */
int enclosure_wrap(struct enclosure *e, struct command_line *line, struct err *err);

/* What a command inside sees of the host. */
struct enclosure_view {
        bool has_own_mounts, has_own_processes, shares_network; /* the last: with the stage */
};

/* enclosure_look - run a command inside that tells its namespaces
 * @name: of the boundary, for reasons; borrowed
 *
 * Return: 0; -EIO where it did not run, with what was said on standard error.
 */
int enclosure_look(struct enclosure *e, const char *name, struct enclosure_view *ret, struct err *err);

/* enclosure_of - what @b is; only of boundaries that are one */
static inline struct enclosure *enclosure_of(struct boundary *b)
{
        return (struct enclosure *)b; /* the first member */
}
