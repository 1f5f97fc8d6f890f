/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/adapter.h"
#include "sys/child.h"

/* A workload that is one process of this host. Its adapter embeds struct local as its first member, describes itself in
 * a struct local_work, and takes start, event_fd and stop of its operations from here. What it finds out lies in memory
 * that it shares with its process. */

struct local {
        struct workload base;
        const struct local_work *work;
        struct child child;
        const struct netns *netns; /* that its process runs in; build() may set it. NULL: the caller's */
        struct err *failure;       /* shared: why running failed */
};

struct local_work {
        const char *name;               /* of the process */
        size_t size;                    /* of the adapter's struct */
        const struct workload_ops *ops; /* its free() begins with local_done() */

        /* read the keys, make the memory that is shared */
        int (*build)(struct workload *w, struct boundary *b, const struct node *config, struct err *err);

        /* in the process: what can fail, then the work itself, from @start_ns on */
        int (*open)(struct workload *w, struct err *err);
        int (*run)(struct workload *w, int64_t start_ns, struct err *err);
};

/* local_new - build a workload, fork its process and wait until that is open. Return: 0; a negative errno, the
 * process's own where it had one. */
int local_new(const struct local_work *work, struct boundary *b, const struct node *config, struct workload **ret,
              struct err *err);

/* local_start, local_event_fd, local_stop - as workload_ops wants them; stop waits until the process ended by itself */
int local_start(struct workload *w, int64_t start_ns, struct err *err);
int local_event_fd(const struct workload *w);
int local_stop(struct workload *w, struct err *err);

/* local_share - memory that a workload shares with its process, which is forked later; munmap() releases it
 *
 * Return: @bytes of zeros, all of them there already; NULL if memory ran out.
 */
void *local_share(size_t bytes);

/* local_done - end the process */
void local_done(struct local *local);
