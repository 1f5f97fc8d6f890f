/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/trial.h"

#include <poll.h>
#include <sys/stat.h>

#include "archive/samples.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "campaign/adapter.h"
#include "campaign/chronicle.h"
#include "campaign/kinds.h"
#include "config/unit.h"
#include "evidence/validity.h"

#define START_LEAD_NS   (100 * NSEC_PER_MSEC) /* for children to arm their timers */
#define GRACE_NS        (5 * NSEC_PER_SEC)    /* past the planned end before the primary is called stuck */
#define POLL_MS         100
#define BACKGROUNDS_MAX 16

#define NO_PROOF "no proof was taken"

struct background {
        const char *name;
        struct workload *workload;
        struct workload_result result;
};

/* What is up while a trial runs. */
struct running {
        const struct node *config;
        int dirfd;
        const char *phase; /* for people */
        struct chronicle chronicle;
        struct boundary *boundary;
        struct workload *primary;
        struct workload_result result;
        size_t n_backgrounds;
        struct background backgrounds[BACKGROUNDS_MAX];
        struct proof before, after;
        json_t *description; /* of the boundary */
        int64_t started_realtime_ns, ended_realtime_ns;
        int64_t clock_offset_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC when it began */
        int64_t start_ns;        /* of the schedule, CLOCK_MONOTONIC */
        char failure[512];       /* what ended it early */
};

static void running_down(struct running *t)
{
        for (size_t i = 0; i < t->n_backgrounds; i++) {
                struct background *b = &t->backgrounds[i];

                if (b->workload)
                        b->workload->ops->free(b->workload);
                b->workload = NULL;
        }
        if (t->primary)
                t->primary->ops->free(t->primary);
        t->primary = NULL;
        if (t->boundary)
                t->boundary->ops->down(t->boundary);
        t->boundary = NULL;
}

static void result_done(struct workload_result *result)
{
        json_decref(result->counts);
        json_decref(result->notes);
}

static void running_done(struct running *t)
{
        running_down(t);
        chronicle_close(&t->chronicle);
        for (size_t i = 0; i < t->n_backgrounds; i++)
                result_done(&t->backgrounds[i].result);
        result_done(&t->result);
        json_decref(t->before.evidence);
        json_decref(t->after.evidence);
        json_decref(t->description);
        if (t->dirfd >= 0)
                close(t->dirfd);
}

/* CLOCK_REALTIME less CLOCK_MONOTONIC. Of several readings the one between the two closest readings of the other clock
 * counts, so that being put aside in between does not look like a step of the clock. */
static int64_t clock_offset_ns(void)
{
        int64_t best_gap = INT64_MAX, offset = 0;

        for (unsigned i = 0; i < 8; i++) {
                int64_t before = clock_now_ns(CLOCK_MONOTONIC), realtime = clock_now_ns(CLOCK_REALTIME);
                int64_t gap = clock_now_ns(CLOCK_MONOTONIC) - before;

                if (gap < best_gap) {
                        best_gap = gap;
                        offset = realtime - before - gap / 2;
                }
        }
        return offset;
}

/* Something that failed for want of a right or a resource will fail again; anything else is this trial's bad luck. */
static bool is_fatal(const struct err *err)
{
        return err->kind == ERR_UNSUPPORTED || err->kind == ERR_USAGE || err->kind == ERR_BUG ||
               err->errnum == ENOMEM || err->errnum == ENOSPC || err->errnum == EDQUOT || err->errnum == EFBIG ||
               err->errnum == EROFS || err->errnum == EMFILE;
}

static int scrape(struct running *t, const char *name, struct err *err)
{
        _cleanup_text_ struct text out = {0};
        _cleanup_close_ int folder = -1;
        int r;

        r = t->boundary->ops->observe(t->boundary, &out, err);
        if (r < 0)
                return r;
        if (out.failed)
                return err_set_nomem(err);
        folder = file_make_dir(t->dirfd, "scrapes", 0755);
        if (folder < 0)
                return err_set_errno(err, ERR_IO, -folder, "cannot make the folder of the scrapes");
        return file_write_atomic(folder, name, 0644, span_of(out.data, out.len), err);
}

static void enter(struct running *t, const char *phase)
{
        t->phase = phase;
        chronicle_note(&t->chronicle, "%s", phase);
}

static int prove(struct running *t, struct proof *proof, struct err *err)
{
        int r = t->boundary->ops->prove(t->boundary, proof, err);

        if (r >= 0)
                chronicle_note(&t->chronicle, "the proof %s%s",
                               proof->holds ? "holds" : "does not hold: ", proof->holds ? "" : proof->reason);
        return r;
}

static int trial_up(struct running *t, const struct trial_context *context, struct err *err)
{
        _cleanup_close_ int inputs = file_open_dir(archive_dirfd(context->archive), ARCHIVE_INPUTS);
        const struct boundary_ops *ops = kinds_boundary(node_scalar_at(t->config, "boundary.kind"));
        int r;

        r = ops->up(t->config, inputs, &t->boundary, err);
        if (r < 0)
                return r;
        t->description = ops->describe(t->boundary);
        r = scrape(t, "before.prom", err);
        if (r < 0)
                return r;
        chronicle_note(&t->chronicle, "the boundary is up");
        return prove(t, &t->before, err);
}

static int trial_prepare(struct running *t, struct err *err)
{
        const struct node *backgrounds = node_get(t->config, "background"), *primary = node_get(t->config, "workload");
        int r;

        for (size_t i = 0; backgrounds && i < backgrounds->n_items; i++) {
                struct background *b = &t->backgrounds[t->n_backgrounds++];
                const struct node *config = backgrounds->items[i];

                b->name = backgrounds->keys[i];
                r = kinds_workload(node_scalar_at(config, "kind"))
                            ->prepare(t->boundary, b->name, config, &b->workload, err);
                if (r < 0) {
                        err_prefix(err, "background %s", b->name);
                        return r;
                }
        }
        return kinds_workload(node_scalar_at(primary, "kind"))
                ->prepare(t->boundary, "workload", primary, &t->primary, err);
}

static int trial_start(struct running *t, struct err *err)
{
        int r = 0;

        t->start_ns = clock_now_ns(CLOCK_MONOTONIC) + START_LEAD_NS;
        for (size_t i = 0; i < t->n_backgrounds && r >= 0; i++)
                r = t->backgrounds[i].workload->ops->start(t->backgrounds[i].workload, t->start_ns, err);
        if (r >= 0)
                r = t->primary->ops->start(t->primary, t->start_ns, err);
        return r;
}

/* Descriptors that say that something ended: the primary's first. */
static size_t watch(const struct running *t, struct pollfd *fds)
{
        size_t n = 0;

        fds[n++] = (struct pollfd){.fd = t->primary->ops->event_fd(t->primary), .events = POLLIN};
        for (size_t i = 0; i < t->n_backgrounds; i++)
                fds[n++] = (struct pollfd){.fd = t->backgrounds[i].workload->ops->event_fd(t->backgrounds[i].workload),
                                           .events = POLLIN};
        return n;
}

static int64_t planned_duration_ns(const struct node *config)
{
        int64_t warmup = 0, duration = 0;
        const char *text;

        text = node_scalar_at(config, "workload.warmup");
        if (text)
                (void)unit_parse(UNIT_DURATION, text, &warmup, NULL);
        text = node_scalar_at(config, "workload.duration");
        if (text)
                (void)unit_parse(UNIT_DURATION, text, &duration, NULL);
        return warmup + duration;
}

static uint32_t done_ppm(int64_t done_ns, int64_t planned_ns)
{
        if (done_ns <= 0)
                return 0;
        return done_ns >= planned_ns ? 1000000 : (uint32_t)(done_ns * 1000000 / planned_ns);
}

/* Waits until the primary has ended. Return: 0; -EINTR; another negative errno. */
static int trial_measure(struct running *t, const struct trial_context *context, struct err *err)
{
        int64_t planned = planned_duration_ns(t->config), half = t->start_ns + planned / 2;
        struct pollfd fds[1 + BACKGROUNDS_MAX];
        size_t n = watch(t, fds);
        bool is_scraped = false;

        for (;;) {
                int64_t now = clock_now_ns(CLOCK_MONOTONIC);
                int r = poll(fds, n, POLL_MS);

                if (*context->stop)
                        return -EINTR;
                if (r < 0 && errno != EINTR)
                        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot wait for the workloads");
                if (!is_scraped && now >= half) {
                        is_scraped = true;
                        r = scrape(t, "during.prom", err);
                        if (r < 0)
                                return r;
                        chronicle_note(&t->chronicle, "half of it is over; counters were read");
                }
                if (context->progress && planned > 0)
                        context->progress(context->userdata, done_ppm(now - t->start_ns, planned));
                if (r > 0 && (fds[0].revents || fds[0].fd < 0)) {
                        chronicle_note(&t->chronicle, "the workload ended");
                        return 0;
                }
                for (size_t i = 1; i < n; i++)
                        if (fds[i].revents)
                                return err_set(err, ERR_ENVIRONMENT, ECHILD, "background %s ended in mid-trial",
                                               t->backgrounds[i - 1].name);
                if (planned > 0 && now > t->start_ns + planned + GRACE_NS)
                        return err_set(err, ERR_ENVIRONMENT, ETIMEDOUT, "the workload did not end in time");
        }
}

static int trial_stop(struct running *t, struct err *err)
{
        int first = t->primary->ops->stop(t->primary, err);

        for (size_t i = 0; i < t->n_backgrounds; i++) {
                int r = t->backgrounds[i].workload->ops->stop(t->backgrounds[i].workload, first < 0 ? NULL : err);

                if (first >= 0)
                        first = r;
        }
        return first;
}

static int collect_samples(struct running *t, struct err *err)
{
        const struct workload_ops *ops = t->primary->ops;
        _cleanup_samples_writer_ struct samples_writer *writer = NULL;
        int r;

        if (!ops->columns)
                return ops->collect(t->primary, NULL, &t->result, err);
        r = samples_create(t->dirfd, "samples.csv.zst", ops->columns, ops->n_columns, &writer, err);
        if (r < 0)
                return r;
        r = ops->collect(t->primary, samples_writer_base(writer), &t->result, err);
        if (r < 0)
                return r;
        return samples_finish(writer, err);
}

static int trial_collect(struct running *t, struct err *err)
{
        int r;

        r = scrape(t, "after.prom", err);
        for (size_t i = 0; i < t->n_backgrounds && r >= 0; i++) {
                struct background *b = &t->backgrounds[i];

                r = b->workload->ops->collect(b->workload, NULL, &b->result, err);
                if (r < 0)
                        err_prefix(err, "background %s", b->name);
        }
        if (r >= 0)
                r = collect_samples(t, err);
        if (r >= 0)
                r = prove(t, &t->after, err);
        return r;
}

/* The phases in their order; the first that fails ends them, and @t->phase is its name. */
static int trial_phases(struct running *t, const struct trial_context *context, struct err *err)
{
        int r;

        enter(t, "setting up");
        r = trial_up(t, context, err);
        if (r < 0 || !t->before.holds)
                return r;
        enter(t, "preparing");
        r = trial_prepare(t, err);
        if (r < 0)
                return r;
        enter(t, "starting");
        r = trial_start(t, err);
        if (r < 0)
                return r;
        enter(t, "measuring");
        r = trial_measure(t, context, err);
        if (r < 0)
                return r;
        enter(t, "stopping");
        r = trial_stop(t, err);
        if (r < 0)
                return r;
        enter(t, "collecting");
        return trial_collect(t, err);
}

static json_t *proof_to_json(const struct proof *proof)
{
        return json_pack("{s:b, s:s, s:O?}", "holds", proof->holds, "reason", proof->reason, "evidence",
                         proof->evidence);
}

static json_t *backgrounds_to_json(const struct running *t)
{
        json_t *all = json_object();

        for (size_t i = 0; i < t->n_backgrounds; i++) {
                const struct background *b = &t->backgrounds[i];
                json_t *one = json_pack("{s:O?}", "notes", b->result.notes);

                if (b->result.counts)
                        json_object_update(one, b->result.counts);
                json_object_set_new(all, b->name, one);
        }
        return all;
}

static void add(json_t *object, const char *key, json_t *value)
{
        json_object_set_new(object, key, value);
}

/* What the trial did; docs/formats/trial.md. */
static json_t *trial_to_json(const struct running *t, const struct plan *plan, const struct plan_trial *trial)
{
        json_t *record = json_pack("{s:i, s:s, s:i, s:s, s:i, s:i, s:i}", "assay", 1, "trial", trial->name, "index",
                                   (int)trial->index, "cell", plan->manifest->cells[trial->cell].name, "round",
                                   (int)trial->round, "extra", (int)trial->extra, "campaign", (int)trial->campaign);
        char seed[PLAN_SEED_SIZE], host[65] = "";

        gethostname(host, sizeof(host) - 1);
        add(record, "seed", json_string(plan_seed_format(trial->seed, seed)));
        add(record, "host", json_string(host));
        add(record, "started_realtime_ns", json_integer(t->started_realtime_ns));
        add(record, "ended_realtime_ns", json_integer(t->ended_realtime_ns));
        add(record, "failure", json_string(t->failure));
        add(record, "boundary", t->description ? json_incref(t->description) : json_object());
        add(record, "counts", t->result.counts ? json_incref(t->result.counts) : json_object());
        add(record, "notes", t->result.notes ? json_incref(t->result.notes) : json_object());
        add(record, "background", backgrounds_to_json(t));
        add(record, "proof",
            json_pack("{s:o, s:o}", "before", proof_to_json(&t->before), "after", proof_to_json(&t->after)));
        add(record, "clock",
            json_pack("{s:I}", "realtime_step_ns", (json_int_t)(clock_offset_ns() - t->clock_offset_ns)));
        return record;
}

static int trial_commit(struct running *t, const struct trial_context *context, const struct plan_trial *trial,
                        json_t *record, struct trial_outcome *ret, struct err *err)
{
        _cleanup_json_ json_t *line = NULL;
        int r;

        r = validity_judge(t->dirfd, record, &ret->is_valid, ret->reason, err);
        if (r < 0)
                return r;
        chronicle_note(&t->chronicle, "%s%s", ret->is_valid ? "valid" : "invalid: ", ret->reason);
        r = chronicle_write(&t->chronicle, t->dirfd, err);
        if (r >= 0)
                r = json_save(t->dirfd, "trial.json", record, err);
        if (r < 0)
                return r;

        line = json_pack("{s:s, s:s, s:i, s:s, s:b, s:s, s:I, s:I}", "event", "trial", "trial", trial->name, "round",
                         (int)trial->round, "cell", context->plan->manifest->cells[trial->cell].name, "valid",
                         ret->is_valid, "reason", ret->reason, "started_realtime_ns",
                         (json_int_t)t->started_realtime_ns, "ended_realtime_ns", (json_int_t)t->ended_realtime_ns);
        if (!line)
                return err_set_nomem(err);
        return archive_trial_commit(context->archive, trial->name, line, err);
}

int trial_run(const struct trial_context *context, const struct plan_trial *trial, struct trial_outcome *ret,
              struct err *err)
{
        struct running t = {.config = context->plan->manifest->cells[trial->cell].config,
                            .dirfd = -1,
                            .before.reason = NO_PROOF,
                            .after.reason = NO_PROOF,
                            .started_realtime_ns = clock_now_ns(CLOCK_REALTIME),
                            .clock_offset_ns = clock_offset_ns()};
        _cleanup_json_ json_t *record = NULL;
        struct trial_outcome outcome = {0};
        int r;

        t.dirfd = archive_trial_begin(context->archive, trial->name, err);
        if (t.dirfd < 0)
                return t.dirfd;

        chronicle_open(&t.chronicle);
        r = trial_phases(&t, context, err);
        if (r < 0 && r != -EINTR && !is_fatal(err)) {
                snprintf(t.failure, sizeof(t.failure), "%s: %s", t.phase, err->text);
                chronicle_note(&t.chronicle, "failed: %s", err->text);
                *err = (struct err){0};
                r = 0;
        }
        if (r == 0) {
                running_down(&t); /* before the commit: what is committed has left nothing behind */
                chronicle_note(&t.chronicle, "all is down");
                t.ended_realtime_ns = clock_now_ns(CLOCK_REALTIME);
                record = trial_to_json(&t, context->plan, trial);
                r = record ? trial_commit(&t, context, trial, record, &outcome, err) : err_set_nomem(err);
        } else if (r != -EINTR) {
                err_prefix(err, "trial %s, %s", trial->name, t.phase);
        }
        running_done(&t);
        if (r == 0)
                *ret = outcome;
        return r;
}
