/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "archive/archive.h"
#include "base/err.h"
#include "base/json.h"
#include "evidence/kind.h"
#include "evidence/plan.h"

/* summary.json (docs/formats/summary.md): what was measured, from the samples of all trials. A pure function of the
 * archive's bytes: the campaign makes it when it ends, and whoever verifies makes it again. */

/* summary_make - summarise the trials that an archive's journal names
 * @plan:  that of the archive
 * @ret:   a new reference
 *
 * Return: 0, or a negative errno with the reason: a trial that is not as its format says, that the plan does not know,
 * or that is there twice. One trial after the other is read, so memory does not grow with the samples.
 */
int summary_make(struct archive *archive, const struct plan *plan, json_t **ret, struct err *err);

/* summary_cell - the entry of a cell, borrowed; NULL if there is none */
const json_t *summary_cell(const json_t *summary, const char *name);

/* summary_quantile_key - the key of a quantile in a series, such as "p99_ns"; NULL for one that no summary has. There
 * are p50, p95, p99 and p99.9. */
const char *summary_quantile_key(uint32_t ppm);

/* summary_round_value - the value of a metric that is not pooled in one trial
 * @trial: an entry of a cell's `trials`
 * @ret:   the value, or BOUNDS_INFINITE; of a METRIC_PS the quantile divided by its count, rounded half up
 *
 * Return: 0; 1 if the trial has none: too few samples, too many without stamp, or no such series or count.
 */
int summary_round_value(const json_t *trial, const struct metric *metric, int64_t *ret);
