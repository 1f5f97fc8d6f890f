/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/local.h"

#include <sys/mman.h>

#include "base/clock.h"

#define READY_NS (10 * NSEC_PER_SEC)
#define EXIT_NS  (5 * NSEC_PER_SEC)

static struct local *local_of(struct workload *w)
{
        return (struct local *)w; /* the first member */
}

static int run(struct child_side *side, void *userdata)
{
        struct local *local = userdata;
        struct err err = {0};
        int64_t start_ns;

        if (local->work->open(&local->base, &err) < 0)
                return child_failed(side, &err);
        if (child_ready(side) < 0 || child_wait_go(side, &start_ns) < 0)
                return 1;
        return local->work->run(&local->base, start_ns, local->failure) < 0;
}

void *local_share(size_t bytes)
{
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

        return memory == MAP_FAILED ? NULL : memory;
}

static int fork_process(struct local *local, struct err *err)
{
        const struct child_options options = {.name = local->work->name, .netns = local->netns};
        int r;

        local->failure = local_share(sizeof(*local->failure));
        if (!local->failure)
                return err_set_nomem(err);
        r = child_start(&options, run, local, &local->child, err);
        if (r >= 0)
                r = child_wait_ready(&local->child, READY_NS, err);
        if (r < 0)
                err_prefix(err, "%s", local->work->name);
        return r;
}

int local_new(const struct local_work *work, struct boundary *b, const struct node *config, struct workload **ret,
              struct err *err)
{
        struct local *local = calloc(1, work->size);
        int r;

        if (!local)
                return err_set_nomem(err);
        local->base.ops = work->ops;
        local->work = work;
        local->child = (struct child)CHILD_INIT;
        r = work->build(&local->base, b, config, err);
        if (r >= 0)
                r = fork_process(local, err);
        if (r < 0) {
                work->ops->free(&local->base);
                return r;
        }
        *ret = &local->base;
        return 0;
}

int local_start(struct workload *w, int64_t start_ns, struct err *err)
{
        return child_go(&local_of(w)->child, start_ns, err);
}

int local_event_fd(const struct workload *w)
{
        return ((const struct local *)w)->child.pidfd;
}

int local_stop(struct workload *w, struct err *err)
{
        struct local *local = local_of(w);
        struct child_status status = {0};
        int r;

        r = child_wait(&local->child, EXIT_NS, &status);
        if (r < 0)
                return err_set(err, ERR_ENVIRONMENT, -r, "%s did not end", local->work->name);
        if (local->failure->kind == ERR_NONE)
                return child_check(local->work->name, &status, err);
        *err = *local->failure;
        return err->errnum > 0 ? -err->errnum : -EIO;
}

void local_done(struct local *local)
{
        child_done(&local->child);
        if (local->failure)
                munmap(local->failure, sizeof(*local->failure));
        local->failure = NULL;
}
