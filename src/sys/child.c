/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/child.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio_ext.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"

#define EXIT_FAILED  255
#define KEEP_FDS_MAX 64
#define KILL_WAIT_NS (5 * NSEC_PER_SEC)

static int compare_fds(const void *a, const void *b)
{
        const int *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

/* Closes every descriptor from 3 up but @n that are kept. */
static int close_others(int *keep, size_t n)
{
        unsigned first = 3;

        qsort(keep, n, sizeof(*keep), compare_fds);
        for (size_t i = 0; i < n; i++) {
                unsigned fd = (unsigned)keep[i];

                if (fd < first)
                        continue;
                if (fd > first && close_range(first, fd - 1, 0) < 0)
                        return -errno;
                first = fd + 1;
        }
        return close_range(first, UINT_MAX, 0) < 0 ? -errno : 0;
}

static int redirect_stdio(void)
{
        int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
                return -errno;
        return 0; /* what is left of @fd goes with the other descriptors */
}

static void reset_signals(void)
{
        struct sigaction by_default = {.sa_handler = SIG_DFL};
        sigset_t none;

        for (int i = 1; i < NSIG; i++)
                sigaction(i, &by_default, NULL); /* the two that cannot be set are refused, harmlessly */
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
}

static int set_up(const struct child_options *options, const struct child_side *side, pid_t parent, struct err *err)
{
        int keep[KEEP_FDS_MAX + 1] = {side->channel_fd};
        int r;

        /* A parent that died before the request to be killed with it was in force shows as another parent. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot ask to be killed with the parent");
        if (getppid() != parent)
                _exit(EXIT_FAILED);

        log_set_sink(NULL, LOG_ERROR, NULL);
        __fpurge(stdout);
        __fpurge(stderr);
        reset_signals();
        if (options->name)
                prctl(PR_SET_NAME, options->name);
        if (!options->in_group)
                setsid(); /* a new process leads no group, so this cannot fail */
        if (options->netns) {
                r = netns_enter(options->netns, err);
                if (r < 0)
                        return r;
        }
        if (!options->keep_stdio) {
                r = redirect_stdio();
                if (r < 0)
                        return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot redirect to /dev/null");
        }
        for (size_t i = 0; i < options->n_keep_fds; i++)
                keep[1 + i] = options->keep_fds[i];
        r = close_others(keep, 1 + options->n_keep_fds);
        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot close inherited descriptors");
        return 0;
}

/* In the new process. */
static int run(const struct child_options *options, int (*fn)(struct child_side *side, void *userdata), void *userdata,
               int channel_fd, pid_t parent)
{
        struct child_side side = {.channel_fd = channel_fd};
        struct err failure = {0};

        if (set_up(options, &side, parent, &failure) < 0)
                return child_failed(&side, &failure);
        return fn(&side, userdata) & 0xff;
}

int child_start(const struct child_options *options, int (*fn)(struct child_side *side, void *userdata), void *userdata,
                struct child *ret, struct err *err)
{
        _cleanup_close_ int ours = -1, theirs = -1;
        pid_t parent = getpid(), pid;
        int pair[2], pidfd;

        if (options->n_keep_fds > KEEP_FDS_MAX)
                return err_set(err, ERR_BUG, E2BIG, "a child can keep at most %d descriptors", KEEP_FDS_MAX);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot create a socket pair");
        ours = pair[0];
        theirs = pair[1];

        pid = fork();
        if (pid < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot start a process");
        if (pid == 0)
                _exit(run(options, fn, userdata, theirs, parent));

        pidfd = pidfd_open(pid, 0); /* close-on-exec by nature; the number cannot be reused before it is reaped */
        if (pidfd < 0) {
                int saved = errno;

                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
                return err_set_errno(err, ERR_ENVIRONMENT, saved, "cannot hold a process by descriptor");
        }
        *ret = (struct child){.pid = pid, .pidfd = pidfd, .channel_fd = TAKE_FD(ours)};
        return 0;
}

/* The channel keeps messages whole, and both ends are the same program, so structs travel as they are. */
static int send_message(int fd, const void *data, size_t len)
{
        ssize_t n;

        do
                n = send(fd, data, len, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : 0;
}

static int receive_message(int fd, void *data, size_t len)
{
        ssize_t n;

        do
                n = recv(fd, data, len, 0);
        while (n < 0 && errno == EINTR);
        if (n < 0 && errno != ECONNRESET)
                return -errno;
        return n == (ssize_t)len ? 0 : -EPIPE;
}

int child_ready(struct child_side *side)
{
        struct err none = {0};

        return send_message(side->channel_fd, &none, sizeof(none));
}

int child_failed(struct child_side *side, const struct err *failure)
{
        struct err report = *failure;

        if (report.kind == ERR_NONE)
                err_set(&report, ERR_BUG, 0, "a child failed without giving a reason");
        send_message(side->channel_fd, &report, sizeof(report));
        return EXIT_FAILED;
}

int child_wait_go(struct child_side *side, int64_t *ret_start_ns)
{
        int64_t start_ns;
        int r;

        r = receive_message(side->channel_fd, &start_ns, sizeof(start_ns));
        if (r < 0)
                return r == -EPIPE ? -ECANCELED : r;
        *ret_start_ns = start_ns;
        return 0;
}

/* Polls one descriptor for input until @timeout_ns from now; negative waits for ever. 0, or -ETIMEDOUT. */
static int wait_input(int fd, int64_t timeout_ns)
{
        int64_t end = clock_now_ns(CLOCK_MONOTONIC) + timeout_ns;
        struct pollfd p = {.fd = fd, .events = POLLIN};

        for (;;) {
                struct timespec left = timespec_of_nsec(MAX(end - clock_now_ns(CLOCK_MONOTONIC), INT64_C(0)));
                int n = ppoll(&p, 1, timeout_ns < 0 ? NULL : &left, NULL);

                if (n > 0)
                        return 0;
                if (n == 0)
                        return -ETIMEDOUT;
                if (errno != EINTR)
                        return -errno;
        }
}

int child_wait_ready(struct child *child, int64_t timeout_ns, struct err *err)
{
        struct err report;
        int r;

        r = wait_input(child->channel_fd, timeout_ns);
        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "process %d was not ready in time", (int)child->pid);
        r = receive_message(child->channel_fd, &report, sizeof(report));
        if (r < 0)
                return err_set(err, ERR_ENVIRONMENT, -r, "process %d ended before it was ready", (int)child->pid);
        if (report.kind == ERR_NONE)
                return 0;
        if (err)
                *err = report;
        return report.errnum > 0 ? -report.errnum : -EINVAL;
}

int child_go(struct child *child, int64_t start_ns, struct err *err)
{
        int r = send_message(child->channel_fd, &start_ns, sizeof(start_ns));

        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot start process %d", (int)child->pid);
        return 0;
}

bool child_is_alive(const struct child *child)
{
        return child->pid > 0 && wait_input(child->pidfd, 0) == -ETIMEDOUT;
}

int child_wait(struct child *child, int64_t timeout_ns, struct child_status *ret)
{
        siginfo_t info = {0};
        int r;

        if (child->pid <= 0)
                return -ECHILD;
        r = wait_input(child->pidfd, timeout_ns);
        if (r < 0)
                return r;
        while (waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED) < 0)
                if (errno != EINTR)
                        return -errno;
        child->pid = 0;
        if (!ret)
                return 0;
        if (info.si_code == CLD_EXITED)
                *ret = (struct child_status){.exit_code = info.si_status};
        else
                *ret = (struct child_status){.exit_code = -1, .signal = info.si_status};
        return 0;
}

int child_signal(const struct child *child, int signal)
{
        if (child->pid <= 0)
                return -ESRCH;
        return pidfd_send_signal(child->pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

int child_stop(struct child *child, int64_t grace_ns, struct child_status *ret)
{
        int r;

        child_signal(child, SIGTERM);
        r = child_wait(child, grace_ns, ret);
        if (r != -ETIMEDOUT)
                return r;
        child_signal(child, SIGKILL);
        return child_wait(child, KILL_WAIT_NS, ret);
}

void child_done(struct child *child)
{
        child_signal(child, SIGKILL);
        if (child->pid > 0)
                child_wait(child, KILL_WAIT_NS, NULL);
        close_cleanup(&child->pidfd);
        close_cleanup(&child->channel_fd);
        *child = (struct child)CHILD_INIT;
}

int child_check(const char *name, const struct child_status *status, struct err *err)
{
        if (status->exit_code == 0)
                return 0;
        if (status->signal > 0)
                return err_set(err, ERR_ENVIRONMENT, EIO, "%s was killed by signal %d (%s)", name, status->signal,
                               strsignal(status->signal));
        return err_set(err, ERR_ENVIRONMENT, EIO, "%s exited with status %d", name, status->exit_code);
}
