/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "sys/netns.h"

/* userns_map_self - give the calling process, alone in a new user namespace, its user and group there
 * @inner_uid, @inner_gid: how they are called inside
 * @outer_uid, @outer_gid: who the process is in the namespace above; it must be so by its effective ids
 *
 * Nobody else is mapped, and supplementary groups can no longer be changed.
 * Return: 0; a negative errno, kind unsupported, where the host does not allow it.
 */
int userns_map_self(uid_t inner_uid, gid_t inner_gid, uid_t outer_uid, gid_t outer_gid, struct err *err);

/* userns_not_allowed - record that a user namespace was refused with @errnum, and which settings may be why */
int userns_not_allowed(struct err *err, int errnum);

/* userns_enter - make this process root of a user namespace and a network namespace of its own, as an ordinary user
 *
 * Then network namespaces, links and queues can be made without any right on the host; BPF programs cannot be loaded
 * and SCHED_FIFO is not granted. Files are still read and written as the user. There is no way back; processes started
 * later are in it, too. The process must have one thread. That it is killed with its parent, if it was so, stays so.
 * Return: 0; a negative errno, kind unsupported, where the host does not allow it.
 */
int userns_enter(struct err *err);

/* userns_join_owner - become root of the user namespace that @ns belongs to, where it is not this process's own, so
 * that
 * @ns can be entered
 *
 * The process must have one thread. There is no way back. Return: 0; a negative errno, kind unsupported, where it
 * belongs to somebody else.
 */
int userns_join_owner(const struct netns *ns, struct err *err);
