/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sample.h"
#include "evidence/trial.h"

/* From the sample columns of a trial to its series of durations. What is warm-up, missed, lost or without stamp is told
 * apart here and nowhere else, for a trial that has just ended and for one read years later. */

/* Where kernel stamps are missing for more than this share of the answered packets, what is made from them is not
 * published: it is not known whether the missing ones were the slow ones. */
#define SERIES_UNSTAMPED_MAX_PPM 1000

/* One series. For a probe (docs/formats/samples.md):
 *   rtt       krtt_ns - residence_ns: kernel's stamps, less the time in the reflector
 *   rtt_user  urtt_ns: user's stamps, residence included
 *   response  lateness_ns + urtt_ns: received less intended
 *   lateness  lateness_ns: sent less intended; never lost
 * For any other workload each column X_ns is the series X, and a row without value is lost. */
struct series {
        char name[32];
        uint64_t *values; /* ascending */
        size_t n;
        uint64_t lost;      /* ranks above all values */
        uint64_t unstamped; /* answered, but a stamp is missing: neither lost nor a value */
        size_t allocated;
};

struct series_set {
        size_t n;
        struct series series[SAMPLE_COLUMNS_MAX];
        int64_t sent, received, lost; /* slots after the warm-up */
        int64_t missed;               /* slots after the warm-up that nothing was sent in */
        int64_t negative;             /* durations below 0, which cannot be */
        uint64_t *scratch;
        size_t scratch_allocated;
};

/* series_read - the series of a trial
 * @trial_dirfd: its folder; without samples.csv.zst in it there are no series, and all its slots were missed
 * @trial:       its trial.json, which says how many slots there are and which are warm-up
 * @set:         {0}, or one that was read before, whose memory is used again; series_set_done() releases it
 *
 * Return: 0, or a negative errno with the reason: a file that is damaged, slots that do not ascend or lie past the
 * schedule.
 */
int series_read(int trial_dirfd, const struct trial *trial, struct series_set *set, struct err *err);

void series_set_done(struct series_set *set);

#define _cleanup_series_set_ _cleanup_(series_set_done)

/* series_quantile - nearest-rank quantile, where it may be published
 * @ret: the value, or QUANTILE_LOST
 *
 * Return: 0; 1 if it may not be: too few values (quantile_needed()), or too many without stamp.
 */
int series_quantile(const struct series *series, uint32_t ppm, uint64_t *ret);
