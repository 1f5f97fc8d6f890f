/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

static int read_all(int fd, char *data, size_t size, size_t *ret_len)
{
        size_t len = 0;

        while (len < size) {
                ssize_t n = read(fd, data + len, size - len);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                len += (size_t)n;
        }
        *ret_len = len;
        return 0;
}

int file_read(int dirfd, const char *path, size_t limit_bytes, char **ret, size_t *ret_len, struct err *err)
{
        _cleanup_close_ int fd = -1;
        _cleanup_free_ char *data = NULL;
        struct stat st;
        size_t len = 0;
        int r;

        fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
                return err_set_errno(err, ERR_IO, errno, "cannot open %s", path);
        if (fstat(fd, &st) < 0)
                return err_set_errno(err, ERR_IO, errno, "cannot examine %s", path);
        if (!S_ISREG(st.st_mode))
                return err_set(err, ERR_IO, EINVAL, "%s is not a regular file", path);
        if ((uint64_t)st.st_size > limit_bytes)
                return err_set(err, ERR_DATA, EFBIG, "%s has %lld bytes, at most %zu are read", path,
                               (long long)st.st_size, limit_bytes);

        /* One byte more than it says, to notice that it has grown. */
        data = malloc((size_t)st.st_size + 2);
        if (!data)
                return err_set_nomem(err);
        r = read_all(fd, data, (size_t)st.st_size + 1, &len);
        if (r < 0)
                return err_set_errno(err, ERR_IO, -r, "cannot read %s", path);
        if (len > (size_t)st.st_size)
                return err_set(err, ERR_IO, EBUSY, "%s grew while it was read", path);

        data[len] = '\0';
        *ret = TAKE_PTR(data);
        *ret_len = len;
        return 0;
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
        char temporary[300];
        uint64_t random;
        int r;

        parent = open_parent(dirfd, path);
        if (parent < 0)
                return err_set_errno(err, ERR_IO, -parent, "cannot open the folder of %s", path);
        if (getrandom(&random, sizeof(random), 0) != sizeof(random))
                return err_set_errno(err, ERR_IO, errno, "cannot get random bytes");
        if (snprintf(temporary, sizeof(temporary), ".%s.%016llx", name, (unsigned long long)random) >=
            (int)sizeof(temporary))
                return err_set(err, ERR_IO, ENAMETOOLONG, "the name %s is too long", name);

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
        while ((entry = readdir(dir))) {
                int r;

                if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                        continue;
                r = file_remove_tree(dirfd, entry->d_name);
                if (r < 0 && first == 0)
                        first = r;
        }
        return first;
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
