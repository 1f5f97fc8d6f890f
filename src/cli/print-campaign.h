/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"

/* What a campaign measured and what follows from it, for a person at a terminal. Summary and verdict may come from an
 * archive of unknown origin: nothing in them is relied on, and nothing in them reaches the terminal uninspected. */

/* print_campaign_text - add cells, loads, controls and hypotheses to @out
 * @archive: path of the archive, to be shown
 * @series:  which series of durations; NULL for each that a rule judges; where none does, rtt or the first
 */
void print_campaign_text(struct text *out, const char *archive, const char *series, const json_t *summary,
                         const json_t *verdict);
