/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

/* What happened in a trial, line by line, each with the time since it began: the file `log` in the trial's folder, for
 * who has to find out why a trial is as it is. Nothing is computed from it. Messages of the libraries, also those that
 * nobody is shown, go into it while it is open. */

#define CHRONICLE_NAME      "log"
#define CHRONICLE_BYTES_MAX ((size_t)64 * 1024) /* what comes after that is only counted */

struct chronicle {
        int64_t began_ns; /* CLOCK_MONOTONIC */
        struct text text;
        uint64_t left_out; /* lines */
};

/* chronicle_open - begin; there is one at a time, and @c stays where it is until chronicle_close() */
void chronicle_open(struct chronicle *c);

/* chronicle_close - take no more messages and release what was noted */
void chronicle_close(struct chronicle *c);

#define _cleanup_chronicle_ _cleanup_(chronicle_close)

/* chronicle_note - add a line */
void chronicle_note(struct chronicle *c, const char *format, ...) _printf_(2, 3);

/* chronicle_write - write what was noted into the folder @dirfd. Return: 0, or a negative errno with the reason. */
int chronicle_write(const struct chronicle *c, int dirfd, struct err *err);
