/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>

#include "base/log.h"
#include "base/text.h"
#include "campaign/privilege.h"
#include "campaign/runner.h"
#include "cli/experiment.h"
#include "cli/print-archive.h"
#include "cli/print-plan.h"
#include "cli/progress.h"
#include "cli/verbs.h"

struct run_options {
        bool is_short, dry_run, json, skip_missing;
        const char *output, *resume;
        struct option_strings set;
};

static const struct option options[] = {
        {"short", 's', OPTION_FLAG, offsetof(struct run_options, is_short), .help = "the short form of the experiment"},
        {"set", 0, OPTION_STRINGS, offsetof(struct run_options, set), "PATH=VALUE",
         .help = "override a key, such as workload.duration=5s or rounds=12; recorded in the plan"},
        {"output", 'o', OPTION_STRING, offsetof(struct run_options, output), "DIR", "archives",
         .help = "folder in which the archive is made"},
        {"resume", 0, OPTION_STRING, offsetof(struct run_options, resume), "ARCHIVE",
         .help = "go on with a campaign that was interrupted"},
        {"skip-missing", 0, OPTION_FLAG, offsetof(struct run_options, skip_missing),
         .help = "leave out cells that this host cannot run; lowers the class of the evidence"},
        {"dry-run", 'n', OPTION_FLAG, offsetof(struct run_options, dry_run),
         .help = "print cells, order, time and disk, and run nothing"},
        {"json", 0, OPTION_FLAG, offsetof(struct run_options, json), .help = "print the result as JSON"},
        {0},
};

static volatile int stop;

static void on_signal(int number)
{
        stop = number;
}

static void catch_signals(void)
{
        struct sigaction action = {.sa_handler = on_signal};

        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGHUP, &action, NULL);
        /* a reader of the progress that goes away, and a limit of file sizes, are errors and not the campaign's end */
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN);
}

static int dry_run(const struct campaign_options *campaign, bool json, struct err *err)
{
        _cleanup_manifest_ struct manifest *manifest = NULL;
        _cleanup_plan_ struct plan *plan = NULL;
        int r;

        r = campaign_plan(campaign, &manifest, &plan, err);
        if (r < 0)
                return r;
        return json ? print_plan_json(plan, err) : print_plan(plan, err);
}

/* What a person is told of a campaign that did not come to its end. */
static void explain_rest(const struct campaign_outcome *outcome)
{
        if (outcome->trials_planned > 0)
                fprintf(stderr, "%zu of %zu trials are stored; go on with: assay run --resume %s\n",
                        outcome->trials_done, outcome->trials_planned, outcome->archive);
}

static int run_campaign(const struct run_options *o, struct campaign_options campaign, struct err *err)
{
        struct campaign_outcome outcome = {0};
        struct progress progress;
        int r;

        progress_init(&progress);
        campaign.watcher = &progress.watcher;
        catch_signals();
        r = o->resume ? campaign_resume(o->resume, &campaign, &outcome, err) : campaign_run(&campaign, &outcome, err);
        progress_clear(&progress);
        if (r == -EINTR) {
                fprintf(stderr, "stopped by SIG%s\n", sigabbrev_np(stop));
                explain_rest(&outcome);
                r = 1;
        } else if (r < 0) {
                if (err->kind != ERR_DATA && err->kind != ERR_INTEGRITY && err->kind != ERR_BUG) /* these would stay */
                        explain_rest(&outcome);
        } else {
                r = print_archive(outcome.archive, NULL, o->json, err);
                if (r >= 0)
                        r = outcome.exit_code;
        }
        return r;
}

static int run(const void *opts, int argc, char **argv, struct err *err)
{
        const struct run_options *o = opts;
        _cleanup_free_ char *manifest = NULL;
        struct campaign_options campaign = {
                .output = o->output,
                .skip_missing = o->skip_missing,
                .stop = &stop,
                .overrides = {.is_short = o->is_short, .n_overrides = o->set.n, .overrides = o->set.items},
        };
        int r;

        if (o->resume && (argc > 0 || o->is_short || o->set.n > 0 || o->dry_run || o->skip_missing))
                return err_set(
                        err, ERR_USAGE, EINVAL,
                        "--resume goes on with the plan that the archive holds; it takes no experiment, --short, "
                        "--set, --skip-missing or --dry-run");
        if (!o->resume) {
                if (argc == 0)
                        return err_set(err, ERR_USAGE, EINVAL,
                                       "expected an experiment, such as exp-001; `assay list` shows them");
                r = experiment_find(argv[0], &manifest, err);
                if (r < 0)
                        return r;
                campaign.manifest = manifest;
        }
        r = privilege_obtain(err);
        if (r < 0)
                return r;
        if (r > 0)
                log_info("running as an ordinary user, inside a user namespace");
        return o->dry_run ? dry_run(&campaign, o->json, err) : run_campaign(o, campaign, err);
}

const struct verb verb_run = {
        .name = "run",
        .arguments = "EXPERIMENT",
        .summary = "run a campaign: trials, summary, verdict, archive",
        .description =
                "Runs an experiment, by name or by the path of its manifest, and freezes the result as an archive.\n"
                "Exit code: 0 all claims hold; 3 one fails; 4 one is inconclusive; 1 the campaign failed or is "
                "invalid;\n"
                "2 the manifest is wrong; 6 this host lacks something, which is named.",
        .max_args = 1,
        .options = options,
        .options_size = sizeof(struct run_options),
        .run = run,
};
