/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "sandbox/attempt.h"
#include "sandbox/enforcer.h"
#include "sandbox/identity.h"
#include "sandbox/prove.h"
#include "sandbox/sandbox.h"
#include "sandbox/stdio.h"
#include "sys/ip.h"
#include "sys/loop.h"
#include "sys/seccomp.h"

/* The processes of a run, and what they say to each other.
 *
 *   supervisor   the program that was started, in the host's namespaces
 *     setup      shares its memory and descriptors, is in N; gone as soon as N is ready (birth.c)
 *     init       process 1 of the command's PID namespace, a child of the supervisor, in N (init.c)
 *       command
 *
 * Init says READY when nothing is left to be done but to run the command, waits for GO, and says how the command fares.
 * The kernel kills it when the supervisor ends, however it ends, and with it everything in its PID namespace. */

enum message_kind {
        MESSAGE_READY,        /* from init */
        MESSAGE_FAILED,       /* from init: @err */
        MESSAGE_LISTENER,     /* from init: number @value among its descriptors is where the filter asks */
        MESSAGE_TERMINAL,     /* from init: the master's descriptor comes along */
        MESSAGE_TRIED,        /* from the prober: what the attempt gave, see prover_try() */
        MESSAGE_UNSTARTED,    /* from init: exec failed with @value */
        MESSAGE_STOPPED,      /* from init: the command was stopped by signal @value */
        MESSAGE_ENDED,        /* from init: @value as wait() gives it */
        MESSAGE_TRY,          /* to the prober: way number @value, to @to and @port; then a datagram to @marker */
        MESSAGE_PROVEN,       /* to the prober: that was all */
        MESSAGE_GO,           /* to init: start the command */
        MESSAGE_SIGNAL,       /* to init: for the command */
        MESSAGE_SIGNAL_GROUP, /* to init: for the command and the processes of its group */
};

struct message {
        enum message_kind kind;
        int value;
        struct ip_prefix to, marker;
        uint16_t port, marker_port; /* @marker_port 0: there is none */
        struct err err;
};

struct run {
        struct sandbox sandbox; /* first: enforcers get this address */
        const struct sandbox_options *options;
        struct identity identity;
        struct seccomp_filter filter;
        bool is_asked; /* the filter asks; see attempt.h */
        struct attempts *attempts;
        struct prover *prover;
        bool is_proven; /* by a proof that was kept */
        char *cwd;
        sigset_t mask; /* as it was at the start, and is for the command */
        struct stdio stdio;

        int channel_fd;       /* the supervisor's end */
        int inner_channel_fd; /* init's end */
        int init_pidfd;
        struct loop_io channel_io;

        enum { RUN_STARTS, RUN_RUNS, RUN_DRAINS } phase;
        bool has_ended;
        bool knows_stop;     /* that the command has stopped is no news, but the answer to a signal */
        bool is_cut;         /* the user does not want to see the rest of the output */
        int wait_status;     /* as wait() gives it; -1: the command was not run */
        int status;          /* once it has ended: for the shell */
        struct rusage usage; /* of the command and all that it started */
        bool has_usage;
        struct err *err;
};

/* birth_give - make N and init (in the supervisor). What is made is in @run; nothing of it is left after a failure but
 * descriptors. Return: 0 or a negative errno. */
int birth_give(struct run *run, struct err *err);

/* init_main - the life of init, in its own process. Return: its exit status, which nobody looks at. */
int init_main(struct run *run);

/* confine_self - become the command's user, give up every right, and put filters in force (in init)
 *
 * What comes after it is under the same restrictions as the command.
 * @ret_listener_fd: where the filter asks; -1 where it does not
 *
 * Return: 0 or a negative errno.
 */
int confine_self(const struct run *run, int *ret_listener_fd, struct err *err);

/* message_send - @fd to hand over, or -1. Return: 0 or a negative errno. */
int message_send(int channel_fd, const struct message *message, int fd);

/* message_receive - @ret_fd: what was handed over, or -1
 *
 * Return: 0; -EPIPE where the other end is gone; -EAGAIN with @dont_wait where there is none; another negative errno.
 */
int message_receive(int channel_fd, bool dont_wait, struct message *ret, int *ret_fd);
