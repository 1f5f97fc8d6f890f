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

        /* Lets @line run inside: puts words in front of it, or takes its place. NULL: it runs as it is. */
        int (*wrap)(struct enclosure *e, struct command_line *line, struct err *err);
};

/* enclosure_stage - its stage, made where it is not there yet */
int enclosure_stage(struct enclosure *e, struct err *err);

/* enclosure_wrap - let @line run inside */
int enclosure_wrap(struct enclosure *e, struct command_line *line, struct err *err);

/* enclosure_of - what @b is; only of boundaries that are one */
static inline struct enclosure *enclosure_of(struct boundary *b)
{
        return (struct enclosure *)b; /* the first member */
}
