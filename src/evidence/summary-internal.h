/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "evidence/series.h"
#include "evidence/trial.h"

/* A value of a round as JSON: an integer, or "lost" for BOUNDS_INFINITE; a new reference. */
json_t *summary_value_to_json(int64_t value);

/* The reverse. Return: 0; 1 if @json is neither. */
int summary_value_from_json(const json_t *json, int64_t *ret);

struct summary_quantile {
        uint32_t ppm;
        const char *key;
};

#define SUMMARY_QUANTILES 4
extern const struct summary_quantile summary_quantiles[SUMMARY_QUANTILES];

/* What a summary has of one valid trial; a new reference, NULL if memory ran out. */
json_t *summary_trial_to_json(const struct trial *trial, const struct series_set *set);

/* Adds to @cell, which has `trials` in order, what follows from them: pooled counts, loss, bounds over rounds.
 * Return: 0 or -ENOMEM. */
int summary_cell_finish(json_t *cell);
