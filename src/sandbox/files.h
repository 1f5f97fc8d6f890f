/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "sandbox/sandbox.h"

/* What of the host's files the command sees: all of them, but /run, /tmp, /dev and /proc of its own, no cgroups, and in
 * /etc what looks up names by the sandbox's resolver. */
struct files {
        const char *cwd;      /* absolute; stays visible also below /tmp, if files are not restricted */
        const char *resolver; /* address of the name server */
        bool shares_network;  /* then /run, /tmp and the configuration of names stay the host's */
        uid_t uid;            /* whom the private folders belong to */
        gid_t gid;
        const struct sandbox_paths *read, *write; /* stay visible also below /tmp */
};

/* files_arrange - mount all that, for good, in the caller's mount namespace, which must be its own
 *
 * Needs CAP_SYS_ADMIN over it, to be in the new PID namespace, and one thread. Changes the working directory to @cwd.
 * Return: 0 or a negative errno.
 */
int files_arrange(const struct files *files, struct err *err);

/* files_is_within - whether @path is @folder or lies below it; both absolute, without links and dots */
bool files_is_within(const char *path, const char *folder);
