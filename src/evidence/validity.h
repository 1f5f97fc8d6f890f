/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "evidence/series.h"
#include "evidence/trial.h"

/* Whether a trial may be used: the rules of docs/formats/trial.md, the same when it has just run and when an archive is
 * read. */

#define VALIDITY_REASON_SIZE 512

/* validity_missed_max - how many of @slots may be missed: max(0.1%, 10) */
int64_t validity_missed_max(int64_t slots);

/* validity_check - apply the rules to a trial and what its samples say
 * @reason: all rules that are broken, separated by "; "; empty where none is
 */
bool validity_check(const struct trial *trial, const struct series_set *set, char reason[static VALIDITY_REASON_SIZE]);

/* validity_judge - validity_check() of a trial that has just run
 * @trial_dirfd: its folder, with the finished samples in it
 * @record:      the content of its trial.json; `valid` and `reason` are set in it
 * @reason:      as that of validity_check()
 *
 * Return: 0, or a negative errno with the reason: @record or the samples are not as their formats say.
 */
int validity_judge(int trial_dirfd, json_t *record, bool *ret_is_valid, char reason[static VALIDITY_REASON_SIZE],
                   struct err *err);
