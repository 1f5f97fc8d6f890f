/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "sandbox/enforcer.h"

/* A command that reaches on the network only what its policy allows. docs/sandbox.md describes the processes of a run,
 * SECURITY.md what is a boundary and what is not. */

#define SANDBOX_PATHS_MAX 64

struct sandbox_paths {
        size_t n;
        const char *items[SANDBOX_PATHS_MAX];
};

struct sandbox_options {
        const struct policy *policy;         /* combined; borrowed */
        const struct enforcer_ops *enforcer; /* from enforcer_choose() */
        const char *user;                    /* a name or number, for root only; NULL: see sandbox_run() */
        bool nested;                         /* the command may make user namespaces of its own, and mount in them */
        bool proves_always;                  /* else a proof of the same program, kernel and boot is enough */
        struct sandbox_paths read,
                write; /* both empty: files as the user has them; else nothing but these (Landlock) */

        struct bundle *bundle; /* NULL: none is written; borrowed */
        char *const *argv;     /* the command, found by PATH; ended by NULL */
};

/* How a command ended, as shells count. */
#define SANDBOX_EXIT_OWN_ERROR  125 /* it was not run, or not to its end: the boundary could not be put in force */
#define SANDBOX_EXIT_CANNOT_RUN 126
#define SANDBOX_EXIT_NOT_FOUND  127
#define SANDBOX_EXIT_SIGNAL     128 /* plus the signal's number */

/* sandbox_run - run a command, and wait for its end
 *
 * The process must have one thread. Standard input, output and error are the command's; sockets among them are relayed.
 * Started by root, the command runs as @user, or else as root of a user namespace whose root is the host's nobody
 * (65534); it never has the host's uid 0. Signals that this process gets (INT, TERM, HUP, QUIT, USR1, USR2, WINCH,
 * CONT) are handed on. When this process is killed, the command dies with it. Return: the exit status for the shell, 0
 * to 255, of which 126 and 127 may have a reason in @err (kind environment) that is worth telling; a negative errno
 * where it was not run, or not to its end.
 */
int sandbox_run(const struct sandbox_options *options, struct err *err);
