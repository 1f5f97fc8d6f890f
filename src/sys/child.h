/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sys/netns.h"

/* Child processes that run a function, never outlive their parent, and are held by pidfd.
 *
 * Life of a child: child_start() forks it; it prepares what can fail and says child_ready() (or child_failed()); the
 * parent, which waited in child_wait_ready(), gives child_go() with a time; the child works, and returns its exit
 * status, or is ended by child_stop(). A child that needs no such start may return without any of it.
 *
 * The thread that calls child_start() must be the only one of its process, and the one that stays: the kernel kills the
 * child when that thread ends. fork() makes the child and not a bare clone3(): after the latter glibc would still hold
 * the parent's thread id, and pthread_setschedparam() in the child would change the parent. */
struct child {
        pid_t pid; /* 0: none, or already reaped */
        int pidfd;
        int channel_fd; /* the child's report arrives here, the go leaves */
};

#define CHILD_INIT                                                                                                     \
        {                                                                                                              \
                .pidfd = -1, .channel_fd = -1                                                                          \
        }

/* The child's own end. */
struct child_side {
        int channel_fd;
};

struct child_options {
        const char *name;          /* shown by ps; at most 15 bytes are kept */
        const struct netns *netns; /* to enter first; NULL stays in the parent's */
        const int *keep_fds;       /* descriptors that the child needs; every other one from 3 up is closed in it */
        size_t n_keep_fds;
        bool keep_stdio; /* else standard input and output are /dev/null, standard error stays */
        bool in_group;   /* stays in the parent's process group, so that ^C reaches it too; else leads a session */
};

/* child_start - run @fn in a new process
 * @fn:  what it returns (0 to 255) is the exit status; it leaves by _exit(), so nothing buffered is written twice.
 *       In the child no log sink is set, signals have their default actions and none is blocked
 * @ret: child_done() ends and releases it
 *
 * Return: 0 or a negative errno; failures after the fork are reported by child_wait_ready() or the exit status 255.
 */
int child_start(const struct child_options *options, int (*fn)(struct child_side *side, void *userdata), void *userdata,
                struct child *ret, struct err *err);

/* child_ready - tell the parent that the preparation is complete. To be called once, in the child. */
int child_ready(struct child_side *side);

/* child_failed - tell the parent why the preparation failed. Return: 255, so that `return child_failed(...)` ends it.
 */
int child_failed(struct child_side *side, const struct err *failure);

/* child_wait_go - wait in the child for the parent's go
 * @ret_start_ns: the time that the parent gave
 *
 * Return: 0; -ECANCELED where the parent let go of the child without a go.
 */
int child_wait_go(struct child_side *side, int64_t *ret_start_ns);

/* child_wait_ready - wait in the parent for the child's report
 * @timeout_ns: at most so long
 *
 * Return: 0; the child's own failure, its reason in @err; -ETIMEDOUT; -EPIPE where it ended without a word.
 */
int child_wait_ready(struct child *child, int64_t timeout_ns, struct err *err);

/* child_go - let a ready child begin
 * @start_ns: for the child, by convention a CLOCK_MONOTONIC time; 0 where it does not matter
 */
int child_go(struct child *child, int64_t start_ns, struct err *err);

/* How a process ended. */
struct child_status {
        int exit_code; /* -1 where a signal ended it */
        int signal;    /* 0 where it exited */
};

/* child_is_alive - whether it has not ended yet; does not reap it */
bool child_is_alive(const struct child *child);

/* child_wait - wait until it ended, at most @timeout_ns (negative: for ever), and reap it
 *
 * Return: 0; -ETIMEDOUT where it still runs; -ECHILD where there is none.
 */
int child_wait(struct child *child, int64_t timeout_ns, struct child_status *ret);

/* child_signal - send a signal. Return: 0; -ESRCH where it has ended; another negative errno. */
int child_signal(const struct child *child, int signal);

/* child_stop - SIGTERM, then after @grace_ns SIGKILL, and reap
 * @ret: how it ended; may be NULL
 *
 * Return: 0; -ECHILD where there is none; -ETIMEDOUT where even SIGKILL did not end it within five seconds.
 */
int child_stop(struct child *child, int64_t grace_ns, struct child_status *ret);

/* child_done - SIGKILL, reap, release; accepts CHILD_INIT, and may be called twice */
void child_done(struct child *child);

#define _cleanup_child_ _cleanup_(child_done)

/* child_check - turn an end other than exit status 0 into a reason ("NAME was killed by signal 9 (Killed)")
 *
 * Return: 0; -EIO where the status is not 0.
 */
int child_check(const char *name, const struct child_status *status, struct err *err);
