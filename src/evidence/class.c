/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/class.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macro.h"
#include "base/text.h"
#include "evidence/trial.h"

#define PLAN_BYTES_MAX    (64u << 20)
#define RUN_ENV_BYTES_MAX (16u << 20)

const char *class_name(enum evidence_class class)
{
        static const char *const names[] = {
                [CLASS_ATTRIBUTABLE] = "attributable", [CLASS_PROVISIONAL] = "provisional",
                [CLASS_SUPERSEDED] = "superseded",     [CLASS_HISTORICAL] = "historical",
                [CLASS_INVALID] = "invalid",
        };

        return names[class];
}

struct findings {
        enum evidence_class class;
        json_t *reasons;
        json_t *weaker; /* sentence to the number of trials that say so */
        size_t without_samples;
        unsigned resumptions;
        char commit[65]; /* of the build that started it */
        bool failed;     /* memory ran out */
};

static void find(struct findings *f, enum evidence_class class, const char *format, ...) _printf_(3, 4);

static void find(struct findings *f, enum evidence_class class, const char *format, ...)
{
        _cleanup_text_ struct text reason = {0};
        va_list args;

        va_start(args, format);
        text_addv(&reason, format, args);
        va_end(args);
        f->class = MAX(f->class, class);
        if (reason.failed || json_array_append_new(f->reasons, json_pack("{s:s, s:s}", "class", class_name(class),
                                                                         "reason", reason.data)) < 0)
                f->failed = true;
}

static void examine_verdict(const json_t *verdict, struct findings *f)
{
        const json_t *campaign = json_object_get(verdict, "campaign");
        json_t *reason;
        size_t i;

        if (json_is_true(json_object_get(campaign, "valid")))
                return;
        json_array_foreach(json_object_get(campaign, "reasons"), i, reason)
        {
                if (json_is_string(reason))
                        find(f, CLASS_INVALID, "%s", json_string_value(reason));
        }
        if (f->class != CLASS_INVALID)
                find(f, CLASS_INVALID, "there is no verdict of a valid campaign");
}

static bool is_sample_file(const char *path)
{
        const char *name = strrchr(path, '/');

        return name && strncmp(path, ARCHIVE_TRIALS "/", strlen(ARCHIVE_TRIALS "/")) == 0 &&
               streq(name, "/samples.csv.zst");
}

/* Samples that were lost make an archive historical; any other fault means that it is not what was sealed. */
static void examine_bag(const struct bag_report *bag, struct findings *f)
{
        size_t lost = 0;

        for (size_t i = 0; i < bag->n_faults; i++)
                lost += bag->faults[i].kind == BAG_MISSING && is_sample_file(bag->faults[i].path);
        if (lost > 0)
                find(f, CLASS_HISTORICAL, "the samples of %zu trial%s are missing", lost, text_plural(lost));
        if (bag->n_faults > lost)
                find(f, CLASS_INVALID, "%zu file%s not as the digests say", bag->n_faults - lost,
                     bag->n_faults - lost == 1 ? " is" : "s are");
}

static bool has_file(int dirfd, const char *path)
{
        struct stat st;

        return fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

static int examine_plan(struct archive *archive, struct findings *f, struct err *err)
{
        _cleanup_json_ json_t *plan = NULL;
        json_t *item;
        size_t i;
        int r;

        r = json_load(archive_dirfd(archive), ARCHIVE_PLAN, PLAN_BYTES_MAX, &plan, err);
        if (r < 0)
                return r;
        if (json_is_true(json_object_get(plan, "short")))
                find(f, CLASS_PROVISIONAL, "the short form of the experiment was run");
        json_array_foreach(json_object_get(plan, "overrides"), i, item)
        {
                find(f, CLASS_PROVISIONAL, "the manifest was overridden on the command line: %s",
                     json_is_string(item) ? json_string_value(item) : "?");
        }
        json_array_foreach(json_object_get(plan, "skipped"), i, item)
        {
                find(f, CLASS_PROVISIONAL, "the host could not run cell %s",
                     json_is_string(item) ? json_string_value(item) : "?");
        }
        return 0;
}

static void examine_commit(const char *commit, struct findings *f)
{
        if (commit && !f->commit[0])
                snprintf(f->commit, sizeof(f->commit), "%s", commit);
        else if (commit && !streq(commit, f->commit))
                find(f, CLASS_PROVISIONAL, "started by a build of %s, resumed by one of %s", f->commit, commit);
}

/* @path: the environment of the start, or of a resumption. Return: 1; 0 where it is missing; or a negative errno. */
static int examine_environment(struct archive *archive, const char *path, struct findings *f, struct err *err)
{
        _cleanup_json_ json_t *env = NULL;
        const json_t *tool, *modified;
        int r;

        if (!has_file(archive_dirfd(archive), path)) {
                find(f, CLASS_PROVISIONAL, "%s, which names the build that ran it, is missing", path);
                return 0;
        }
        r = json_load(archive_dirfd(archive), path, RUN_ENV_BYTES_MAX, &env, err);
        if (r < 0)
                return r;
        tool = json_object_get(json_object_get(env, "stable"), "tool");
        modified = json_object_get(tool, "is_modified");
        if (!json_is_boolean(modified))
                find(f, CLASS_PROVISIONAL, "%s does not say which build ran it", path);
        else if (json_is_true(modified))
                find(f, CLASS_PROVISIONAL, "the build was modified, or made of no known commit (%s)", path);
        examine_commit(json_string_value(json_object_get(tool, "commit")), f);
        return 1;
}

static int examine_environments(struct archive *archive, struct findings *f, struct err *err)
{
        int r = examine_environment(archive, ARCHIVE_RUN_ENV, f, err);

        for (unsigned i = 1; i <= f->resumptions && r >= 0; i++) {
                char path[64];

                snprintf(path, sizeof(path), ARCHIVE_RUN_ENV_RESUMED, i);
                r = examine_environment(archive, path, f, err);
                if (r == 0) /* one is enough to say */
                        return 0;
        }
        return r;
}

static void count_weaker(struct findings *f, const char *sentence)
{
        int64_t n = json_integer_value(json_object_get(f->weaker, sentence)) + 1;

        if (json_object_set_new(f->weaker, sentence, json_integer(n)) < 0)
                f->failed = true;
}

/* What an instrument lacked whose request the kernel refused; by the names that trial.json has for requests. */
static const char *lack_of(const char *request)
{
        static const struct {
                const char *request, *lack;
        } lacks[] = {
                {"cpu", "was not pinned to its processor"},       {"fifo_priority", "ran without real-time priority"},
                {"memory_locked", "ran without locked memory"},   {"nice", "ran without its nice value"},
                {"timer_slack_ns", "ran without precise timers"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(lacks); i++)
                if (streq(lacks[i].request, request))
                        return lacks[i].lack;
        return NULL;
}

/* Each instrument of a workload's notes, with what was refused to it.
 * @background: name of the workload; NULL for the primary one */
static void examine_notes(json_t *notes, const char *background, struct findings *f)
{
        const char *name, *request;
        json_t *instrument, *why;

        json_object_foreach(notes, name, instrument)
        {
                const json_t *scheduling = json_object_get(instrument, "scheduling");

                json_object_foreach(json_object_get(scheduling ?: instrument, "refused"), request, why)
                {
                        _cleanup_free_ char *sentence = NULL;
                        const char *lack = lack_of(request);

                        sentence = text_format("the %s%s%s %s%s (%s)", name, background ? " of " : "", background ?: "",
                                               lack ?: "was refused ", lack ? "" : request,
                                               json_is_string(why) ? json_string_value(why) : "?");
                        if (sentence)
                                count_weaker(f, sentence);
                        else
                                f->failed = true;
                }
        }
}

static void examine_weaker(const struct trial *trial, struct findings *f)
{
        json_t *sentence, *background;
        const char *name;
        size_t i;

        json_array_foreach(json_object_get(trial->boundary, "weaker"), i, sentence)
        {
                if (json_is_string(sentence))
                        count_weaker(f, json_string_value(sentence));
        }
        examine_notes(json_object_get(trial->json, "notes"), NULL, f);
        json_object_foreach(trial->background, name, background)
                examine_notes(json_object_get(background, "notes"), name, f);
}

static int examine_trial(struct archive *archive, const char *name, struct findings *f, struct err *err)
{
        _cleanup_trial_ struct trial trial = {0};
        _cleanup_close_ int dirfd = -1;
        int r;

        dirfd = archive_trial_open(archive, name, err);
        if (dirfd < 0)
                return dirfd;
        r = trial_load(dirfd, name, &trial, err);
        if (r < 0)
                return r;
        examine_weaker(&trial, f);
        if (trial.slots > 0 && !trial.failure[0] && !has_file(dirfd, "samples.csv.zst"))
                f->without_samples++;
        return 0;
}

static int examine_trials(const struct class_input *input, struct findings *f, struct err *err)
{
        _cleanup_json_ json_t *journal = NULL;
        const char *sentence;
        json_t *line, *n;
        size_t i;
        int r;

        r = archive_journal_read(input->archive, &journal, err);
        if (r < 0)
                return r;
        json_array_foreach(journal, i, line)
        {
                const char *event = json_string_value(json_object_get(line, "event"));
                const char *name = json_string_value(json_object_get(line, "trial"));

                f->resumptions += event && streq(event, "resumed");
                if (!event || !name || !streq(event, "trial"))
                        continue;
                r = examine_trial(input->archive, name, f, err);
                if (r < 0)
                        return r;
        }
        json_object_foreach(f->weaker, sentence, n)
        {
                find(f, CLASS_PROVISIONAL, "%s (in %" PRId64 " trial%s)", sentence, (int64_t)json_integer_value(n),
                     text_plural((uint64_t)json_integer_value(n)));
        }
        if (f->without_samples > 0 && !input->bag)
                find(f, CLASS_HISTORICAL, "the samples of %zu trial%s are missing", f->without_samples,
                     text_plural(f->without_samples));
        return 0;
}

static int examine(const struct class_input *input, struct findings *f, struct err *err)
{
        int r;

        examine_verdict(input->verdict, f);
        if (input->bag)
                examine_bag(input->bag, f);
        if (input->n_differences > 0)
                find(f, CLASS_INVALID, "%zu value%s not what comes out when made again", input->n_differences,
                     input->n_differences == 1 ? " is" : "s are");
        if (!has_file(archive_dirfd(input->archive), "manifest-sha256.txt"))
                find(f, CLASS_HISTORICAL, "manifest-sha256.txt, which holds the digests, is missing");
        if (input->superseded_by)
                find(f, CLASS_SUPERSEDED, "%s takes its place", input->superseded_by);
        r = examine_trials(input, f, err);
        if (r >= 0)
                r = examine_plan(input->archive, f, err);
        if (r >= 0)
                r = examine_environments(input->archive, f, err);
        return r;
}

int class_derive(const struct class_input *input, enum evidence_class *ret, json_t **ret_reasons, struct err *err)
{
        struct findings f = {.reasons = json_array(), .weaker = json_object()};
        int r;

        r = f.reasons && f.weaker ? examine(input, &f, err) : err_set_nomem(err);
        if (r >= 0 && f.failed)
                r = err_set_nomem(err);
        if (r >= 0) {
                *ret = f.class;
                *ret_reasons = json_incref(f.reasons);
        }
        json_decref(f.reasons);
        json_decref(f.weaker);
        return r;
}
