/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/origin.h"

#include "base/clock.h"

#define READY_NS (10 * NSEC_PER_SEC)

/* Answers until it is killed; what it counts lies in shared memory. */
static int run(struct child_side *side, void *userdata)
{
        struct http_origin *http = userdata;
        struct err err = {0};
        int64_t start_ns;

        if (http_origin_open(http, &err) < 0)
                return child_failed(side, &err);
        if (child_ready(side) < 0 || child_wait_go(side, &start_ns) < 0)
                return 1;
        return http_origin_run(http, NULL, &err) < 0;
}

int origin_start(const struct stage *stage, const struct http_origin_config *config, struct origin *ret,
                 struct err *err)
{
        const struct child_options options = {.name = "origin", .netns = &stage->netns};
        struct http_origin_config c = *config;
        int r;

        c.local = stage->origin;
        r = http_origin_new(&c, &ret->http, err);
        if (r >= 0)
                r = child_start(&options, run, ret->http, &ret->child, err);
        if (r >= 0)
                r = child_wait_ready(&ret->child, READY_NS, err);
        if (r < 0)
                err_prefix(err, "the origin");
        return r;
}

int origin_stop(struct origin *origin, struct err *err)
{
        struct child_status status = {0};
        int r;

        if (child_is_alive(&origin->child)) {
                child_stop(&origin->child, NSEC_PER_SEC, NULL);
                return 0;
        }
        child_wait(&origin->child, 0, &status);
        r = child_check("the origin", &status, err);
        return r < 0 ? r : err_set(err, ERR_ENVIRONMENT, EPIPE, "the origin ended in mid-trial");
}

void origin_done(struct origin *origin)
{
        child_done(&origin->child);
        http_origin_free(origin->http);
        origin->http = NULL;
}
