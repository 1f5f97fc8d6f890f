/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/macro.h"

/* What the headers of the oldest supported system do not name. */
#define FS_REFER            (UINT64_C(1) << 13)
#define FS_TRUNCATE         (UINT64_C(1) << 14)
#define FS_IOCTL_DEV        (UINT64_C(1) << 15)
#define SCOPE_ABSTRACT_UNIX (UINT64_C(1) << 0)
#define SCOPE_SIGNAL        (UINT64_C(1) << 1)

struct ruleset {
        uint64_t fs, net, scoped; /* as in the kernel, whose headers may have less */
};

#define READS (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITES                                                                                                         \
        (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |              \
         LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |                    \
         LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |                 \
         LANDLOCK_ACCESS_FS_MAKE_SYM)
#define OF_A_FILE                                                                                                      \
        (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE |     \
         FS_IOCTL_DEV)

int landlock_version(void)
{
        long version = syscall(__NR_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

        return version < 0 ? 0 : (int)version;
}

/* Every right over files that this kernel can refuse. */
static uint64_t known_rights(int version)
{
        uint64_t rights = READS | WRITES;

        if (version >= 2)
                rights |= FS_REFER;
        if (version >= 3)
                rights |= FS_TRUNCATE;
        if (version >= 5)
                rights |= FS_IOCTL_DEV;
        return rights;
}

static int allow_path(int ruleset_fd, const struct landlock_path *path, uint64_t known, struct err *err)
{
        _cleanup_close_ int fd = open(path->path, O_PATH | O_CLOEXEC);
        struct landlock_path_beneath_attr rule = {
                .allowed_access = path->writes ? known : known & READS,
                .parent_fd = fd,
        };
        struct stat st;

        if (fd < 0 && (errno == ENOENT || errno == EACCES))
                return 0;
        if (fd < 0 || fstat(fd, &st) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot open %s", path->path);
        if (!S_ISDIR(st.st_mode))
                rule.allowed_access &= OF_A_FILE;
        if (syscall(__NR_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot allow files below %s", path->path);
        return 0;
}

int landlock_restrict(const struct landlock_path *paths, size_t n, struct err *err)
{
        int version = landlock_version(), r = 0;
        struct ruleset attr = {
                .fs = n > 0 ? known_rights(version) : 0,
                .scoped = version >= LANDLOCK_SCOPES_VERSION ? SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL : 0,
        };
        _cleanup_close_ int fd = -1;

        if (n > 0 && version < 1)
                return err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP,
                               "restricting files (--read, --write) needs a kernel with Landlock switched on");
        if (attr.fs == 0 && attr.scoped == 0)
                return 0;
        fd = (int)syscall(__NR_landlock_create_ruleset, &attr,
                          attr.scoped ? sizeof(attr) : offsetof(struct ruleset, net), 0);
        if (fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot prepare restrictions (Landlock)");
        for (size_t i = 0; i < n && r == 0; i++)
                r = allow_path(fd, &paths[i], attr.fs, err);
        if (r == 0 && syscall(__NR_landlock_restrict_self, fd, 0) < 0)
                r = err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot put restrictions in force (Landlock)");
        return r;
}
