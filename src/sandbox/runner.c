/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/macro.h"
#include "sandbox/askers.h"
#include "sandbox/bundle.h"
#include "sandbox/denial.h"
#include "sandbox/files.h"
#include "sandbox/filter.h"
#include "sandbox/proof-cache.h"
#include "sandbox/runner-internal.h"
#include "sys/landlock.h"

/* Handed on to the command: those of a terminal to its whole group, as a terminal does it. */
static const int group_signals[] = {SIGINT, SIGQUIT, SIGHUP, SIGCONT};
static const int command_signals[] = {SIGTERM, SIGUSR1, SIGUSR2, SIGALRM};
static const int own_signals[] = {SIGWINCH, SIGTSTP};

static bool has(const int *signals, size_t n, int signal)
{
        for (size_t i = 0; i < n; i++)
                if (signals[i] == signal)
                        return true;
        return false;
}

static int tell_init(struct run *run, enum message_kind kind, int value)
{
        const struct message m = {.kind = kind, .value = value};
        int r = message_send(run->channel_fd, &m, -1);

        return r == -EPIPE ? 0 : r; /* it has just ended; that is noticed where its words arrive */
}

static void end_with(struct run *run, int status)
{
        run->status = status;
        run->has_ended = true;
        loop_stop(run->sandbox.loop);
}

/* ---- signals ---- */

/* Stops this process as the user's shell expects it; the shell continues it by SIGCONT, which is handed on. */
static void stop_self(struct run *run)
{
        stdio_suspend(&run->stdio);
        raise(SIGSTOP);
}

static int on_signal(int signal, void *userdata)
{
        struct run *run = userdata;

        if (signal == SIGWINCH) {
                stdio_resize(&run->stdio);
        } else if (signal == SIGTSTP) {
                tell_init(run, MESSAGE_SIGNAL_GROUP, SIGSTOP);
                if (!run->stdio.wants_terminal) { /* else it stops when the command has */
                        run->knows_stop = true;
                        stop_self(run);
                }
        } else if (run->phase == RUN_STARTS && signal != SIGCONT) {
                end_with(run, SANDBOX_EXIT_SIGNAL + signal);
        } else if (run->phase == RUN_DRAINS) {
                run->is_cut = true;
                loop_stop(run->sandbox.loop);
        } else if (has(command_signals, ARRAY_SIZE(command_signals), signal)) {
                return tell_init(run, MESSAGE_SIGNAL, signal);
        } else {
                if (signal == SIGCONT)
                        stdio_resume(&run->stdio);
                return tell_init(run, MESSAGE_SIGNAL_GROUP, signal);
        }
        return 0;
}

static int take_signals(struct run *run, struct err *err)
{
        sigset_t set;
        int r;

        sigemptyset(&set);
        for (size_t i = 0; i < ARRAY_SIZE(group_signals); i++)
                sigaddset(&set, group_signals[i]);
        for (size_t i = 0; i < ARRAY_SIZE(command_signals); i++)
                sigaddset(&set, command_signals[i]);
        for (size_t i = 0; i < ARRAY_SIZE(own_signals); i++)
                sigaddset(&set, own_signals[i]);
        r = loop_signals(run->sandbox.loop, &set, on_signal, run);
        return r < 0 ? err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot take signals") : 0;
}

/* ---- what init says ---- */

static int cannot_start(struct run *run, int errnum)
{
        const char *name = run->options->argv[0];

        err_set_errno(run->err, ERR_ENVIRONMENT, errnum, "cannot run %s", name);
        if (errnum == ENOENT && strncmp(name, "/tmp/", 5) == 0)
                err_set(run->err, ERR_ENVIRONMENT, errnum,
                        "cannot run %s: /tmp is the sandbox's own; the folder that one starts in stays visible", name);
        end_with(run, errnum == ENOENT ? SANDBOX_EXIT_NOT_FOUND : SANDBOX_EXIT_CANNOT_RUN);
        return 0;
}

static int start_command(struct run *run)
{
        run->sandbox.is_proving = false;
        askers_begin(run->sandbox.askers);
        run->phase = RUN_RUNS;
        bundle_started(run->sandbox.bundle);
        return tell_init(run, MESSAGE_GO, 0);
}

static int prove(struct run *run)
{
        if (run->sandbox.enforcer->strength != STRENGTH_ENFORCED || run->is_proven)
                return start_command(run);
        run->sandbox.is_proving = true;
        return prover_start(run, start_command, &run->prover);
}

static int go_on_proving(struct run *run, const struct message *answer)
{
        if (!run->prover)
                return err_set(run->err, ERR_BUG, EPROTO, "there is an answer without a prober");
        return prover_hear(run->prover, answer);
}

static int hear(struct run *run, const struct message *m, int fd)
{
        switch (m->kind) {
        case MESSAGE_READY:
                return prove(run);
        case MESSAGE_TRIED:
                return go_on_proving(run, m);
        case MESSAGE_FAILED:
                *run->err = m->err;
                return m->err.errnum > 0 ? -m->err.errnum : -EIO;
        case MESSAGE_LISTENER:
                fd = pidfd_getfd(run->init_pidfd, m->value, 0);
                if (fd < 0)
                        return err_set_errno(run->err, ERR_UNSUPPORTED, errno,
                                             "cannot take a descriptor of a child (see kernel.yama.ptrace_scope)");
                return attempts_watch(&run->sandbox, fd, &run->attempts, run->err);
        case MESSAGE_TERMINAL:
                run->sandbox.is_raw = true;
                return stdio_attach(&run->stdio, run->sandbox.loop, fd, run->err);
        case MESSAGE_UNSTARTED:
                return cannot_start(run, m->value);
        case MESSAGE_STOPPED:
                if (!run->knows_stop)
                        stop_self(run);
                run->knows_stop = false;
                return 0;
        case MESSAGE_ENDED:
                run->wait_status = m->value;
                end_with(run, WIFSIGNALED(m->value) ? SANDBOX_EXIT_SIGNAL + WTERMSIG(m->value) : WEXITSTATUS(m->value));
                return 0;
        default:
                return err_set(run->err, ERR_BUG, EPROTO, "the sandbox's first process says %d", (int)m->kind);
        }
}

static int on_channel(struct loop_io *io, uint32_t events)
{
        struct run *run = CONTAINER_OF(io, struct run, channel_io);
        struct message m;
        int fd, r;

        r = message_receive(io->fd, true, &m, &fd);
        if (r == -EAGAIN)
                return 0;
        if (r < 0)
                return err_set(run->err, ERR_ENVIRONMENT, EIO,
                               "the sandbox's first process was killed, and with it the command");
        r = hear(run, &m, fd);
        if (m.kind != MESSAGE_TERMINAL)
                close_cleanup(&fd);
        return r;
}

/* ---- the run ---- */

static bool has_within(const struct sandbox_paths *paths, const char *path)
{
        for (size_t i = 0; i < paths->n; i++)
                if (files_is_within(path, paths->items[i]))
                        return true;
        return false;
}

/* Many programs (git, npm) give up where they may not look into their user's home, and do well with an empty one. */
static void hide_home(const struct sandbox_options *o)
{
        const char *home = getenv("HOME");
        _cleanup_free_ char *real = home ? realpath(home, NULL) : NULL;

        if ((o->read.n > 0 || o->write.n > 0) && !o->enforcer->shares_network && real && !has_within(&o->read, real) &&
            !has_within(&o->write, real))
                setenv("HOME", "/tmp", 1);
}

static int prepare(struct run *run, struct err *err)
{
        int r;

        run->cwd = getcwd(NULL, 0);
        if (!run->cwd)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot tell the working directory");
        sigprocmask(SIG_SETMASK, NULL, &run->mask);
        r = identity_choose(run->options->user, run->options->nested, &run->identity, err);
        if (r < 0)
                return r;
        run->sandbox.is_rootless = run->identity.is_rootless;
        identity_environment(&run->identity);
        hide_home(run->options);
        run->is_asked = run->sandbox.enforcer->is_asked ||
                        (run->sandbox.bundle && run->sandbox.enforcer->strength == STRENGTH_UNENFORCED);
        filter_build(&run->filter, run->options->nested, run->sandbox.enforcer->shares_network, run->is_asked);
        r = denials_new(&run->sandbox.denials, err);
        if (r == 0)
                r = loop_new(&run->sandbox.loop, err);
        return r;
}

static int open_channel(struct run *run, struct err *err)
{
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot create a socket pair");
        run->channel_fd = pair[0];
        run->inner_channel_fd = pair[1];
        return 0;
}

static int start(struct run *run, struct err *err)
{
        const struct sigaction ignore = {.sa_handler = SIG_IGN};
        const struct enforcer_ops *enforcer = run->sandbox.enforcer;
        int r;

        r = open_channel(run, err);
        if (r == 0)
                r = birth_give(run, err);
        close_cleanup(&run->inner_channel_fd);
        run->inner_channel_fd = -1;
        if (r < 0)
                return r;
        run->is_proven = !run->options->proves_always && proof_cache_get(run); /* while init is on its way */
        sigaction(SIGPIPE, &ignore, NULL);
        r = take_signals(run, err);
        if (r == 0)
                r = stdio_start(&run->stdio, run->sandbox.loop, err);
        if (r == 0 && enforcer->up)
                r = enforcer->up(&run->sandbox, err);
        if (r == 0) {
                r = loop_io_add(run->sandbox.loop, &run->channel_io, run->channel_fd, EPOLLIN, on_channel);
                if (r < 0)
                        err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot wait for the sandbox's first process");
        }
        return r;
}

/* Ends init and with it everything in its PID namespace, which is gone when this returns. */
static void end_init(struct run *run)
{
        siginfo_t info;
        long r;

        loop_io_remove(&run->channel_io);
        if (run->init_pidfd < 0)
                return;
        pidfd_send_signal(run->init_pidfd, SIGKILL, NULL, 0);
        /* by the system call: the library's function does not tell what was used */
        do
                r = syscall(__NR_waitid, P_PIDFD, run->init_pidfd, &info, WEXITED, &run->usage);
        while (r < 0 && errno == EINTR);
        run->has_usage = r == 0;
        close_cleanup(&run->init_pidfd);
        run->init_pidfd = -1;
}

/* What the command wrote before it ended is still on its way. */
static int drain(struct run *run)
{
        int r = 0;

        run->phase = RUN_DRAINS;
        while (r == 0 && !run->is_cut && !stdio_is_drained(&run->stdio))
                r = loop_run(run->sandbox.loop);
        return r;
}

static void plan_record(const struct run *run)
{
        const struct enforcer_ops *enforcer = run->sandbox.enforcer;
        bool is_enforced = enforcer->strength == STRENGTH_ENFORCED;

        bundle_plan(run->sandbox.bundle, run->sandbox.policy, enforcer->name,
                    is_enforced ? BUNDLE_ENFORCED : BUNDLE_UNENFORCED, run->options->argv);
        if (enforcer->is_asked || !is_enforced)
                bundle_observes(run->sandbox.bundle, BUNDLE_DENIED);
        if (!is_enforced)
                bundle_observes(run->sandbox.bundle, BUNDLE_ALLOWED);
        if (run->sandbox.bundle && landlock_version() < LANDLOCK_SCOPES_VERSION)
                bundle_weaker(run->sandbox.bundle,
                              "this kernel has no Landlock, or none that keeps signals and abstract "
                              "sockets inside: namespaces and the filter alone do that");
}

static void run_done(struct run *run)
{
        end_init(run);
        stdio_done(&run->stdio);
        attempts_free(run->attempts);
        prover_free(run->prover);
        close_cleanup(&run->channel_fd);
        netns_done(&run->sandbox.netns);
        loop_free(run->sandbox.loop);
        denials_free(run->sandbox.denials);
        free(run->cwd);
        free(run);
}

/* The record is written whatever happened; that it cannot be is an error of its own. */
static int record(struct run *run, int result, struct err *err)
{
        struct bundle *bundle = run->sandbox.bundle;
        int r = 0;

        if (bundle && result < 0)
                bundle_failed(bundle, err);
        else if (bundle && run->wait_status >= 0)
                bundle_ended(bundle, run->wait_status, run->has_usage ? &run->usage : NULL);
        else if (bundle)
                bundle_failed(bundle, err);
        if (bundle)
                r = bundle_write(bundle, result < 0 ? NULL : err);
        return result < 0 ? result : r < 0 ? r : run->status;
}

static int run_to_the_end(struct run *run, struct err *err)
{
        const struct enforcer_ops *enforcer = run->sandbox.enforcer;
        int r;

        plan_record(run);
        r = prepare(run, err);
        if (r == 0)
                r = stdio_prepare(&run->stdio, err);
        if (r == 0)
                r = start(run, err);
        while (r == 0 && !run->has_ended)
                r = loop_run(run->sandbox.loop);
        end_init(run);
        if (r == 0)
                r = drain(run);
        if (enforcer->down) {
                int down = enforcer->down(&run->sandbox, r == 0 ? err : NULL);

                r = r < 0 ? r : down;
        }
        return record(run, r, err);
}

int sandbox_run(const struct sandbox_options *options, struct err *err)
{
        struct run *run = calloc(1, sizeof(*run));
        int r;

        if (!run)
                return err_set_nomem(err);
        run->options = options;
        run->err = err;
        run->sandbox.policy = options->policy;
        run->sandbox.enforcer = options->enforcer;
        run->sandbox.bundle = options->bundle;
        run->sandbox.netns.fd = run->channel_fd = run->inner_channel_fd = run->init_pidfd = -1;
        run->stdio = STDIO_NONE;
        run->wait_status = -1;
        r = run_to_the_end(run, err);
        run_done(run);
        return r;
}
