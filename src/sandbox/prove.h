/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

struct message;
struct run;

/* The proof, before the command runs, that its sandbox is closed: a process under the very same restrictions tries each
 * way out (way.h), one after the other, while the supervisor listens outside. What is tried after a message of the
 * prober has arrived comes after it, so nothing has to be waited for.
 *
 * A proof that was given is kept, by the digest of what it depends on (the program, the filter, the policy, how it was
 * asked for, the kernel and its boot), in $XDG_RUNTIME_DIR/assay or, where that is not set, /run/assay: neither is
 * visible to commands in a sandbox. The folder must belong to the user and to nobody else; without it every start
 * proves. */
struct prover;

/* prover_start - begin, when init is ready; then prover_hear() goes on with each answer
 * @ret: prover_free() releases it
 *
 * Return: 1 where a kept proof will do and nothing is to be tried; 0; a negative errno.
 */
int prover_start(struct run *run, struct prover **ret, struct err *err);

/* prover_hear - take the answer to the last attempt, and ask for the next
 *
 * Return: 0; 1 when all is proven; -EPERM, kind environment, where something gets out; another negative errno.
 */
int prover_hear(struct prover *prover, const struct message *answer, struct err *err);

void prover_free(struct prover *prover);

/* prover_try - in a process under the restrictions of the command: answer each request that comes by @channel_fd, until
 * told that all is proven
 * @request: the first
 *
 * Return: its exit status.
 */
int prover_try(int channel_fd, const struct message *request);
