/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define IDENTITY_NOBODY 65534 /* the kernel's overflow user, which owns nothing */
#define IDENTITY_GROUPS 256

/* Who the command runs as. */
struct identity {
        bool is_rootless; /* the invoker has no rights to give: as this very user, inside a user namespace of its own */
        uid_t uid;        /* as the invoker's user namespace counts; never 0 of the host */
        gid_t gid;
        uid_t inner_uid; /* as the command sees it */
        gid_t inner_gid;
        gid_t groups[IDENTITY_GROUPS]; /* further ones; for root only */
        size_t n_groups;
        char *name, *home, *shell; /* what its environment says; NULL: as the invoker's. Borrowed from the C library, or
                                      constant */
};

/* identity_choose - find out who the command is to run as
 * @nested: it may make user namespaces, in which the kernel maps no root whose namespace above had no right to set
 *          capabilities: then it is not root inside
 * @user: a name or number, or NULL: an ordinary user stays who it is; root becomes root of a user namespace whose root
 *        is nobody
 *
 * Return: 0; -EINVAL, kind usage, where there is no such user, it is root, or an ordinary user asked for another;
 * -EPERM, kind unsupported, where this is the host's root without the right to become another user.
 */
int identity_choose(const char *user, bool nested, struct identity *ret, struct err *err);

/* identity_environment - let HOME, USER, LOGNAME and SHELL say who the command runs as */
void identity_environment(const struct identity *identity);
