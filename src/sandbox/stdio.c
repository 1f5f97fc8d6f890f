/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/stdio.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/macro.h"

static const char *const names[] = {"standard input", "standard output", "standard error"};

const struct stdio STDIO_NONE = {
        .command_fds = {0, 1, 2},
        .pipe_fds = {-1, -1, -1},
        .relays = {RELAY_INIT, RELAY_INIT, RELAY_INIT},
        .screen_fd = -1,
        .master_fd = -1,
        .master_write_fd = -1,
};

/* A pipe between the command's descriptor @i and the socket that it stands for. */
static int make_pipe(struct stdio *stdio, int i, struct err *err)
{
        int ends[2], inner, outer;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot create a pipe");
        inner = i == 0 ? ends[0] : ends[1];
        outer = i == 0 ? ends[1] : ends[0];
        fcntl(outer, F_SETFL, O_NONBLOCK);
        stdio->command_fds[i] = inner;
        stdio->pipe_fds[i] = outer;
        return 0;
}

/* Devices that lead nowhere, whatever is written to them. Others may be a link of the host's (tun), or a machine. */
static bool is_harmless_device(dev_t device)
{
        static const unsigned numbers[] = {3, 5, 7, 8, 9}; /* null, zero, full, random, urandom */

        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
                if (device == makedev(1, numbers[i]))
                        return true;
        return false;
}

/* Whether the command may have the descriptor @fd, of which the status is @st, as it is. */
static bool is_handed_on(int fd, const struct stat *st)
{
        struct statfs fs;

        if (S_ISREG(st->st_mode)) /* a namespace of the host looks like a file */
                return fstatfs(fd, &fs) == 0 && fs.f_type != NSFS_MAGIC;
        return S_ISFIFO(st->st_mode) || (S_ISCHR(st->st_mode) && (isatty(fd) || is_harmless_device(st->st_rdev)));
}

int stdio_prepare(struct stdio *stdio, struct err *err)
{
        bool is_terminal[3];
        int r = 0;

        *stdio = STDIO_NONE;
        for (int i = 0; i < 3 && r == 0; i++) {
                struct stat st;

                if (fstat(i, &st) < 0)
                        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot examine %s", names[i]);
                is_terminal[i] = S_ISCHR(st.st_mode) && isatty(i);
                if (S_ISSOCK(st.st_mode))
                        r = make_pipe(stdio, i, err);
                else if (!is_handed_on(i, &st))
                        r = err_set(err, ERR_USAGE, EINVAL,
                                    "%s is neither a file, a pipe, a terminal nor a socket, and is not handed on",
                                    names[i]);
        }
        if (r < 0)
                return r;
        stdio->wants_terminal = is_terminal[0] && (is_terminal[1] || is_terminal[2]) &&
                                tcgetattr(STDIN_FILENO, &stdio->modes) == 0 &&
                                ioctl(STDIN_FILENO, TIOCGWINSZ, &stdio->size) == 0;
        for (int i = 0; stdio->wants_terminal && i < 3; i++)
                if (is_terminal[i])
                        stdio->command_fds[i] = -1;
        return 0;
}

int stdio_start(struct stdio *stdio, struct loop *loop, struct err *err)
{
        int r = 0;

        for (int i = 0; i < 3 && r == 0; i++) {
                struct relay *relay = &stdio->relays[i];

                if (stdio->pipe_fds[i] < 0)
                        continue;
                close(stdio->command_fds[i]);
                stdio->command_fds[i] = -1;
                *relay = (struct relay){
                        .from_fd = i == 0 ? i : stdio->pipe_fds[i],
                        .to_fd = i == 0 ? TAKE_FD(stdio->pipe_fds[i]) : i,
                        .from_is_socket = i == 0,
                        .to_is_socket = i != 0,
                        .owns_to = i == 0,
                };
                r = relay_start(relay, loop);
        }
        return r < 0 ? err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot relay a standard descriptor") : 0;
}

/* ---- the terminal ---- */

int stdio_open_terminal(const struct stdio *stdio, int *ret_master, int *ret_slave, struct err *err)
{
        _cleanup_close_ int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
        int unlocked = 0, slave;

        if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot open a terminal inside the sandbox");
        slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (slave < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot open a terminal inside the sandbox");
        tcsetattr(slave, TCSANOW, &stdio->modes);
        ioctl(slave, TIOCSWINSZ, &stdio->size);
        *ret_master = TAKE_FD(master);
        *ret_slave = slave;
        return 0;
}

/* Another description of the terminal that can be made not to wait without changing it for everybody else; where it
 * belongs to another user, this one, which may have to wait. */
static int open_screen(void)
{
        int number = isatty(STDOUT_FILENO) ? STDOUT_FILENO : STDERR_FILENO, fd;
        char path[32];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", number);
        fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        return fd < 0 ? fcntl(number, F_DUPFD_CLOEXEC, 0) : fd;
}

int stdio_attach(struct stdio *stdio, struct loop *loop, int master_fd, struct err *err)
{
        int r;

        stdio->master_fd = master_fd;
        stdio->master_write_fd = fcntl(master_fd, F_DUPFD_CLOEXEC, 0);
        stdio->screen_fd = open_screen();
        if (stdio->master_write_fd < 0 || stdio->screen_fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot open the terminal once more");
        fcntl(master_fd, F_SETFL, O_RDWR | O_NONBLOCK);
        stdio->relays[0] = (struct relay){.from_fd = STDIN_FILENO, .to_fd = stdio->master_write_fd};
        stdio->relays[1] = (struct relay){.from_fd = master_fd, .to_fd = stdio->screen_fd};
        stdio_resume(stdio);
        r = relay_start(&stdio->relays[0], loop);
        if (r == 0)
                r = relay_start(&stdio->relays[1], loop);
        return r < 0 ? err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot relay the terminal") : 0;
}

void stdio_resize(struct stdio *stdio)
{
        struct winsize size;

        if (stdio->master_fd >= 0 && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
                ioctl(stdio->master_fd, TIOCSWINSZ, &size); /* which also signals the command */
}

void stdio_resume(struct stdio *stdio)
{
        struct termios raw = stdio->modes;

        if (stdio->master_fd < 0 || stdio->is_raw)
                return;
        cfmakeraw(&raw);
        tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
        stdio->is_raw = true;
        stdio_resize(stdio);
}

void stdio_suspend(struct stdio *stdio)
{
        if (stdio->is_raw)
                tcsetattr(STDIN_FILENO, TCSADRAIN, &stdio->modes);
        stdio->is_raw = false;
}

bool stdio_is_drained(const struct stdio *stdio)
{
        return !relay_is_running(&stdio->relays[1]) && !relay_is_running(&stdio->relays[2]);
}

void stdio_done(struct stdio *stdio)
{
        stdio_suspend(stdio);
        for (size_t i = 0; i < ARRAY_SIZE(stdio->relays); i++) {
                relay_done(&stdio->relays[i]);
                if (stdio->command_fds[i] > STDERR_FILENO)
                        close(stdio->command_fds[i]);
                close_cleanup(&stdio->pipe_fds[i]);
                stdio->command_fds[i] = stdio->pipe_fds[i] = -1;
        }
        close_cleanup(&stdio->screen_fd);
        close_cleanup(&stdio->master_fd);
        close_cleanup(&stdio->master_write_fd);
        stdio->screen_fd = stdio->master_fd = stdio->master_write_fd = -1;
}
