/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/err.h"

/* A loop that waits for descriptors, times and signals, and calls who asked for them. One thread.
 *
 * Sources are embedded in the caller's own structures and cost no allocation; a callback finds its structure with
 * CONTAINER_OF(). A source may be removed, and its structure freed, at any time, also by its own or another callback:
 * it is not called after that. Sources must stay where they are while they are added. */
struct loop;

int loop_new(struct loop **ret, struct err *err);
void loop_free(struct loop *loop);

DEFINE_CLEANUP(struct loop *, loop_free)
#define _cleanup_loop_ _cleanup_(loop_free_cleanup)

/* loop_run - call back until loop_stop() or a callback that returns a negative errno. Return: 0, or that errno. */
int loop_run(struct loop *loop);

/* loop_stop - let loop_run() return 0 after the callback that called this */
void loop_stop(struct loop *loop);

/* loop_now_ns - the CLOCK_MONOTONIC time at which the loop woke up last: for many flows cheaper than asking the clock
 */
int64_t loop_now_ns(const struct loop *loop);

/* ---- descriptors ---- */

/* Zeroed: not added. */
struct loop_io {
        struct loop *loop; /* NULL: not added */
        int fd;
        uint32_t events;
        int (*fn)(struct loop_io *io, uint32_t events);
};

/* loop_io_add - call @fn when @fd has one of @events (EPOLLIN, EPOLLOUT, EPOLLET, ...; EPOLLERR and EPOLLHUP always)
 * @io:  not added; the descriptor stays the caller's, who removes @io before closing it
 *
 * Return: 0; -EPERM where the kind of descriptor cannot be waited for (a regular file); another negative errno.
 */
int loop_io_add(struct loop *loop, struct loop_io *io, int fd, uint32_t events,
                int (*fn)(struct loop_io *io, uint32_t events));

/* loop_io_set - wait for other events; no system call where they are the same. 0 still reports EPOLLERR and EPOLLHUP.
 */
int loop_io_set(struct loop_io *io, uint32_t events);

/* loop_io_remove - accepts one that is not added */
void loop_io_remove(struct loop_io *io);

/* ---- times ---- */

/* Zeroed: not set. */
struct loop_timer {
        struct loop *loop; /* NULL: not set */
        int64_t when_ns;
        size_t place; /* in the loop's heap */
        int (*fn)(struct loop_timer *timer);
};

/* loop_timer_set - call @fn once, at or after @when_ns (CLOCK_MONOTONIC); a timer that was set is moved
 *
 * Setting and removing cost the logarithm of the number of timers. Return: 0; -ENOMEM.
 */
int loop_timer_set(struct loop *loop, struct loop_timer *timer, int64_t when_ns, int (*fn)(struct loop_timer *timer));

/* loop_timer_remove - accepts one that is not set */
void loop_timer_remove(struct loop_timer *timer);

/* ---- signals ---- */

/* loop_signals - from now on block the signals in @set and call @fn for each that comes; loop_free() restores the mask
 *
 * To be called once. The mask is inherited over fork and exec: a child has to reset it.
 * Return: 0 or a negative errno.
 */
int loop_signals(struct loop *loop, const sigset_t *set, int (*fn)(int signal, void *userdata), void *userdata);
