/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "sandbox/enforcer.h"
#include "sandbox/names.h"
#include "sandbox/target.h"

/* Who of the command's processes asks for which target, for the record. It decides nothing, and where it cannot look on
 * the run goes on, the record says why, and what was not seen is null there. */
struct askers;

/* A process, as it was when it asked. */
struct asker {
        pid_t pid;                 /* in the supervisor's numbers; 0: not known */
        char executable[PATH_MAX]; /* empty: not known, such as of a process that is gone */
};

/* asker_read - what is known of a process by its number */
void asker_read(pid_t pid, struct asker *ret);

/* askers_open - look on from now on; to be called inside N
 * @names:  to tell targets by; borrowed
 * @counts: what is allowed is counted here, with the bytes of connections: for who lets packets through without seeing
 *          what they belong to
 *
 * Sets sandbox->askers, which askers_free() releases: NULL where no record is wanted. Return: 0; -ENOMEM.
 */
int askers_open(struct sandbox *sandbox, const struct names *names, bool counts, struct err *err);

/* askers_watch - in the supervisor's loop, once there is init */
int askers_watch(struct askers *askers, struct err *err);

/* askers_begin - from now on it is the command that asks; accepts NULL */
void askers_begin(struct askers *askers);

/* askers_looks_up - whether who asks is looked up in the socket that a flow has, since nobody sees it being asked:
 * then the socket has to be there. @askers may be NULL. */
bool askers_looks_up(const struct askers *askers);

/* An end of a flow, in N. */
struct flow_end {
        struct ip_prefix address;
        uint16_t port;
};

/* askers_find - who asks for @target, by its transport, address and port
 * @askers: may be NULL
 * @from:   from where, to look it up; may be NULL
 * @anew:   look it up, else who asked for that target first will do
 *
 * Return: NULL where that is not known. Borrowed until the next call of any function here.
 */
const struct asker *askers_find(struct askers *askers, const struct target *target, const struct flow_end *from,
                                bool anew);

/* askers_end - record what has been counted, after the command's end; accepts NULL */
void askers_end(struct askers *askers);

void askers_free(struct askers *askers);
