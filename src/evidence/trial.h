/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

/* trial.json (docs/formats/trial.md): what one trial did, and whether it may be used. */

#define TRIAL_REASON_SIZE 512

/* One trial. The strings and objects are borrowed from @json, which the struct holds a reference of. */
struct trial {
        json_t *json;
        const char *name, *cell, *host, *failure, *reason;
        int64_t index, round, extra, campaign;
        int64_t warmup_slots, slots;
        int64_t started_realtime_ns, ended_realtime_ns;
        bool is_valid; /* as it is written; trial_judge() says what the rules say */
        json_t *counts, *background, *proof;
        int64_t realtime_step_ns;
};

/* trial_parse - read the content of a trial.json
 * @json:   a reference of its own is taken
 * @where:  what to call it in an error
 * @ret:    trial_done() releases it
 *
 * Return: 0, or a negative errno with the reason (kind data): a key is missing, of another type, or negative.
 */
int trial_parse(json_t *json, const char *where, struct trial *ret, struct err *err);

/* trial_load - trial_parse() of trial.json in a trial's folder */
int trial_load(int trial_dirfd, const char *where, struct trial *ret, struct err *err);

void trial_done(struct trial *trial);

#define _cleanup_trial_ _cleanup_(trial_done)

/* trial_count - an integer of a trial's `counts`; 0 and false if there is none of that name */
bool trial_count(const struct trial *trial, const char *name, int64_t *ret);

/* trial_missed_max - how many of @slots may be missed: max(0.1%, 10) */
int64_t trial_missed_max(int64_t slots);

/* trial_judge - whether the rules of validity hold: the one function that decides it, when a trial has run and when an
 * archive is read
 * @trial:   all but is_valid and reason
 * @missed:  slots missed after the warm-up, as the samples say; 0 without a schedule
 * @reason:  all rules that are broken, separated by "; "; empty where none is
 */
bool trial_judge(const struct trial *trial, int64_t missed, char reason[static TRIAL_REASON_SIZE]);
