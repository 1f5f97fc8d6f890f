/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "evidence/manifest.h"

/* What will be run, in which order: a pure function of manifest, options and seed, written before anything runs. */

struct plan_trial {
        uint32_t index;    /* its number in the campaign, from 1; extra rounds go on counting */
        uint32_t round;    /* from 1; 0 in a warm-up round and in an extra round */
        uint32_t extra;    /* number of the extra round, from 1; 0 in a planned one */
        uint32_t campaign; /* the block of rounds, from 1; 0 where @round is 0 */
        size_t cell;
        uint64_t seed;
        char name[160]; /* "0007-per-queue-600mbit-r2", "-w1" in a warm-up round, "-x1" in an extra one: the trial's
                          folder */
};

struct plan {
        const struct manifest *manifest; /* borrowed */
        bool is_short;
        size_t n_overrides;
        char **overrides;
        size_t n_skipped; /* cells that --skip-missing leaves out */
        size_t *skipped;
        size_t n_trials;
        struct plan_trial *trials;
        int64_t expected_duration_ns;
        int64_t expected_disk_bytes;
};

/* plan_make - the plan of @manifest, which must outlive it
 * @options:              those that the manifest was loaded with
 * @skipped, @n_skipped:  cells not to run
 *
 * Return: 0, or a negative errno with the reason in @err (kind unsupported if all cells are skipped).
 */
int plan_make(const struct manifest *manifest, const struct kinds *kinds, const struct manifest_options *options,
              const size_t *skipped, size_t n_skipped, struct plan **ret, struct err *err);

void plan_free(struct plan *plan);

DEFINE_CLEANUP(struct plan *, plan_free)
#define _cleanup_plan_ _cleanup_(plan_free_cleanup)

/* plan_round - the trials of extra round number @extra (from 1), ordered as the seed says: same cells, numbered on from
 * what came before. Their names end in "-xN".
 * @ret: as many as a round has cells; the caller frees it
 */
int plan_round(const struct plan *plan, uint32_t extra, struct plan_trial **ret, size_t *ret_n, struct err *err);

/* plan_find - the trial of this name, planned or of an extra round. Return: 1; 0 if there is none; a negative errno. */
int plan_find(const struct plan *plan, const char *name, struct plan_trial *ret, struct err *err);

/* plan_seed_format - the seed of a trial as it is stored: 16 hexadecimal digits. Return: @buf. */
#define PLAN_SEED_SIZE 17
char *plan_seed_format(uint64_t seed, char buf[static PLAN_SEED_SIZE]);

/* plan_is_skipped - whether the plan leaves out the manifest's cell of that index */
bool plan_is_skipped(const struct plan *plan, size_t cell);

/* plan_extra_rounds_max - how many extra rounds invalid trials may cost: max(2, 20% of the rounds) */
uint32_t plan_extra_rounds_max(const struct plan *plan);

/* plan_to_json - the content of data/plan.json (docs/formats/plan.md), with each cell's merged configuration */
int plan_to_json(const struct plan *plan, json_t **ret, struct err *err);

/* How a stored plan is checked: its options, then the manifest with them, then what it skipped, then plan_make() and
 * plan_expected_from_json() and plan_to_json(), whose text has to be the stored one, byte by byte. */

/* plan_options_from_json - the options that a stored plan was made with. Strings are borrowed from @json. The caller
 * frees ret_overrides (the array alone). */
int plan_options_from_json(const json_t *json, struct manifest_options *ret, const char ***ret_overrides,
                           struct err *err);

/* plan_skipped_from_json - the cells that a stored plan left out, as indices of @manifest's; the caller frees them */
int plan_skipped_from_json(const json_t *json, const struct manifest *manifest, size_t **ret, size_t *ret_n,
                           struct err *err);

/* plan_expected_from_json - take over what a stored plan expected of time and disk
 *
 * That is an estimate of the program that made it. Another version may estimate better, and then still has to find the
 * plan as it was; nothing is decided by it.
 * Return: 0; -EINVAL with the reason (kind data) where there is none, or where it is negative.
 */
int plan_expected_from_json(const json_t *json, struct plan *plan, struct err *err);
