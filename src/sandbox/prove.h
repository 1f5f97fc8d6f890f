/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

struct message;
struct run;

/* The proof, before the command runs, that its sandbox is closed: a process under the very same restrictions tries each
 * way out (way.h), one after the other, while the supervisor listens outside. Where the enforcer lets anything through
 * at all, each attempt is followed by a datagram that it has to let through, on the same way: when that arrives, what
 * came before would have arrived, too; so nothing waits for a time-out. That datagram is the positive control as well.
 *
 * A proof that was given is kept, by what it depends on (the program, and with it its filter; the policy; how it was
 * asked for; the kernel and its boot), in $XDG_RUNTIME_DIR/assay or, where that is not set, /run/assay: neither is
 * visible to commands in a sandbox. The folder must belong to the user and to nobody else; without it every start
 * proves. */
struct prover;

/* prover_start - begin, when init is ready; then prover_hear() goes on with each answer
 * @proven: called once, when all is proven
 * @ret:    prover_free() releases it
 *
 * What goes wrong after this has returned ends the loop, with its reason in run->err: -EPERM, kind environment, where
 * something gets out. Return: 0 or a negative errno.
 */
int prover_start(struct run *run, int (*proven)(struct run *run), struct prover **ret);

/* prover_hear - take the answer to the last attempt. Return: 0; a negative errno as above. */
int prover_hear(struct prover *prover, const struct message *answer);

void prover_free(struct prover *prover);

/* prover_try - in a process under the restrictions of the command: answer each request that comes by @channel_fd, until
 * told that all is proven
 * @request: the first
 *
 * Return: its exit status.
 */
int prover_try(int channel_fd, const struct message *request);
