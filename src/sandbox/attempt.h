/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "sandbox/enforcer.h"
#include "sandbox/target.h"
#include "sys/seccomp.h"

/* Whom the command asks for, seen where it asks: connect(), sendto() with an address, sendmsg() and sendmmsg() wait
 * until the supervisor has looked at it. This enforces nothing, since the memory with the address can be changed
 * meanwhile; it is for where the network namespace has no way out anyway (deny-all), so that a refusal has a reason and
 * a process, and for where nothing is enforced and only looked on (none). */
struct attempts;

/* attempts_filter - let the calls wait, in a filter that is under construction */
void attempts_filter(struct seccomp_filter *f);

/* attempts_watch - answer from now on, in the supervisor's loop
 * @listener_fd: taken over
 * @ret:         attempts_free() releases it
 */
int attempts_watch(struct sandbox *sandbox, int listener_fd, struct attempts **ret, struct err *err);

void attempts_free(struct attempts *attempts);
