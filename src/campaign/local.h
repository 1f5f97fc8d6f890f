/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "sys/child.h"

/* A workload that is one process of this host: what it does lies behind two functions, what it finds out in memory that
 * it shares. */

struct local_work {
        const char *name;
        int (*open)(void *object, struct err *err);
        int (*run)(void *object, int64_t start_ns, struct err *err);
};

struct local {
        const struct local_work *work;
        void *object;
        struct child child;
        struct err *failure; /* shared: why running failed */
};

/* local_init - to be called before anything can fail, so that local_done() may be */
void local_init(struct local *local, const struct local_work *work, void *object);

/* local_prepare - fork it and wait until it is open. Return: 0; a negative errno, the child's own where it had one. */
int local_prepare(struct local *local, struct err *err);

/* local_start - let it run; it is told @start_ns and waits for that itself */
int local_start(struct local *local, int64_t start_ns, struct err *err);

/* local_stop - wait until it has ended by itself. Return: 0; its own failure; -ETIMEDOUT. */
int local_stop(struct local *local, struct err *err);

/* local_done - end it and release all */
void local_done(struct local *local);
