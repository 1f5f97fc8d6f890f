/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/cleanup.h"
#include "base/json.h"
#include "campaign/adapter.h"
#include "campaign/command.h"

/* A client of an origin that a trial runs: a verb of this very program, which checks its answers itself and prints its
 * result as JSON, with the samples of each request. */

/* client_line - begin the line of "assay VERB SUBVERB" that prints as client_read() wants it */
int client_line(const char *verb, const char *subverb, struct command_line *line, struct err *err);

/* client_add_quantity - two more words, an option and its value with a unit ("" where it has none) */
void client_add_quantity(struct command_line *line, const char *option, int64_t value, const char *unit);

/* client_wait - wait until it ended; by its exit code 1 it says that requests failed, which its result names
 *
 * Return: 0; a negative errno with the reason, which has the end of what it wrote to standard error.
 */
int client_wait(struct command *client, struct err *err);

/* What it printed. */
struct client_result {
        json_t *root;
        json_t *counts, *notes, *failures, *samples; /* within it */
};

void client_result_done(struct client_result *result);

#define _cleanup_client_result_ _cleanup_(client_result_done)

/* client_read - its result, of a client that ended
 * @n:   as many samples have to be in it
 * @ret: client_result_done() releases it
 */
int client_read(struct command *client, size_t n, struct client_result *ret, struct err *err);

/* client_sample_ns - a duration of a sample; null is SAMPLE_MISSING. Return: 0; -EINVAL where it is none. */
int client_sample_ns(const json_t *value, int64_t *ret);

/* client_counts - what it counted, with the slots of a trial
 *
 * Return: a new reference, or NULL if memory ran out.
 */
json_t *client_counts(const struct client_result *result, int64_t requests, int64_t warmup);
