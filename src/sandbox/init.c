/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/macro.h"
#include "sandbox/files.h"
#include "sandbox/runner-internal.h"

#define CHANNEL       3 /* all that init keeps beside what the command gets */
#define COMMAND_STACK ((size_t)256 << 10)

static int say(enum message_kind kind, int value, const struct err *why, int fd)
{
        struct message m = {.kind = kind, .value = value};

        if (why)
                m.err = *why;
        return message_send(CHANNEL, &m, fd);
}

/* ---- preparation ---- */

/* Nothing that was open in the supervisor stays open here. */
static int take_descriptors(const struct run *run, struct err *err)
{
        int channel = run->inner_channel_fd, moved = -1;

        for (int i = 0; i < 3; i++)
                if (run->stdio.command_fds[i] > STDERR_FILENO && dup2(run->stdio.command_fds[i], i) < 0)
                        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot place a standard descriptor");
        if (channel != CHANNEL)
                moved = dup3(channel, CHANNEL, O_CLOEXEC);
        if ((channel != CHANNEL && moved < 0) || close_range(CHANNEL + 1, UINT_MAX, 0) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot close inherited descriptors");
        return 0;
}

static int take_terminal(const struct run *run, struct err *err)
{
        _cleanup_close_ int master = -1, slave = -1;
        int r;

        if (!run->stdio.wants_terminal)
                return 0;
        r = stdio_open_terminal(&run->stdio, &master, &slave, err);
        if (r < 0)
                return r;
        if (!run->identity.is_rootless)
                (void)!fchown(slave, run->identity.uid, run->identity.gid);
        for (int i = 0; i < 3; i++)
                if (run->stdio.command_fds[i] < 0 && dup2(slave, i) < 0)
                        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot place a standard descriptor");
        if (ioctl(slave, TIOCSCTTY, 0) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot control the terminal inside the sandbox");
        return say(MESSAGE_TERMINAL, 0, NULL, master);
}

static int prepare(const struct run *run, struct err *err)
{
        const struct sandbox_options *o = run->options;
        const struct files files = {
                .cwd = run->cwd,
                .resolver = run->sandbox.resolver[0] ? run->sandbox.resolver : "127.0.0.1",
                .shares_network = run->sandbox.enforcer->shares_network,
                .uid = run->identity.is_rootless ? 0 : run->identity.uid,
                .gid = run->identity.is_rootless ? 0 : run->identity.gid,
                .read = &o->read,
                .write = &o->write,
        };
        int listener = -1, r;

        if (setsid() < 0) /* so that the user's terminal is not its own */
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot start a new session");
        r = files_arrange(&files, err);
        if (r == 0)
                r = take_terminal(run, err);
        if (r == 0)
                r = confine_self(run, &listener, err);
        /* Only now, since whoever changes its user loses this; the wait for GO finds out if it was too late. */
        if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                r = err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot ask to be killed with the parent");
        /* it cannot be sent along: sending is among what is asked for. It stays open until it has been fetched */
        if (r == 0 && listener >= 0)
                r = say(MESSAGE_LISTENER, listener, NULL, -1);
        return r;
}

/* ---- the command ---- */

struct start {
        const struct run *run;
        int errnum;
};

/* Whether @name is a path, or there is such a file in a folder of PATH: execvp() says EACCES, too, where it was not
 * allowed to look into some folder. */
static bool is_found(const char *name)
{
        const char *folder = getenv("PATH");
        char path[PATH_MAX];

        if (strchr(name, '/') || !folder)
                return true;
        for (;;) {
                size_t len = strcspn(folder, ":");

                snprintf(path, sizeof(path), "%.*s/%s", (int)len, folder, name);
                if (access(path, F_OK) == 0)
                        return true;
                if (folder[len] == '\0')
                        return false;
                folder += len + 1;
        }
}

/* In the new process, which has the memory of init: on the way to exec. */
static int become_command(void *userdata)
{
        struct start *s = userdata;

        setpgid(0, 0);
        for (int i = 0; i < 3; i++)
                if (s->run->stdio.command_fds[i] < 0) {
                        tcsetpgrp(i, getpid());
                        break;
                }
        sigprocmask(SIG_SETMASK, &s->run->mask, NULL);
        execvp(s->run->options->argv[0], s->run->options->argv);
        s->errnum = errno;
        if (s->errnum == EACCES && !is_found(s->run->options->argv[0]))
                s->errnum = ENOENT;
        return 1;
}

static pid_t start_command(struct start *s)
{
        char *stack = mmap(NULL, COMMAND_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pid_t pid;

        if (stack == MAP_FAILED)
                return -ENOMEM;
        pid = clone(become_command, stack + COMMAND_STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, s);
        if (pid < 0)
                s->errnum = errno;
        return pid;
}

/* Reaps whatever has ended. Return: 1 when the command is among it. */
static int reap(pid_t command)
{
        int status, ended = 0;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
                if (pid != command)
                        continue;
                if (WIFSTOPPED(status)) {
                        say(MESSAGE_STOPPED, WSTOPSIG(status), NULL, -1);
                } else {
                        say(MESSAGE_ENDED, status, NULL, -1);
                        ended = 1;
                }
        }
        return ended;
}

/* Return: 0; -EPIPE where the supervisor is gone. */
static int obey(pid_t command)
{
        struct message m;
        int fd, r;

        r = message_receive(CHANNEL, false, &m, &fd);
        if (r < 0)
                return r;
        close_cleanup(&fd);
        if (m.kind == MESSAGE_SIGNAL)
                kill(command, m.value);
        else if (m.kind == MESSAGE_SIGNAL_GROUP)
                kill(-command, m.value);
        return 0;
}

static void watch(pid_t command, int child_fd)
{
        struct pollfd fds[] = {{.fd = child_fd, .events = POLLIN}, {.fd = CHANNEL, .events = POLLIN}};
        struct signalfd_siginfo info;

        for (;;) {
                if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
                        return;
                if (fds[0].revents) {
                        (void)!read(child_fd, &info, sizeof(info));
                        if (reap(command) == 1)
                                return;
                }
                if (fds[1].revents && obey(command) < 0)
                        return;
        }
}

/* The supervisor has fetched what it needs: from now on nobody but the host's root looks into this process, or takes
 * its descriptors; the command least of all, whose user is the same. */
static void shut_off(void)
{
        prctl(PR_SET_DUMPABLE, 0);
        close_range(CHANNEL + 1, UINT_MAX, 0);
}

/* Until it is told that all is proven, the channel is the prober's. */
static int run_prober(const struct message *request)
{
        int status = -1;
        pid_t pid = fork();

        if (pid == 0)
                _exit(prover_try(CHANNEL, request));
        if (pid > 0)
                while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                        ;
        return status == 0 ? 0 : -EIO;
}

static int run_command(const struct run *run)
{
        struct start s = {.run = run};
        struct message m;
        sigset_t child;
        int child_fd, fd;
        pid_t command;

        do {
                if (message_receive(CHANNEL, false, &m, &fd) < 0)
                        return -EPIPE;
                close_cleanup(&fd);
                shut_off();
                if (m.kind == MESSAGE_TRY && run_prober(&m) < 0)
                        return -EIO;
        } while (m.kind != MESSAGE_GO);
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        child_fd = signalfd(-1, &child, SFD_CLOEXEC);
        if (child_fd < 0)
                return -errno;
        command = start_command(&s);
        if (s.errnum)
                return say(MESSAGE_UNSTARTED, s.errnum, NULL, -1);
        watch(command, child_fd);
        return 0;
}

int init_main(struct run *run)
{
        struct err err = {0};
        int r;

        log_set_sink(NULL, LOG_ERROR, NULL);
        r = take_descriptors(run, &err);
        if (r < 0)
                return 1; /* there is no channel to say why; the supervisor sees it close */
        r = prepare(run, &err);
        if (r < 0) {
                say(MESSAGE_FAILED, 0, &err, -1);
                return 1;
        }
        r = say(MESSAGE_READY, 0, NULL, -1);
        if (r == 0)
                r = run_command(run);
        return r < 0;
}
