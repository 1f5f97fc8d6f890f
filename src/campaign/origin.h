/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/stage.h"
#include "load/http-origin.h"
#include "sys/child.h"

/* An origin on a stage, in a process of its own. */

struct origin {
        struct http_origin *http;
        struct child child;
};

#define ORIGIN_INIT                                                                                                    \
        {                                                                                                              \
                .child = CHILD_INIT                                                                                    \
        }

/* origin_start - serve at the stage's address for it, which need not be in @config; connections are queued from now on,
 * and answered once child_go() was called
 *
 * Return: 0 or a negative errno; origin_done() is to be called in any case.
 */
int origin_start(const struct stage *stage, const struct http_origin_config *config, struct origin *ret,
                 struct err *err);

/* origin_stop - end it; what it counted stays. Return: 0; -EIO or -EPIPE where it had ended before. */
int origin_stop(struct origin *origin, struct err *err);

void origin_done(struct origin *origin);
