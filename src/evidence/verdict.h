/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "evidence/manifest.h"

/* verdict.json (docs/formats/verdict.md): what the summary says about what the manifest claims. */

enum outcome { OUTCOME_HOLDS, OUTCOME_FAILS, OUTCOME_INCONCLUSIVE };

/* outcome_name - "holds", "fails", "inconclusive" */
const char *outcome_name(enum outcome outcome);

/* verdict_make - judge all rules, controls and hypotheses
 * @summary: as summary_make() gives it
 * @ret:     a new reference
 *
 * A claim that fails, or of which nothing is known, is a result. Return: 0 or -ENOMEM.
 */
int verdict_make(const struct manifest *manifest, const json_t *summary, json_t **ret, struct err *err);

/* verdict_exit_code - the exit code of a campaign with this verdict: 1 if it is invalid, else 3 if a claim fails, else
 * 4 if one is inconclusive, else 0 */
int verdict_exit_code(const json_t *verdict);
