/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "sys/child.h"
#include "sys/netns.h"

/* Programs that a trial runs. */

#define COMMAND_WORDS_MAX 96

/* An argument list, ended by NULL; what is added is copied. Initialise with {0}. */
struct command_line {
        size_t n;
        bool failed; /* memory or room ran out */
        char *words[COMMAND_WORDS_MAX + 1];
};

void command_line_done(struct command_line *line);

#define _cleanup_command_line_ _cleanup_(command_line_done)

/* command_line_add - one more word at the end, formatted */
void command_line_add(struct command_line *line, const char *format, ...) _printf_(2, 3);

/* command_line_append - the words of another one at the end */
void command_line_append(struct command_line *line, const struct command_line *more);

/* command_line_check - whether all that was added is in it. Return: 0; -ENOMEM or -E2BIG with the reason. */
int command_line_check(const struct command_line *line, struct err *err);

/* command_self - the path of this very program, to run it as a command
 * @size: at least PATH_MAX
 */
int command_self(char *buf, size_t size, struct err *err);

/* command_find - the path of a program, looked for as execvp() does
 *
 * Return: 0; -EOPNOTSUPP, kind unsupported, with the name of the program where it is not installed.
 */
int command_find(const char *program, char *buf, size_t size, struct err *err);

/* A program that waits to be started, or runs. What it writes goes to memory that both share, so it never waits for a
 * reader. */
struct command {
        struct child child;
        int in_fd; /* what it reads from standard input, at its start; -1: nothing */
        int out_fd, err_fd;
        const char *name;        /* borrowed, for reasons */
        const char *name_server; /* borrowed: the one that it finds in resolv.conf; NULL: the host's */
};

#define COMMAND_INIT                                                                                                   \
        {                                                                                                              \
                .child = CHILD_INIT, .in_fd = -1, .out_fd = -1, .err_fd = -1                                           \
        }

/* command_input - let it find @text in standard input, which is a file to it: "/dev/stdin" can be opened and read. To
 * be called before command_prepare(). */
int command_input(struct command *command, const char *text, struct err *err);

/* command_prepare - a process that will become @line in @netns, and that waits for child_go()
 * @name: of the process, and in reasons; borrowed
 * @line: borrowed only for the call
 * @ret:  COMMAND_INIT, perhaps with an input
 *
 * Return: 0 or a negative errno; command_done() is to be called in any case.
 */
int command_prepare(const char *name, const struct netns *netns, const struct command_line *line, struct command *ret,
                    struct err *err);

/* command_wait - wait until it ended
 * @ret_exit_code: of the program; a signal is an error
 *
 * Return: 0; -ETIMEDOUT; -EIO where a signal ended it or it could not be started, with what it said on standard error.
 */
int command_wait(struct command *command, int64_t timeout_ns, int *ret_exit_code, struct err *err);

/* command_output - what it wrote to standard output, at most @limit_bytes; the caller frees it */
int command_output(struct command *command, size_t limit_bytes, char **ret, size_t *ret_len, struct err *err);

/* command_complaint - the end of what it wrote to standard error, on one line, visible; "" where that is nothing */
void command_complaint(struct command *command, char *buf, size_t size);

void command_done(struct command *command);
