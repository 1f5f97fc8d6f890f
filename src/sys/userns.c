/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/userns.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

static int write_map(const char *path, const char *text, struct err *err)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
        int r = fd < 0 ? -errno : file_write_all(fd, text, strlen(text));

        return r < 0 ? err_set_errno(err, ERR_UNSUPPORTED, -r, "cannot write %s", path) : 0;
}

int userns_map_self(uid_t inner_uid, gid_t inner_gid, uid_t outer_uid, gid_t outer_gid, struct err *err)
{
        char uid_map[64], gid_map[64];
        int r;

        snprintf(uid_map, sizeof(uid_map), "%u %u 1", (unsigned)inner_uid, (unsigned)outer_uid);
        snprintf(gid_map, sizeof(gid_map), "%u %u 1", (unsigned)inner_gid, (unsigned)outer_gid);
        r = write_map("/proc/self/setgroups", "deny", err); /* without the right to drop groups one may not map them */
        if (r == 0)
                r = write_map("/proc/self/uid_map", uid_map, err);
        if (r == 0)
                r = write_map("/proc/self/gid_map", gid_map, err);
        return r;
}

int userns_not_allowed(struct err *err, int errnum)
{
        return err_set_errno(err, ERR_UNSUPPORTED, errnum,
                             "this host does not allow user namespaces (see user.max_user_namespaces, "
                             "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)");
}

int userns_enter(struct err *err)
{
        uid_t uid = geteuid();
        gid_t gid = getegid();
        int signal = 0, r;

        prctl(PR_GET_PDEATHSIG, &signal);
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
                return userns_not_allowed(err, errno);
        r = userns_map_self(0, 0, uid, gid, err);
        if (r < 0)
                return r;
        /* The kernel clears it where a process gains capabilities, as this one just did. */
        if (prctl(PR_SET_PDEATHSIG, signal) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot ask to be killed with the parent");
        return 0;
}

int userns_join_owner(const struct netns *ns, struct err *err)
{
        _cleanup_close_ int owner = ioctl(ns->fd, NS_GET_USERNS);
        struct stat own, other;

        /* one that lies outside of this process's own is not shown: then there is none to join */
        if (owner < 0 && errno == EPERM)
                return 0;
        if (owner < 0 || fstat(owner, &other) < 0 || stat("/proc/self/ns/user", &own) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot find out whose the network namespace is");
        if (own.st_dev == other.st_dev && own.st_ino == other.st_ino)
                return 0;
        if (setns(owner, CLONE_NEWUSER) < 0)
                return err_set_errno(err, ERR_UNSUPPORTED, errno, "the network namespace belongs to another user");
        return 0;
}
