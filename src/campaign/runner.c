/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/runner.h"

#include <fcntl.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "campaign/finish.h"
#include "campaign/kinds.h"
#include "campaign/lock.h"
#include "evidence/reload.h"
#include "sys/host.h"
#include "testbed/testbed.h"

/* A campaign under way. */
struct campaign {
        const struct campaign_options *options;
        struct archive *archive;
        struct manifest *manifest;
        struct plan *plan;
        json_t *journal; /* the lines of trials that are done, by name */
        struct campaign_outcome *outcome;
        int lock;
        size_t number, total; /* of the trial that runs, and of all that are known of */
        unsigned resumptions; /* earlier ones */
        size_t n_timed;       /* trials that this process has run, and how long they took */
        int64_t timed_ns;
};

static void campaign_done(struct campaign *c)
{
        plan_free(c->plan);
        manifest_free(c->manifest);
        json_decref(c->journal);
        archive_free(c->archive);
        if (c->lock >= 0)
                close(c->lock);
}

static int find_missing(const struct manifest *manifest, bool skip, size_t **ret, size_t *ret_n, struct err *err)
{
        _cleanup_free_ size_t *skipped = calloc(manifest->n_cells + 1, sizeof(*skipped));
        size_t n = 0;

        if (!skipped)
                return err_set_nomem(err);
        for (size_t i = 0; i < manifest->n_cells; i++) {
                int r = kinds_missing(manifest->cells[i].config, err);

                if (r < 0 && err->kind == ERR_UNSUPPORTED && skip) {
                        log_warning("leaving out cell %s: %s", manifest->cells[i].name, err->text);
                        *err = (struct err){0};
                        skipped[n++] = i;
                        continue;
                }
                if (r < 0) {
                        err_prefix(err, "cell %s cannot run on this host", manifest->cells[i].name);
                        return r;
                }
        }
        *ret = TAKE_PTR(skipped);
        *ret_n = n;
        return 0;
}

int campaign_plan(const struct campaign_options *options, struct manifest **ret_manifest, struct plan **ret_plan,
                  struct err *err)
{
        _cleanup_manifest_ struct manifest *manifest = NULL;
        _cleanup_free_ size_t *skipped = NULL;
        size_t n_skipped = 0;
        int r;

        r = manifest_load(AT_FDCWD, options->manifest, kinds_all(), &options->overrides, &manifest, err);
        if (r < 0)
                return r;
        r = find_missing(manifest, options->skip_missing, &skipped, &n_skipped, err);
        if (r < 0)
                return r;
        r = plan_make(manifest, kinds_all(), &options->overrides, skipped, n_skipped, ret_plan, err);
        if (r < 0)
                return r;
        *ret_manifest = TAKE_PTR(manifest);
        return 0;
}

/* The folder's name: what it is of, and when it began. */
static void archive_name(const struct manifest *manifest, char *buf, size_t size)
{
        char when[32];
        time_t now = time(NULL);
        struct tm utc;

        gmtime_r(&now, &utc);
        strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &utc);
        snprintf(buf, size, "%s-%s", manifest->id, when);
}

static int journal_event(struct campaign *c, const char *event, json_t *extra, struct err *err)
{
        _cleanup_json_ json_t *line = NULL;

        line = json_pack("{s:s, s:I}", "event", event, "realtime_ns", (json_int_t)clock_now_ns(CLOCK_REALTIME));
        if (extra && line)
                json_object_update_new(line, extra);
        if (!line)
                return err_set_nomem(err);
        return archive_journal_append(c->archive, line, err);
}

static int write_environment(struct campaign *c, const char *path, struct err *err)
{
        _cleanup_json_ json_t *stable = NULL, *fleeting = NULL, *both = NULL;
        int r;

        r = host_describe(&stable, &fleeting, err);
        if (r < 0)
                return r;
        both = json_pack("{s:i, s:O, s:O}", "assay", 1, "stable", stable, "volatile", fleeting);
        if (!both)
                return err_set_nomem(err);
        return archive_write_json(c->archive, path, both, err);
}

/* Everything that is written before the first trial. */
static int write_start(struct campaign *c, struct err *err)
{
        const struct manifest *m = c->manifest;
        _cleanup_json_ json_t *plan = NULL;
        int r;

        r = archive_write(c->archive, ARCHIVE_MANIFEST, span_of(m->data, m->len), err);
        for (size_t i = 0; i < m->n_inputs && r >= 0; i++) {
                _cleanup_free_ char *path = text_format(ARCHIVE_INPUTS "/%s", m->inputs[i].path);

                r = path ? archive_write(c->archive, path, span_of(m->inputs[i].data, m->inputs[i].len), err)
                         : err_set_nomem(err);
        }
        if (r >= 0)
                r = write_environment(c, ARCHIVE_RUN_ENV, err);
        if (r >= 0)
                r = plan_to_json(c->plan, &plan, err);
        if (r >= 0)
                r = archive_write_json(c->archive, ARCHIVE_PLAN, plan, err);
        if (r >= 0)
                r = journal_event(c, "started", NULL, err);
        return r;
}

static int open_output(const char *path, struct err *err)
{
        int fd = file_make_dir(AT_FDCWD, path, 0755);

        if (fd < 0)
                return err_set_errno(err, ERR_IO, -fd, "cannot use the output folder %s", path);
        return fd;
}

/* One campaign at a time; what an earlier one left when it was killed is cleared away. */
static int take_host(struct campaign *c, struct err *err)
{
        c->lock = lock_host(err);
        if (c->lock < 0)
                return c->lock;
        testbed_sweep();
        return 0;
}

static int campaign_start(struct campaign *c, struct err *err)
{
        _cleanup_close_ int output = -1;
        char name[128];
        int r;

        r = campaign_plan(c->options, &c->manifest, &c->plan, err);
        if (r < 0)
                return r;
        r = take_host(c, err);
        if (r < 0)
                return r;
        output = open_output(c->options->output, err);
        if (output < 0)
                return output;
        archive_name(c->manifest, name, sizeof(name));
        c->journal = json_object();
        if (!c->journal)
                return err_set_nomem(err);
        r = archive_prepare(output, name, &c->archive, err);
        if (r < 0)
                return r;
        r = write_start(c, err);
        if (r >= 0)
                r = archive_publish(c->archive, output, name, err);
        if (r < 0) {
                (void)archive_abandon(output, name);
                return r;
        }
        snprintf(c->outcome->archive, sizeof(c->outcome->archive), "%s/%s", c->options->output, name);
        return 0;
}

/* The trials that the journal says are done, by name; and how often the campaign was resumed before. */
static int read_journal(struct campaign *c, struct err *err)
{
        _cleanup_json_ json_t *lines = NULL;
        json_t *line;
        size_t i;
        int r;

        r = archive_journal_read(c->archive, &lines, err);
        if (r < 0)
                return r;
        c->journal = json_object();
        if (!c->journal)
                return err_set_nomem(err);
        json_array_foreach(lines, i, line)
        {
                const char *name = json_string_value(json_object_get(line, "trial"));

                c->resumptions += streq(json_string_value(json_object_get(line, "event")), "resumed");
                if (name && json_object_set(c->journal, name, line) < 0)
                        return err_set_nomem(err);
        }
        return 0;
}

/* One file for each time, since each may be the work of another build. */
static int write_resumption(struct campaign *c, struct err *err)
{
        char path[64];
        int r;

        snprintf(path, sizeof(path), ARCHIVE_RUN_ENV_RESUMED, c->resumptions + 1);
        r = write_environment(c, path, err);
        return r < 0 ? r : journal_event(c, "resumed", NULL, err);
}

static int campaign_reopen(struct campaign *c, const char *path, struct err *err)
{
        int r;

        r = take_host(c, err);
        if (r < 0)
                return r;
        r = archive_open(AT_FDCWD, path, &c->archive, err);
        if (r < 0)
                return r;
        snprintf(c->outcome->archive, sizeof(c->outcome->archive), "%s", path);
        if (archive_is_finished(c->archive))
                return err_set(err, ERR_USAGE, EEXIST,
                               "%s is finished; there is nothing to resume (`assay show %s` prints it)", path, path);
        r = archive_lock(c->archive, err);
        if (r >= 0)
                r = archive_trials_sweep(c->archive, err);
        if (r >= 0)
                r = reload_plan(c->archive, kinds_all(), &c->manifest, &c->plan, err);
        if (r >= 0)
                r = read_journal(c, err);
        if (r >= 0)
                r = write_resumption(c, err);
        return r;
}

/* By what the trials took so far; before the first is done, by what the plan expects. */
static int64_t time_left_ns(const struct campaign *c)
{
        size_t left = c->total - c->number + 1;

        if (c->n_timed > 0)
                return c->timed_ns / (int64_t)c->n_timed * (int64_t)left;
        return c->plan->n_trials > 0 ? c->plan->expected_duration_ns / (int64_t)c->plan->n_trials * (int64_t)left : 0;
}

/* Runs @trial unless the journal has it. Return: 1 if it is valid, 0 if not, or a negative errno. */
static int one_trial(struct campaign *c, const struct plan_trial *trial, struct err *err)
{
        const struct campaign_watcher *w = c->options->watcher;
        const struct trial_context context = {.archive = c->archive,
                                              .plan = c->plan,
                                              .stop = c->options->stop,
                                              .progress = w ? w->progress : NULL,
                                              .userdata = w ? w->userdata : NULL};
        const json_t *line = json_object_get(c->journal, trial->name);
        struct trial_outcome outcome;
        int64_t began_ns;
        int r;

        c->number++;
        if (line) {
                c->outcome->trials_done++;
                return json_is_true(json_object_get(line, "valid"));
        }
        if (*c->options->stop)
                return -EINTR;
        if (w && w->began)
                w->began(w->userdata, trial, c->number, c->total, time_left_ns(c));
        began_ns = clock_now_ns(CLOCK_MONOTONIC);
        r = trial_run(&context, trial, &outcome, err);
        if (r < 0)
                return r;
        c->timed_ns += clock_now_ns(CLOCK_MONOTONIC) - began_ns;
        c->n_timed++;
        c->outcome->trials_done++;
        if (w && w->ended)
                w->ended(w->userdata, trial, &outcome);
        return outcome.is_valid;
}

/* Runs one round's trials, all of them, also after an invalid one: they are evidence too.
 * Return: 1 if all are valid, 0 if not, or a negative errno. */
static int one_round(struct campaign *c, const struct plan_trial *trials, size_t n, struct err *err)
{
        bool all = true;

        for (size_t i = 0; i < n; i++) {
                int r = one_trial(c, &trials[i], err);

                if (r < 0)
                        return r;
                all = all && r;
        }
        return all;
}

static int extra_rounds(struct campaign *c, uint32_t broken, struct err *err)
{
        uint32_t most = plan_extra_rounds_max(c->plan);

        for (uint32_t extra = 1; broken > 0; extra++) {
                _cleanup_free_ struct plan_trial *trials = NULL;
                size_t n;
                int r;

                if (extra > most) {
                        log_warning("after %u extra rounds, the most that may be run, still %u too few are without an "
                                    "invalid trial",
                                    most, broken);
                        return 0;
                }
                r = plan_round(c->plan, extra, &trials, &n, err);
                if (r < 0)
                        return r;
                c->total += n;
                r = one_round(c, trials, n, err);
                if (r < 0)
                        return r;
                if (r > 0)
                        broken--;
        }
        return 0;
}

static int all_rounds(struct campaign *c, struct err *err)
{
        const struct plan *plan = c->plan;
        uint32_t broken = 0;

        c->total = plan->n_trials;
        for (size_t start = 0, end; start < plan->n_trials; start = end) {
                uint32_t round = plan->trials[start].round;
                int r;

                for (end = start; end < plan->n_trials && plan->trials[end].round == round; end++)
                        ;
                r = one_round(c, plan->trials + start, end - start, err);
                if (r < 0)
                        return r;
                if (r == 0 && round > 0)
                        broken++;
                if (broken > plan_extra_rounds_max(plan)) {
                        log_warning("%u rounds hold an invalid trial, at most %u may be run again: stopping here",
                                    broken, plan_extra_rounds_max(plan));
                        return 0;
                }
        }
        return extra_rounds(c, broken, err);
}

static int campaign_go(struct campaign *c, size_t already, struct err *err)
{
        const struct campaign_watcher *w = c->options->watcher;
        int r;

        c->outcome->trials_planned = c->plan->n_trials;
        if (w && w->planned)
                w->planned(w->userdata, c->plan, c->outcome->archive, already);
        r = all_rounds(c, err);
        if (r < 0)
                return r;
        r = journal_event(c, "finished", NULL, err);
        if (r < 0)
                return r;
        return finish_archive(c->archive, c->manifest, c->plan, &c->outcome->exit_code, err);
}

int campaign_run(const struct campaign_options *options, struct campaign_outcome *ret, struct err *err)
{
        struct campaign c = {.options = options, .outcome = ret, .lock = -1};
        int r;

        *ret = (struct campaign_outcome){0};
        r = campaign_start(&c, err);
        if (r >= 0)
                r = campaign_go(&c, 0, err);
        campaign_done(&c);
        return r;
}

int campaign_resume(const char *archive, const struct campaign_options *options, struct campaign_outcome *ret,
                    struct err *err)
{
        struct campaign c = {.options = options, .outcome = ret, .lock = -1};
        int r;

        *ret = (struct campaign_outcome){0};
        r = campaign_reopen(&c, archive, err);
        if (r >= 0)
                r = campaign_go(&c, json_object_size(c.journal), err);
        campaign_done(&c);
        return r;
}
