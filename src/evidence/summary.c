/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "evidence/series.h"
#include "evidence/summary-internal.h"
#include "evidence/trial.h"
#include "evidence/validity.h"

#define SUMMARY_VERSION 1

/* One trial that was read. */
struct entry {
        size_t cell;
        size_t round;     /* its place: planned rounds from 1, then extra rounds */
        int64_t position; /* the planned round that it stands for; 0: its round does not count */
        json_t *json;     /* NULL: not valid */
};

struct reading {
        struct archive *archive;
        const struct plan *plan;
        size_t n_rounds; /* planned and extra ones */
        size_t n, allocated;
        struct entry *entries;
        bool *seen; /* [round * n_cells + cell] */
        struct series_set set;
        int64_t warmups;
        json_t *invalid, *disputed;
};

static int reading_init(struct reading *reading, struct archive *archive, const struct plan *plan, struct err *err)
{
        size_t n_rounds = plan->manifest->rounds + plan_extra_rounds_max(plan);

        *reading = (struct reading){
                .archive = archive,
                .plan = plan,
                .n_rounds = n_rounds,
                .seen = calloc((n_rounds + 1) * plan->manifest->n_cells, sizeof(bool)),
                .invalid = json_array(),
                .disputed = json_array(),
        };
        return reading->seen && reading->invalid && reading->disputed ? 0 : err_set_nomem(err);
}

static void reading_done(struct reading *reading)
{
        for (size_t i = 0; i < reading->n; i++)
                json_decref(reading->entries[i].json);
        free(reading->entries);
        free(reading->seen);
        series_set_done(&reading->set);
        json_decref(reading->invalid);
        json_decref(reading->disputed);
}

#define _cleanup_reading_ _cleanup_(reading_done)

static struct entry *entry_add(struct reading *reading)
{
        if (reading->n == reading->allocated) {
                size_t wanted = MAX(reading->allocated * 2, (size_t)64);
                struct entry *grown = reallocarray(reading->entries, wanted, sizeof(*grown));

                if (!grown)
                        return NULL;
                reading->entries = grown;
                reading->allocated = wanted;
        }
        reading->entries[reading->n] = (struct entry){0};
        return &reading->entries[reading->n++];
}

/* Finds the place of a trial in the plan. */
static int locate(struct reading *reading, const struct trial *trial, struct entry *entry, struct err *err)
{
        const struct manifest *manifest = reading->plan->manifest;
        bool *seen;

        for (entry->cell = 0; entry->cell < manifest->n_cells; entry->cell++)
                if (streq(manifest->cells[entry->cell].name, trial->cell))
                        break;
        if (entry->cell == manifest->n_cells || plan_is_skipped(reading->plan, entry->cell))
                return err_set(err, ERR_DATA, EINVAL, "trial %s: the plan has no cell \"%s\"", trial->name,
                               trial->cell);
        if ((trial->round > 0) == (trial->extra > 0) || trial->round > manifest->rounds ||
            trial->extra > plan_extra_rounds_max(reading->plan))
                return err_set(err, ERR_DATA, EINVAL,
                               "trial %s: round %" PRId64 " and extra round %" PRId64 ", the plan has %u rounds and at "
                               "most %u extra ones",
                               trial->name, trial->round, trial->extra, manifest->rounds,
                               plan_extra_rounds_max(reading->plan));
        entry->round = (size_t)(trial->extra > 0 ? manifest->rounds + trial->extra : trial->round);
        seen = &reading->seen[entry->round * manifest->n_cells + entry->cell];
        if (*seen)
                return err_set(err, ERR_DATA, EEXIST, "trial %s: its round has another trial of cell %s", trial->name,
                               trial->cell);
        *seen = true;
        return 0;
}

static int add_invalid(struct reading *reading, const struct trial *trial, const char *reason)
{
        return json_array_append_new(reading->invalid, json_pack("{s:s, s:s, s:I, s:I, s:s}", "trial", trial->name,
                                                                 "cell", trial->cell, "round", (json_int_t)trial->round,
                                                                 "extra", (json_int_t)trial->extra, "reason", reason));
}

static int take_trial(struct reading *reading, int dirfd, const struct trial *trial, struct err *err)
{
        char reason[VALIDITY_REASON_SIZE];
        struct entry entry = {0};
        bool is_valid;
        struct entry *added;
        int r;

        if (trial->round == 0 && trial->extra == 0) {
                reading->warmups++;
                return 0;
        }
        r = locate(reading, trial, &entry, err);
        if (r >= 0)
                r = series_read(dirfd, trial, &reading->set, err);
        if (r < 0)
                return r;
        is_valid = validity_check(trial, &reading->set, reason);
        if (is_valid != json_is_true(json_object_get(trial->json, "valid")) &&
            json_array_append_new(reading->disputed, json_string(trial->name)) < 0)
                return err_set_nomem(err);
        if (is_valid)
                entry.json = summary_trial_to_json(trial, &reading->set);
        else if (add_invalid(reading, trial, reason) < 0)
                return err_set_nomem(err);
        if (is_valid && !entry.json)
                return err_set_nomem(err);

        added = entry_add(reading);
        if (!added) {
                json_decref(entry.json);
                return err_set_nomem(err);
        }
        *added = entry;
        return 0;
}

static int read_trial(struct reading *reading, const char *name, struct err *err)
{
        _cleanup_trial_ struct trial trial = {0};
        _cleanup_close_ int dirfd = -1;
        int r;

        dirfd = archive_trial_open(reading->archive, name, err);
        if (dirfd < 0)
                return dirfd;
        r = trial_load(dirfd, name, &trial, err);
        if (r < 0)
                return r;
        if (!streq(trial.name, name))
                return err_set(err, ERR_DATA, EINVAL, "trial %s: its trial.json is that of %s", name, trial.name);
        return take_trial(reading, dirfd, &trial, err);
}

/* The journal's lines of kind "trial", in its order. */
static int read_trials(struct reading *reading, struct err *err)
{
        _cleanup_json_ json_t *journal = NULL;
        json_t *line;
        size_t i;
        int r;

        r = archive_journal_read(reading->archive, &journal, err);
        if (r < 0)
                return r;
        json_array_foreach(journal, i, line)
        {
                const char *event = json_string_value(json_object_get(line, "event")), *name;

                if (!event || !streq(event, "trial"))
                        continue;
                r = json_get_string(line, "journal.jsonl", "trial", &name, err);
                if (r >= 0)
                        r = read_trial(reading, name, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* A round counts where each of its cells has a valid trial. An extra one that is whole takes the place of the first
 * planned one that is not. Return: how many places are taken, or -ENOMEM. */
static int assign_positions(struct reading *reading)
{
        const struct manifest *manifest = reading->plan->manifest;
        size_t whole = manifest->n_cells - reading->plan->n_skipped, extra = manifest->rounds + 1;
        _cleanup_free_ size_t *valid = calloc(reading->n_rounds + 1, sizeof(*valid));
        _cleanup_free_ int64_t *position = calloc(reading->n_rounds + 1, sizeof(*position));
        int counted = 0;

        if (!valid || !position)
                return -ENOMEM;
        for (size_t i = 0; i < reading->n; i++)
                valid[reading->entries[i].round] += reading->entries[i].json != NULL;
        for (size_t round = 1; round <= manifest->rounds; round++) {
                size_t from = round;

                if (valid[round] < whole) {
                        while (extra <= reading->n_rounds && valid[extra] < whole)
                                extra++;
                        from = extra++;
                }
                if (from <= reading->n_rounds) {
                        position[from] = (int64_t)round;
                        counted++;
                }
        }
        for (size_t i = 0; i < reading->n; i++)
                reading->entries[i].position = position[reading->entries[i].round];
        return counted;
}

/* By cell, then by position; what does not count comes last, by round. */
static int compare_entries(const void *a, const void *b)
{
        const struct entry *x = a, *y = b;
        uint64_t px = (uint64_t)x->position - 1, py = (uint64_t)y->position - 1;

        if (x->cell != y->cell)
                return x->cell < y->cell ? -1 : 1;
        if (px != py)
                return px < py ? -1 : 1;
        return (x->round > y->round) - (x->round < y->round);
}

/* Says at which place, and so in which of the campaigns, a trial counts. */
static int set_position(const struct manifest *manifest, const struct entry *entry)
{
        uint32_t block = manifest->rounds / manifest->campaigns;
        int64_t campaign = entry->position > 0 ? (entry->position - 1) / block + 1 : 0;

        if (json_object_set_new(entry->json, "position", json_integer(entry->position)) < 0 ||
            json_object_set_new(entry->json, "campaign", json_integer(campaign)) < 0)
                return -ENOMEM;
        return 0;
}

static json_t *cell_to_json(const struct reading *reading, size_t cell, size_t *at)
{
        const struct manifest *manifest = reading->plan->manifest;
        _cleanup_json_ json_t *json = json_pack("{s:s, s:[]}", "cell", manifest->cells[cell].name, "trials");
        json_t *trials = json_object_get(json, "trials");

        for (; *at < reading->n && reading->entries[*at].cell == cell; (*at)++) {
                const struct entry *entry = &reading->entries[*at];

                if (entry->json && (set_position(manifest, entry) < 0 || json_array_append(trials, entry->json) < 0))
                        return NULL;
        }
        return json && summary_cell_finish(json) == 0 ? TAKE_PTR(json) : NULL;
}

static json_t *cells_to_json(const struct reading *reading)
{
        _cleanup_json_ json_t *cells = json_array();
        size_t at = 0;

        for (size_t cell = 0; cell < reading->plan->manifest->n_cells; cell++)
                if (!plan_is_skipped(reading->plan, cell) &&
                    json_array_append_new(cells, cell_to_json(reading, cell, &at)) < 0)
                        return NULL;
        return TAKE_PTR(cells);
}

int summary_make(struct archive *archive, const struct plan *plan, json_t **ret, struct err *err)
{
        _cleanup_reading_ struct reading reading = {0};
        const struct manifest *manifest = plan->manifest;
        json_t *summary;
        int r, counted;

        r = reading_init(&reading, archive, plan, err);
        if (r >= 0)
                r = read_trials(&reading, err);
        if (r < 0)
                return r;
        counted = assign_positions(&reading);
        if (counted < 0)
                return err_set_nomem(err);
        if (reading.n > 0) /* else there is no array */
                qsort(reading.entries, reading.n, sizeof(*reading.entries), compare_entries);
        summary = json_pack("{s:i, s:s, s:{s:I, s:I, s:I}, s:I, s:o, s:O, s:O}", "assay", SUMMARY_VERSION,
                            "manifest_sha256", manifest->sha256, "rounds", "planned", (json_int_t)manifest->rounds,
                            "counted", (json_int_t)counted, "campaigns", (json_int_t)manifest->campaigns,
                            "warmup_trials", (json_int_t)reading.warmups, "cells", cells_to_json(&reading), "invalid",
                            reading.invalid, "disputed", reading.disputed);
        if (!summary)
                return err_set_nomem(err);
        *ret = summary;
        return 0;
}
