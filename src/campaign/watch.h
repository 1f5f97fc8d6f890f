/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A descriptor that becomes readable when one of several does, or when it is too late: for workload_ops.event_fd(). */
struct watch {
        int epoll, timer;
};

#define WATCH_INIT                                                                                                     \
        {                                                                                                              \
                .epoll = -1, .timer = -1                                                                               \
        }

/* watch_open - watch @n descriptors, and the time
 * @late_ns: from now on, CLOCK_MONOTONIC
 *
 * Return: 0 or a negative errno; watch_done() is to be called in any case.
 */
int watch_open(struct watch *watch, const int *fds, size_t n, int64_t late_ns, struct err *err);

void watch_done(struct watch *watch);
