/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/hysteresis.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define VALUE_MAX 16
#define ON        "1\n"

/* Between a holder's two locks another may put the old value back; who finds that tries again. */
#define TRIES 100

static ssize_t read_parameter(const struct hysteresis *h, char value[VALUE_MAX])
{
        _cleanup_close_ int fd = open(h->parameter, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : pread(fd, value, VALUE_MAX, 0);

        return n < 0 ? -errno : n;
}

static int write_parameter(const struct hysteresis *h, const char *value, size_t len)
{
        _cleanup_close_ int fd = open(h->parameter, O_WRONLY | O_CLOEXEC);

        return fd < 0 ? -errno : file_write_all(fd, value, len);
}

static bool is_on(const struct hysteresis *h)
{
        char value[VALUE_MAX] = "";

        return read_parameter(h, value) > 0 && value[0] == ON[0];
}

/* Only a file of our own that nobody else can write says what to put back. */
static int open_state(const struct hysteresis *h, int flags)
{
        _cleanup_close_ int fd = open(h->state, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 0077)
                return -EPERM;
        return TAKE_FD(fd);
}

/* The first holder. What is in the file was left by killed ones and is older than what the parameter says now. */
static int switch_on(const struct hysteresis *h, int fd)
{
        char value[VALUE_MAX];
        struct stat st;
        ssize_t n;
        int r = 0;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_size == 0) {
                n = read_parameter(h, value);
                if (n < 0)
                        return (int)n;
                r = file_write_all(fd, value, (size_t)n);
        }
        return r < 0 ? r : write_parameter(h, ON, sizeof(ON) - 1);
}

static int try_hold(const struct hysteresis *h, int fd)
{
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
                int r = switch_on(h, fd);

                if (r < 0) {
                        (void)!ftruncate(fd, 0);
                        return r;
                }
        } else if (errno != EWOULDBLOCK) {
                return -errno;
        }
        if (flock(fd, LOCK_SH) < 0)
                return -errno;
        return is_on(h) ? 0 : -EAGAIN;
}

int hysteresis_hold(struct hysteresis *h)
{
        _cleanup_close_ int fd = open_state(h, O_CREAT);
        int r = -EAGAIN;

        if (fd < 0)
                return fd;
        for (int i = 0; i < TRIES && r == -EAGAIN; i++)
                r = try_hold(h, fd);
        if (r < 0)
                return r;
        h->fd = TAKE_FD(fd);
        return 0;
}

void hysteresis_release(struct hysteresis *h)
{
        _cleanup_close_ int fd = TAKE_FD(h->fd);
        char value[VALUE_MAX];
        ssize_t n;

        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) /* others hold it; closing lets go */
                return;
        n = pread(fd, value, sizeof(value), 0);
        if (n > 0 && write_parameter(h, value, (size_t)n) == 0)
                (void)!ftruncate(fd, 0);
}

/* Who has the state open and is the only one is the last holder. */
void hysteresis_sweep(struct hysteresis *h)
{
        int fd = open_state(h, 0);

        if (fd >= 0)
                h->fd = fd;
        hysteresis_release(h);
}
