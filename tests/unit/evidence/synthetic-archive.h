/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A whole finished archive, made up in a test as the campaign makes one. Tests change its files before or after they
 * are sealed. */

#include <string.h>

#include "archive/bag.h"
#include "base/file.h"
#include "evidence/reload.h"
#include "evidence/summary.h"
#include "evidence/verdict.h"
#include "tests/unit/evidence/manifest-kinds.h"
#include "tests/unit/evidence/synthetic.h"

#define SYNTHETIC_SLOTS  340
#define SYNTHETIC_WARMUP 20

static const char synthetic_manifest[] =
        "assay: 1\n"
        "id: exp-900\n"
        "title: An archive made up in a test\n"
        "hypotheses:\n"
        "  tail:\n"
        "    claim: The tail stays.\n"
        "    rules:\n"
        "      - {of: [a, load], versus: [a, idle], metric: rtt.p99, ratio_at_most: 1.25}\n"
        "base: {boundary: {kind: none}, workload: {kind: stamp-probe, duration: 320ms, warmup: 20ms}}\n"
        "arms: {a: {}, harm: {control: harm, workload: {rate: 1/s}}, same: {control: same-same}}\n"
        "points: {idle: {}, load: {workload: {duration: 321ms}}}\n"
        "cells: {a: all, harm: all, same: [idle]}\n"
        "control-rules:\n"
        "  same: {of: [same, idle], versus: [a, idle], metric: rtt.p99, ratio_within: [0.8, 1.25]}\n"
        "  harm: {of: [harm, load], versus: [harm, idle], metric: rtt.p99, ratio_at_least: 2.0}\n"
        "rounds: 6\n"
        "seed: 9\n"
        "short: {rounds: 6, workload: {rate: 2/s}}\n";

static inline void synthetic_must(int r, const struct err *err)
{
        if (r < 0)
                fail_msg("%s", err->text);
}

/* Makes and commits one trial of the plan: the harm under load answers in a millisecond, all else in 50 us and a bit.
 */
static inline void synthetic_commit(struct archive *archive, const struct plan *plan, const struct plan_trial *t)
{
        const char *cell = plan->manifest->cells[t->cell].name;
        _cleanup_json_ json_t *trial = synthetic_trial(t->name, cell, SYNTHETIC_SLOTS, SYNTHETIC_WARMUP);
        _cleanup_json_ json_t *line = json_pack("{s:s, s:s, s:s, s:i, s:b, s:s, s:i, s:i}", "event", "trial", "trial",
                                                t->name, "cell", cell, "round", (int)t->round, "valid", 1, "reason", "",
                                                "started_realtime_ns", 5, "ended_realtime_ns", 9);
        int64_t rtt_ns = streq(cell, "harm/load") ? 1000000 : 50000;
        struct synthetic_row rows[SYNTHETIC_SLOTS];
        _cleanup_close_ int dirfd = -1;
        char seed[PLAN_SEED_SIZE];
        struct err err = {0};

        json_object_set_new(trial, "index", json_integer(t->index));
        json_object_set_new(trial, "round", json_integer(t->round));
        json_object_set_new(trial, "campaign", json_integer(t->campaign));
        json_object_set_new(trial, "seed", json_string(plan_seed_format(t->seed, seed)));
        for (int64_t i = 0; i < SYNTHETIC_SLOTS; i++)
                rows[i] = synthetic_answer(i, rtt_ns + i * 10 + (int64_t)t->index);
        dirfd = archive_trial_begin(archive, t->name, &err);
        synthetic_must(dirfd, &err);
        synthetic_samples(dirfd, rows, SYNTHETIC_SLOTS);
        synthetic_must(json_save(dirfd, "trial.json", trial, &err), &err);
        synthetic_must(archive_trial_commit(archive, t->name, line, &err), &err);
}

/* All that is there before summary and verdict. */
static inline struct archive *synthetic_archive(int dirfd, const struct manifest_options *options)
{
        _cleanup_json_ json_t *env =
                json_pack("{s:i, s:{s:{s:b}}, s:{}}", "assay", 1, "stable", "tool", "is_modified", 0, "volatile");
        _cleanup_manifest_ struct manifest *manifest = NULL;
        _cleanup_plan_ struct plan *plan = NULL;
        _cleanup_json_ json_t *json = NULL;
        struct archive *archive = NULL;
        struct err err = {0};

        synthetic_must(archive_create(dirfd, "archive", &archive, &err), &err);
        synthetic_must(manifest_parse(span_of_text(synthetic_manifest), "manifest", -1, &test_kinds, options, &manifest,
                                      &err),
                       &err);
        synthetic_must(plan_make(manifest, &test_kinds, options, NULL, 0, &plan, &err), &err);
        synthetic_must(plan_to_json(plan, &json, &err), &err);
        synthetic_must(archive_write(archive, ARCHIVE_MANIFEST, span_of_text(synthetic_manifest), &err), &err);
        synthetic_must(archive_write_json(archive, ARCHIVE_PLAN, json, &err), &err);
        synthetic_must(archive_write_json(archive, ARCHIVE_RUN_ENV, env, &err), &err);
        for (size_t i = 0; i < plan->n_trials; i++)
                synthetic_commit(archive, plan, &plan->trials[i]);
        return archive;
}

static inline void synthetic_freeze(struct archive *archive)
{
        _cleanup_json_ json_t *summary = NULL, *verdict = NULL;
        _cleanup_manifest_ struct manifest *manifest = NULL;
        _cleanup_plan_ struct plan *plan = NULL;
        struct err err = {0};

        synthetic_must(reload_derive(archive, &test_kinds, &manifest, &plan, &err), &err);
        synthetic_must(summary_make(archive, plan, &summary, &err), &err);
        synthetic_must(verdict_make(manifest, summary, &verdict, &err), &err);
        synthetic_must(archive_write_json(archive, ARCHIVE_SUMMARY, summary, &err), &err);
        synthetic_must(archive_write_json(archive, ARCHIVE_VERDICT, verdict, &err), &err);
}

static inline void synthetic_seal(struct archive *archive)
{
        struct err err = {0};

        synthetic_must(bag_seal(archive, NULL, 0, &err), &err);
}

/* Replaces the first @from in a file by @to. */
static inline void synthetic_edit(const struct archive *archive, const char *path, const char *from, const char *to)
{
        _cleanup_free_ char *old = NULL, *edited = NULL;
        struct err err = {0};
        const char *at;
        size_t len;

        synthetic_must(file_read(archive_dirfd(archive), path, 1 << 20, &old, &len, &err), &err);
        at = strstr(old, from);
        assert_non_null(at);
        assert_true(asprintf(&edited, "%.*s%s%s", (int)(at - old), old, to, at + strlen(from)) > 0);
        synthetic_must(file_write_atomic(archive_dirfd(archive), path, 0644, span_of_text(edited), &err), &err);
}

/* Lays a patch over a JSON file, which stays in canonical form. */
static inline void synthetic_patch_file(const struct archive *archive, const char *path, const char *patch)
{
        _cleanup_json_ json_t *json = NULL;
        struct err err = {0};

        synthetic_must(json_load(archive_dirfd(archive), path, 1 << 24, &json, &err), &err);
        synthetic_patch(json, patch);
        synthetic_must(json_save(archive_dirfd(archive), path, json, &err), &err);
}
