/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"
#include "sys/netns.h"

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
