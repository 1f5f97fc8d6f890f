/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/lock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LOCK_NAME "assay-campaign.lock"

/* Root's file cannot be written by an ordinary user, but it can be locked. */
static int open_lock(char *path, size_t size)
{
        const char *runtime = getenv("XDG_RUNTIME_DIR"), *folders[] = {"/run/lock", runtime, "/tmp"};
        int fd = -ENOENT;

        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                if (!folders[i] || folders[i][0] != '/')
                        continue;
                snprintf(path, size, "%s/" LOCK_NAME, folders[i]);
                fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
                if (fd < 0 && errno == EACCES)
                        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
                if (fd >= 0)
                        return fd;
                fd = -errno;
        }
        return fd;
}

static void read_holder(int fd, char *pid, size_t size)
{
        ssize_t n = pread(fd, pid, size - 1, 0);

        pid[n > 0 ? n : 0] = '\0';
        pid[strspn(pid, "0123456789")] = '\0';
}

int lock_host(struct err *err)
{
        _cleanup_close_ int fd = -1;
        char path[300], pid[24];
        int n;

        fd = open_lock(path, sizeof(path));
        if (fd < 0)
                return err_set_errno(err, ERR_IO, -fd, "cannot open the campaign lock %s", path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK)
                        return err_set_errno(err, ERR_IO, errno, "cannot lock %s", path);
                read_holder(fd, pid, sizeof(pid));
                return err_set(err, ERR_ENVIRONMENT, EBUSY,
                               "another campaign runs on this host (process %s); two at once would disturb each other: "
                               "wait for it, or end it",
                               pid[0] ? pid : "unknown");
        }
        n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
        if (ftruncate(fd, 0) == 0)
                (void)!pwrite(fd, pid, (size_t)n, 0); /* only for the message above */
        return TAKE_FD(fd);
}
