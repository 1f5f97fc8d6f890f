/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"

/* What a campaign measured and what follows from it, for a person at a terminal. Summary and verdict may come from an
 * archive of unknown origin: nothing in them is relied on, and nothing in them reaches the terminal uninspected. */

/* print_campaign_text - add cells, loads, controls and hypotheses to @out
 * @archive: path of the archive, to be shown
 * @series:  which series of durations; NULL for each cell's first one: rtt, where it has that
 */
void print_campaign_text(struct text *out, const char *archive, const char *series, const json_t *summary,
                         const json_t *verdict);

/* print_campaign - that on stdout. Return: 0 or -ENOMEM. */
int print_campaign(const char *archive, const json_t *summary, const json_t *verdict, struct err *err);

/* print_campaign_json - the same as one JSON object with the members archive, summary and verdict */
int print_campaign_json(const char *archive, const json_t *summary, const json_t *verdict, struct err *err);
