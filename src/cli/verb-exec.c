/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/verbs.h"
#include "sandbox/bundle.h"
#include "sandbox/policy.h"
#include "sandbox/sandbox.h"

struct exec_options {
        struct option_strings policy, read, write;
        const char *enforce, *user, *bundle;
        int prove;
        bool nested;
};

enum { PROVE_CACHED, PROVE_ALWAYS };
static const char *const prove_choices[] = {"cached", "always", NULL};

static const struct option options[] = {
        {"policy", 'p', OPTION_STRINGS, offsetof(struct exec_options, policy), "FILE",
         .help = "what may be reached; several only narrow each other; without one, nothing"},
        {"enforce", 'e', OPTION_STRING, offsetof(struct exec_options, enforce), "ENFORCER", "auto",
         .help = "how: auto, deny-all, wall, proxy, none"},
        {"user", 'u', OPTION_STRING, offsetof(struct exec_options, user), "USER",
         .help = "run the command as this user (root only)"},
        {"nested", 0, OPTION_FLAG, offsetof(struct exec_options, nested),
         .help = "let the command make user namespaces of its own"},
        {"read", 'r', OPTION_STRINGS, offsetof(struct exec_options, read), "PATH",
         .help = "with --write: the only files that can be read, beside those of the system"},
        {"write", 'w', OPTION_STRINGS, offsetof(struct exec_options, write), "PATH",
         .help = "the only files that can be changed"},
        {"prove", 0, OPTION_CHOICE, offsetof(struct exec_options, prove), "WHEN", "cached", .choices = prove_choices,
         .help = "try every way out before the command runs: always, or once for each boot (cached)"},
        {"bundle", 'b', OPTION_STRING, offsetof(struct exec_options, bundle), "DIR",
         .help = "write a record of the run there (run-bundle.json)"},
        {0},
};

static int load_policy(const struct option_strings *files, struct policy **ret, struct err *err)
{
        _cleanup_policy_ struct policy *policy = NULL;
        int r = 0;

        if (files->n == 0) {
                *ret = policy_new_deny_all();
                return *ret ? 0 : err_set_nomem(err);
        }
        for (size_t i = 0; i < files->n && r == 0; i++) {
                _cleanup_policy_ struct policy *next = NULL;

                r = policy_load(AT_FDCWD, files->items[i], &next, err);
                if (r == 0 && policy)
                        r = policy_combine(policy, &next, err);
                else if (r == 0)
                        policy = TAKE_PTR(next);
        }
        if (r == 0)
                *ret = TAKE_PTR(policy);
        return r;
}

static void paths_done(struct sandbox_paths *paths)
{
        for (size_t i = 0; i < paths->n; i++)
                free((char *)paths->items[i]);
        paths->n = 0;
}

/* Absolute and without links, since that is how the kernel will see them. */
static int find_paths(const struct option_strings *given, struct sandbox_paths *ret, struct err *err)
{
        for (size_t i = 0; i < given->n; i++) {
                ret->items[i] = realpath(given->items[i], NULL);
                if (!ret->items[i])
                        return err_set_errno(err, ERR_USAGE, errno, "cannot find %s", given->items[i]);
                ret->n++;
        }
        return 0;
}

/* Messages while the command runs. It writes to the same place, and may have filled it: what would have to wait is
 * lost, since whoever waits here serves nobody. */
static void log_without_waiting(enum log_level level, const char *text, void *userdata)
{
        const bool *has_ended = userdata;
        struct pollfd place = {.fd = STDERR_FILENO, .events = POLLOUT};
        char line[1100];
        struct iovec iov = {.iov_base = line};
        struct stat st;

        snprintf(line, sizeof(line), "%s%s\n", level == LOG_WARNING ? "warning: " : "", text);
        iov.iov_len = strlen(line);
        if (*has_ended || fstat(STDERR_FILENO, &st) < 0 || S_ISREG(st.st_mode)) {
                (void)!write(STDERR_FILENO, line, iov.iov_len);
                return;
        }
        /* The flag is known to pipes and sockets; for others, such as terminals, room has to do. */
        if (pwritev2(STDERR_FILENO, &iov, 1, -1, RWF_NOWAIT) < 0 && errno == EOPNOTSUPP && poll(&place, 1, 0) > 0 &&
            place.revents & POLLOUT)
                (void)!write(STDERR_FILENO, line, iov.iov_len);
}

static int tell(int status, const struct err *err)
{
        char message[1400];

        if (err->kind != ERR_NONE) {
                err_format(err, message, sizeof(message));
                log_info("assay exec: %s", message);
        }
        return status;
}

/* What the options ask for. */
static int plan(const struct exec_options *o, struct policy **ret_policy, struct sandbox_options *ret, struct err *err)
{
        int r;

        r = load_policy(&o->policy, ret_policy, err);
        if (r == 0)
                r = find_paths(&o->read, &ret->read, err);
        if (r == 0)
                r = find_paths(&o->write, &ret->write, err);
        if (r == 0)
                r = enforcer_choose(o->enforce, *ret_policy, &ret->enforcer, err);
        ret->policy = *ret_policy;
        return r;
}

/* The record of a run that comes to nothing before it is one. */
static void record_refusal(struct bundle *bundle, const struct policy *policy, char *const *argv, const struct err *err)
{
        if (!bundle)
                return;
        bundle_plan(bundle, policy, NULL, BUNDLE_ENFORCED, argv);
        bundle_failed(bundle, err);
        (void)bundle_write(bundle, NULL); /* why the run was refused is what the user has to know */
}

static int run_sandbox(const struct sandbox_options *sandbox, struct err *err)
{
        static bool has_ended;
        int r;

        if (sandbox->enforcer->strength == STRENGTH_UNENFORCED)
                log_info("assay: unenforced: the command reaches whatever this host reaches");
        log_set_sink(log_without_waiting, LOG_INFO, &has_ended);
        r = sandbox_run(sandbox, err);
        has_ended = true;
        return r < 0 ? r : tell(r, err);
}

static int run_exec(const void *opts, int argc, char **argv, struct err *err)
{
        const struct exec_options *o = opts;
        _cleanup_policy_ struct policy *policy = NULL;
        _cleanup_bundle_ struct bundle *bundle = NULL;
        struct sandbox_options sandbox = {.user = o->user,
                                          .nested = o->nested,
                                          .argv = argv,
                                          .proves_always = o->prove == PROVE_ALWAYS};
        int r;

        argv[argc] = NULL; /* options have been taken out from among them */
        r = o->bundle ? bundle_open(o->bundle, &bundle, err) : 0;
        if (r < 0)
                return r;
        sandbox.bundle = bundle;
        r = plan(o, &policy, &sandbox, err);
        if (r < 0)
                record_refusal(bundle, policy, argv, err);
        else
                r = run_sandbox(&sandbox, err);
        paths_done(&sandbox.read);
        paths_done(&sandbox.write);
        return r;
}

const struct verb verb_exec = {
        .name = "exec",
        .arguments = "COMMAND [ARGUMENT...]",
        .summary = "run a command that reaches on the network only what its policy allows",
        .description = "Runs COMMAND so that it reaches on the network only what the policies allow, and cannot get "
                       "around them.\n"
                       "What is refused is told on standard error. The exit status is the command's own; 128 + N when "
                       "signal N\n"
                       "ended it; 125 when it was not run because the boundary could not be put in force; 126 when it "
                       "cannot be\n"
                       "run, 127 when it is not found.",
        .min_args = 1,
        .max_args = -1,
        .is_command = true,
        .failure_code = SANDBOX_EXIT_OWN_ERROR,
        .options = options,
        .options_size = sizeof(struct exec_options),
        .run = run_exec,
};
