/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "cli/option.h"

/* A verb of the program: one file (verb-NAME.c), one of these, one man page. A verb either has sub-verbs or runs. */
struct verb {
        const char *name;
        const char *arguments;   /* "EXPERIMENT", "[ZONE]"; NULL: none */
        const char *summary;     /* one line for the list of verbs, without full stop */
        const char *description; /* what --help says under the usage line; may have several lines */
        int min_args, max_args;  /* max -1: any number */
        bool is_command;         /* the arguments are a command: options end at the first of them */
        int failure_code;        /* exit code for each of its own errors, wrong usage included; 0: by kind */
        const struct option *options;
        size_t options_size;
        const struct verb *const *verbs; /* sub-verbs, ended by NULL */

        /* Does the work. stdout is for results, log_*() for messages.
         * @options: @options_size bytes, filled in from the command line
         * Return: the exit code (0 or more); or a negative errno with the reason in @err, whose kind gives the exit
         * code. */
        int (*run)(const void *options, int argc, char **argv, struct err *err);
};

/* verb_main - find the verb in @verbs that the command line names, parse its options, run it
 *
 * --help prints to stdout and gives 0. Errors go to stderr with what to do. Return: the exit code of the program.
 */
int verb_main(const struct verb *const *verbs, int argc, char **argv);
