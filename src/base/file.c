/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* A file of /proc says that it is empty, and one of /proc/sys gives a number whole only to a read with room for it. */
#define UNKNOWN_SIZE_ROOM ((size_t)16 * 1024)

int file_open_failed(struct err *err, int errnum, const char *path)
{
        switch (errnum) {
        case ELOOP:
        case EXDEV:
                return err_set(err, ERR_DATA, errnum,
                               "cannot open %s: it is a link, or behind one, which is not followed", path);
        case ENOENT:
        case ENOTDIR:
        case EISDIR:
        case ENAMETOOLONG:
                return err_set_errno(err, ERR_DATA, errnum, "cannot open %s", path);
        default:
                return err_set_errno(err, ERR_IO, errnum, "cannot open %s", path);
        }
}

/* Reads to the end of the file, which may hold another number of bytes than it says: those of /proc and /sys do. */
static int read_to_end(int fd, size_t expected, size_t limit, char **ret, size_t *ret_len)
{
        size_t allocated = MIN(expected > 0 ? expected : UNKNOWN_SIZE_ROOM, limit) + 2; /* one to notice more, a NUL */
        size_t len = 0;
        _cleanup_free_ char *data = malloc(allocated);

        if (!data)
                return -ENOMEM;
        for (;;) {
                ssize_t n = read(fd, data + len, allocated - 1 - len);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                len += (size_t)n;
                if (len > limit)
                        return -EFBIG;
                if (len == allocated - 1) {
                        size_t more = MIN(allocated * 2 + 4096, limit + 2);
                        char *bigger = realloc(data, more);

                        if (!bigger)
                                return -ENOMEM;
                        data = bigger;
                        allocated = more;
                }
        }
        data[len] = '\0';
        *ret = TAKE_PTR(data);
        *ret_len = len;
        return 0;
}

static int read_with_reason(int fd, const char *name, size_t expected, size_t limit_bytes, char **ret, size_t *ret_len,
                            struct err *err)
{
        int r;

        if (limit_bytes > SIZE_MAX / 4)
                limit_bytes = SIZE_MAX / 4;
        r = expected > limit_bytes ? -EFBIG : read_to_end(fd, expected, limit_bytes, ret, ret_len);
        if (r == -EFBIG)
                return err_set(err, ERR_DATA, EFBIG, "%s has more than the %zu bytes that are read at most", name,
                               limit_bytes);
        if (r == -ENOMEM)
                return err_set_nomem(err);
        if (r < 0)
                return err_set_errno(err, ERR_IO, -r, "cannot read %s", name);
        return 0;
}

int file_read_fd(int fd, const char *name, size_t limit_bytes, char **ret, size_t *ret_len, struct err *err)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return err_set_errno(err, ERR_IO, errno, "cannot examine %s", name);
        if (!S_ISREG(st.st_mode))
                return err_set(err, ERR_DATA, EINVAL, "%s is not a regular file", name);
        return read_with_reason(fd, name, (uint64_t)st.st_size > SIZE_MAX ? SIZE_MAX : (size_t)st.st_size, limit_bytes,
                                ret, ret_len, err);
}

int file_read_stream(int fd, const char *name, size_t limit_bytes, char **ret, size_t *ret_len, struct err *err)
{
        return read_with_reason(fd, name, 0, limit_bytes, ret, ret_len, err);
}

int file_read(int dirfd, const char *path, size_t limit_bytes, char **ret, size_t *ret_len, struct err *err)
{
        _cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        if (fd < 0)
                return file_open_failed(err, errno, path);
        return file_read_fd(fd, path, limit_bytes, ret, ret_len, err);
}

int file_read_beneath(int dirfd, const char *path, size_t limit_bytes, char **ret, size_t *ret_len, struct err *err)
{
        _cleanup_close_ int fd = file_open_beneath(dirfd, path);

        if (fd < 0)
                return file_open_failed(err, -fd, path);
        return file_read_fd(fd, path, limit_bytes, ret, ret_len, err);
}

int file_write_all(int fd, const void *data, size_t len)
{
        const char *p = data;

        while (len > 0) {
                ssize_t n = write(fd, p, len);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        return -EIO;
                p += n;
                len -= (size_t)n;
        }
        return 0;
}

/* The folder that @path is in, opened, so that a rename in it can be synced. */
static int open_parent(int dirfd, const char *path)
{
        const char *slash = strrchr(path, '/');
        _cleanup_free_ char *parent = NULL;
        int fd;

        if (!slash)
                parent = strdup(".");
        else if (slash == path)
                parent = strdup("/");
        else
                parent = strndup(path, (size_t)(slash - path));
        if (!parent)
                return -ENOMEM;
        fd = openat(dirfd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int write_temporary(int parent, const char *name, mode_t mode, struct span data)
{
        _cleanup_close_ int fd = -1;
        int r;

        fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (fd < 0)
                return -errno;
        r = file_write_all(fd, data.data, data.len);
        if (r == 0 && fsync(fd) < 0)
                r = -errno;
        return r;
}

int file_write_atomic(int dirfd, const char *path, mode_t mode, struct span data, struct err *err)
{
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        _cleanup_close_ int parent = -1;
        char temporary[NAME_MAX + 1];
        uint64_t random;
        int r;

        parent = open_parent(dirfd, path);
        if (parent < 0)
                return err_set_errno(err, ERR_IO, -parent, "cannot open the folder of %s", path);
        if (getrandom(&random, sizeof(random), 0) != sizeof(random))
                return err_set_errno(err, ERR_IO, errno, "cannot get random bytes");
        snprintf(temporary, sizeof(temporary), ".%.200s.%016llx" FILE_TEMPORARY_SUFFIX, name,
                 (unsigned long long)random);

        r = write_temporary(parent, temporary, mode, data);
        if (r == 0 && renameat(parent, temporary, parent, name) < 0)
                r = -errno;
        if (r < 0) {
                unlinkat(parent, temporary, 0);
                return err_set_errno(err, ERR_IO, -r, "cannot write %s", path);
        }
        if (fsync(parent) < 0)
                return err_set_errno(err, ERR_IO, errno, "cannot sync the folder of %s", path);
        return 0;
}

int file_open_dir(int dirfd, const char *path)
{
        int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        return fd < 0 ? -errno : fd;
}

int file_make_dir(int dirfd, const char *path, mode_t mode)
{
        if (mkdirat(dirfd, path, mode) < 0 && errno != EEXIST)
                return -errno;
        return file_open_dir(dirfd, path);
}

int file_open_beneath(int dirfd, const char *path)
{
        struct open_how how = {
                .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
        };
        int fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

        return fd < 0 ? -errno : fd;
}

bool file_is_beneath(const char *path)
{
        if (*path == '\0')
                return false;
        for (;;) {
                size_t len = strcspn(path, "/");

                if (len == 0 || (len == 1 && path[0] == '.') || (len == 2 && path[0] == '.' && path[1] == '.'))
                        return false;
                if (path[len] == '\0')
                        return true;
                path += len + 1;
        }
}

static int remove_entries(int dirfd)
{
        _cleanup_closedir_ DIR *dir = NULL;
        struct dirent *entry;
        int first = 0;

        dir = fdopendir(dirfd);
        if (!dir) {
                close(dirfd);
                return -errno;
        }
        while (errno = 0, (entry = readdir(dir))) {
                int r;

                if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                        continue;
                r = file_remove_tree(dirfd, entry->d_name);
                if (r < 0 && first == 0)
                        first = r;
        }
        return first == 0 && errno != 0 ? -errno : first;
}

int file_remove_tree(int dirfd, const char *path)
{
        int fd, first;

        if (unlinkat(dirfd, path, 0) == 0 || errno == ENOENT)
                return 0;
        if (errno != EISDIR && errno != EPERM)
                return -errno;

        fd = file_open_dir(dirfd, path);
        if (fd < 0)
                return fd;
        first = remove_entries(fd);
        if (unlinkat(dirfd, path, AT_REMOVEDIR) < 0 && errno != ENOENT && first == 0)
                first = -errno;
        return first;
}
