/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex/trigger.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "sys/child.h"

#define READY_NS (5 * NSEC_PER_SEC)

/* Both processes see this. */
struct shared {
        struct sched_grant grant;
        int64_t start_ns;
        _Atomic int64_t made_ns[]; /* 0: not yet */
};

struct trigger {
        struct trigger_options options;
        struct child child;
        struct shared *shared;
        size_t shared_bytes;
};

static int make_events(struct trigger *t)
{
        const uint64_t one = 1;

        for (uint64_t i = 0; i < t->options.n_events; i++) {
                if (clock_sleep_until_ns(CLOCK_MONOTONIC, trigger_due_ns(t, i), NULL) < 0)
                        return 1;
                atomic_store_explicit(&t->shared->made_ns[i], clock_now_ns(CLOCK_MONOTONIC), memory_order_release);
                if (write(t->options.event_fd, &one, sizeof(one)) != sizeof(one))
                        return 1;
        }
        return 0;
}

static int run(struct child_side *side, void *userdata)
{
        struct trigger *t = userdata;
        int64_t start_ns; /* stands in the shared memory, too */

        sched_apply(&t->options.sched, &t->shared->grant);
        if (child_ready(side) < 0 || child_wait_go(side, &start_ns) < 0)
                return 1;
        return make_events(t);
}

int trigger_new(const struct trigger_options *options, struct trigger **ret, struct err *err)
{
        const struct child_options child = {.name = "trigger", .keep_fds = &options->event_fd, .n_keep_fds = 1};
        _cleanup_trigger_ struct trigger *t = calloc(1, sizeof(*t));
        int r;

        if (!t)
                return err_set_nomem(err);
        t->options = *options;
        t->child = (struct child)CHILD_INIT;
        if (options->n_events > (SIZE_MAX - sizeof(*t->shared)) / sizeof(t->shared->made_ns[0]))
                return err_set_nomem(err);
        t->shared_bytes = sizeof(*t->shared) + (size_t)options->n_events * sizeof(t->shared->made_ns[0]);
        t->shared = mmap(NULL, t->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (t->shared == MAP_FAILED) {
                t->shared = NULL;
                return err_set_nomem(err);
        }
        r = child_start(&child, run, t, &t->child, err);
        if (r == 0)
                r = child_wait_ready(&t->child, READY_NS, err);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(t);
        return 0;
}

int trigger_start(struct trigger *t, int64_t start_ns, struct err *err)
{
        t->shared->start_ns = start_ns;
        return child_go(&t->child, start_ns, err);
}

int64_t trigger_made_ns(const struct trigger *t, uint64_t sequence)
{
        if (sequence >= t->options.n_events)
                return 0;
        return atomic_load_explicit(&t->shared->made_ns[sequence], memory_order_acquire);
}

int64_t trigger_due_ns(const struct trigger *t, uint64_t sequence)
{
        return t->shared->start_ns + (int64_t)((__int128)sequence * NSEC_PER_SEC / (__int128)t->options.rate_hz);
}

struct sched_grant trigger_grant(const struct trigger *t)
{
        return t->shared->grant;
}

void trigger_free(struct trigger *t)
{
        if (!t)
                return;
        child_done(&t->child);
        if (t->shared)
                munmap(t->shared, t->shared_bytes);
        free(t);
}
