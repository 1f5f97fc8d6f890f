/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
        bool armed, struck;
        enum fault_call kind;
        unsigned left;
        char trace[4096];
        size_t traced;
} fault;

/* The linker sends calls of X to __wrap_X, and __real_X is the true one (--wrap). With 64-bit offsets, which Meson asks
 * for, openat and ftruncate are names of openat64 and ftruncate64. */
#define WRAPPED(type, name, ...)                                                                                       \
        type __real_##name(__VA_ARGS__);                                                                               \
        type __wrap_##name(__VA_ARGS__)

static bool count_down(void)
{
        if (fault.left > 0)
                fault.left--;
        if (fault.left > 0)
                return false;
        if (fault.struck && fault.kind != FAULT_FULL)
                return false;
        fault.struck = true;
        return true;
}

static bool allocation_fails(void)
{
        if (!fault.armed || fault.kind != FAULT_ALLOCATION || !count_down())
                return false;
        errno = ENOMEM;
        return true;
}

/* Whether a call fails, with errno set; does not come back where the process is to die. */
static bool call_fails(char letter, bool takes_space)
{
        if (!fault.armed)
                return false;
        if (letter && fault.traced + 1 < sizeof(fault.trace))
                fault.trace[fault.traced++] = letter;
        if (fault.kind == FAULT_ALLOCATION || (fault.kind == FAULT_FULL && !takes_space) || !count_down())
                return false;
        if (fault.kind == FAULT_KILL)
                raise(SIGKILL);
        errno = fault.kind == FAULT_FULL ? ENOSPC : EIO;
        return true;
}

void fault_arm(enum fault_call kind, unsigned n)
{
        memset(&fault, 0, sizeof(fault));
        fault.kind = kind;
        fault.left = n;
        fault.armed = true;
}

bool fault_disarm(void)
{
        fault.armed = false;
        return fault.struck;
}

const char *fault_trace(void)
{
        return fault.trace;
}

WRAPPED(void *, malloc, size_t size)
{
        return allocation_fails() ? NULL : __real_malloc(size);
}

WRAPPED(void *, calloc, size_t n, size_t size)
{
        return allocation_fails() ? NULL : __real_calloc(n, size);
}

WRAPPED(void *, realloc, void *p, size_t size)
{
        return allocation_fails() ? NULL : __real_realloc(p, size);
}

WRAPPED(void *, reallocarray, void *p, size_t n, size_t size)
{
        return allocation_fails() ? NULL : __real_reallocarray(p, n, size);
}

WRAPPED(char *, strdup, const char *s)
{
        return allocation_fails() ? NULL : __real_strdup(s);
}

WRAPPED(char *, strndup, const char *s, size_t n)
{
        return allocation_fails() ? NULL : __real_strndup(s, n);
}

WRAPPED(DIR *, fdopendir, int fd)
{
        return allocation_fails() ? NULL : __real_fdopendir(fd);
}

int __real_openat64(int dirfd, const char *path, int flags, ...);
int __wrap_openat64(int dirfd, const char *path, int flags, ...);

int __wrap_openat64(int dirfd, const char *path, int flags, ...)
{
        bool writes = (flags & O_ACCMODE) != O_RDONLY;
        mode_t mode = 0;

        if (flags & O_CREAT) {
                va_list args;

                va_start(args, flags);
                mode = va_arg(args, mode_t);
                va_end(args);
        }
        return call_fails(writes ? 'o' : 0, flags & O_CREAT) ? -1 : __real_openat64(dirfd, path, flags, mode);
}

WRAPPED(int, mkdirat, int dirfd, const char *path, mode_t mode)
{
        return call_fails('m', true) ? -1 : __real_mkdirat(dirfd, path, mode);
}

WRAPPED(ssize_t, read, int fd, void *data, size_t size)
{
        return call_fails(0, false) ? -1 : __real_read(fd, data, size);
}

WRAPPED(ssize_t, write, int fd, const void *data, size_t size)
{
        bool strikes = fault.armed && fault.kind != FAULT_ALLOCATION && fault.left == 1;

        /* half of it arrives, as when a disk fills up or the power goes */
        if (strikes && size > 1 && __real_write(fd, data, size / 2) < 0)
                return -1;
        return call_fails('w', true) ? -1 : __real_write(fd, data, size);
}

WRAPPED(int, fsync, int fd)
{
        struct stat st;
        bool is_dir = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);

        return call_fails(is_dir ? 'd' : 'f', false) ? -1 : __real_fsync(fd);
}

WRAPPED(int, ftruncate64, int fd, off_t size)
{
        return call_fails('t', false) ? -1 : __real_ftruncate64(fd, size);
}

WRAPPED(int, renameat, int from, const char *old, int to, const char *new)
{
        return call_fails('r', false) ? -1 : __real_renameat(from, old, to, new);
}

WRAPPED(int, unlinkat, int dirfd, const char *path, int flags)
{
        return call_fails('u', false) ? -1 : __real_unlinkat(dirfd, path, flags);
}
