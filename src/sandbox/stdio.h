/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/err.h"
#include "sandbox/relay.h"
#include "sys/loop.h"

/* Standard input, output and error of the command. Files, pipes and devices it gets as they are. A socket stays
 * outside, where its rights are, and a pipe leads to it. Where the user sits at a terminal, the command gets one of its
 * own, with job control, and what is typed and shown is copied. */
struct stdio {
        int command_fds[3]; /* what becomes 0 to 2 of the command; -1: its terminal */
        bool wants_terminal;
        struct termios modes; /* of the user's terminal, to be given to the command's, and back to the user's */
        struct winsize size;

        struct relay relays[3]; /* 0: into the command; 1, 2: out of it */
        int pipe_fds[3];        /* the supervisor's ends */
        int screen_fd, master_fd, master_write_fd;
        bool is_raw;
};

/* What stdio_done() accepts beside what stdio_prepare() made. */
extern const struct stdio STDIO_NONE;

/* stdio_prepare - look at 0 to 2, and make the pipes. stdio_done() releases them, also after a failure.
 *
 * Return: 0; -EINVAL, kind usage, where one is a kind of descriptor that is not handed on.
 */
int stdio_prepare(struct stdio *stdio, struct err *err);

/* stdio_start - in the supervisor, when init has its descriptors: begin to copy. Return: 0 or a negative errno. */
int stdio_start(struct stdio *stdio, struct loop *loop, struct err *err);

/* stdio_open_terminal - in init: make the command's terminal in the sandbox's own /dev/pts
 * @ret_master, @ret_slave: its two ends, the caller's
 */
int stdio_open_terminal(const struct stdio *stdio, int *ret_master, int *ret_slave, struct err *err);

/* stdio_attach - in the supervisor: copy between the user's terminal and @master_fd, which is taken over */
int stdio_attach(struct stdio *stdio, struct loop *loop, int master_fd, struct err *err);

/* stdio_resize - the user's terminal has another size */
void stdio_resize(struct stdio *stdio);

/* stdio_suspend, stdio_resume - give the user's terminal its modes back for the time that the command is stopped */
void stdio_suspend(struct stdio *stdio);
void stdio_resume(struct stdio *stdio);

/* stdio_is_drained - whether all that the command wrote has arrived, or never will */
bool stdio_is_drained(const struct stdio *stdio);

void stdio_done(struct stdio *stdio);
