/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

/* trial.json (docs/formats/trial.md): what one trial did. Whether it may be used is evidence/validity.h. */

/* One trial. The strings and objects are borrowed from @json, which the struct holds a reference of. */
struct trial {
        json_t *json;
        const char *name, *cell, *host, *failure;
        int64_t index, round, extra, campaign;
        int64_t started_realtime_ns, ended_realtime_ns;
        int64_t slots, warmup_slots; /* of its counts */
        int64_t realtime_step_ns;
        json_t *boundary, *counts, *background, *proof;
};

/* trial_parse - read the content of a trial.json
 * @json:   a reference of its own is taken
 * @where:  what to call it in an error
 * @ret:    trial_done() releases it
 *
 * What the file says of its own validity is not read: validity_check() derives it.
 * Return: 0, or a negative errno with the reason (kind data): a key is missing, of another type, or negative.
 */
int trial_parse(json_t *json, const char *where, struct trial *ret, struct err *err);

/* trial_load - trial_parse() of trial.json in a trial's folder */
int trial_load(int trial_dirfd, const char *where, struct trial *ret, struct err *err);

void trial_done(struct trial *trial);

#define _cleanup_trial_ _cleanup_(trial_done)

/* trial_count - an integer of a trial's `counts`; 0 and false if there is none of that name */
bool trial_count(const struct trial *trial, const char *name, int64_t *ret);
