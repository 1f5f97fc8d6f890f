/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/verb-policy.h"
#include "sandbox/bundle.h"
#include "sandbox/learn.h"
#include "sandbox/sandbox.h"

struct learn_options {
        const char *output, *user;
};

static const struct option options[] = {
        {"output", 'o', OPTION_STRING, offsetof(struct learn_options, output), "FILE", "policy.yaml",
         .help = "where the policy is written; it must not be there yet"},
        {"user", 'u', OPTION_STRING, offsetof(struct learn_options, user), "USER",
         .help = "run the command as this user (root only)"},
        {0},
};

static int check_output(const char *path, struct err *err)
{
        if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return err_set(err, ERR_USAGE, EEXIST, "%s is there already; name another file with --output", path);
        return 0;
}

/* The policy that the record of the run asks for. What was written has to be read again: it is checked here, not when
 * somebody wants to use it. */
static int write_policy(const struct bundle *bundle, const char *path, struct err *err)
{
        _cleanup_json_ json_t *record = bundle_to_json(bundle);
        _cleanup_policy_ struct policy *policy = NULL;
        _cleanup_text_ struct text text = {0};
        struct learned learned;
        int r;

        if (!record)
                return err_set_nomem(err);
        r = learn_policy_write(record, &text, &learned, err);
        if (r == 0)
                r = policy_parse(span_of(text.data, text.len), path, &policy, err);
        if (r == 0)
                r = check_output(path, err);
        if (r == 0)
                r = file_write_atomic(AT_FDCWD, path, 0644, span_of(text.data, text.len), err);
        if (r < 0)
                return r;
        log_info("assay policy learn: %s has %zu rule%s; read it before you use it%s", path, learned.n_rules,
                 learned.n_rules == 1 ? "" : "s",
                 learned.n_denied > 0 ? ", and what was denied, which it has as comments" : "");
        return 0;
}

static int run_learn(const void *given, int argc, char **argv, struct err *err)
{
        const struct learn_options *o = given;
        struct sandbox_options sandbox = {.user = o->user, .argv = argv};
        _cleanup_policy_ struct policy *policy = learn_policy_new();
        _cleanup_bundle_ struct bundle *bundle = NULL;
        int status, r;

        argv[argc] = NULL; /* options have been taken out from among them */
        if (!policy)
                return err_set_nomem(err);
        r = check_output(o->output, err);
        if (r == 0)
                r = enforcer_choose("proxy", policy, &sandbox.enforcer, err);
        if (r == 0)
                r = bundle_open(NULL, &bundle, err);
        if (r < 0)
                return r;
        sandbox.policy = policy;
        sandbox.bundle = bundle;
        status = sandbox_run(&sandbox, err);
        if (status < 0)
                return status;
        if (err->kind != ERR_NONE) { /* it could not be run: that needs no policy */
                log_info("assay policy learn: %s", err->text);
                return status;
        }
        r = write_policy(bundle, o->output, err);
        return r < 0 ? r : status;
}

const struct verb verb_policy_learn = {
        .name = "learn",
        .arguments = "COMMAND [ARGUMENT...]",
        .summary = "run a command watched, and write the policy that it would have needed",
        .description =
                "Runs COMMAND so that whatever it reaches beyond this host is let through and noticed, and writes the "
                "smallest\npolicy that would have let it pass. Nothing is kept from COMMAND but the loopback of this "
                "host, link-local\naddresses and metadata services. The exit status is the command's own, or as of "
                "`assay "
                "exec`.",
        .min_args = 1,
        .max_args = -1,
        .is_command = true,
        .failure_code = SANDBOX_EXIT_OWN_ERROR,
        .options = options,
        .options_size = sizeof(struct learn_options),
        .run = run_learn,
};
