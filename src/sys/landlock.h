/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Restrictions that a process puts on itself and all that it starts (Landlock). */

struct landlock_path {
        const char *path;
        bool writes; /* else it can be read and executed */
};

#define LANDLOCK_SCOPES_VERSION 6 /* from which on signals and abstract sockets can be kept inside (Linux 6.12) */

/* landlock_version - what this kernel can do; 0 where it has no Landlock */
int landlock_version(void);

/* landlock_restrict - allow what @paths and all below them are good for, and no other file; neither signals nor
 * abstract sockets out of here
 * @n: 0 leaves files as they are. A path that does not exist is passed over
 *
 * Needs PR_SET_NO_NEW_PRIVS. There is no way back. Signals and abstract sockets need Linux 6.12 and are left as they
 * are on an older kernel. Return: 0; -EOPNOTSUPP, kind unsupported, where files are to be restricted and the kernel has
 * no Landlock.
 */
int landlock_restrict(const struct landlock_path *paths, size_t n, struct err *err);
