/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"

/* lock_host - be the only campaign that measures on this host: two at once would load each other's processors
 *
 * The lock is a file held by flock() in /run/lock (where that is missing, in $XDG_RUNTIME_DIR or /tmp), so the kernel
 * releases it however its holder ends. Return: a descriptor to keep open; -EBUSY with the holder's process id in @err;
 * another negative errno.
 */
int lock_host(struct err *err);
