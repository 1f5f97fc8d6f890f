/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "archive/archive.h"
#include "base/err.h"
#include "evidence/plan.h"
#include "evidence/validity.h"

/* One trial: up, prove, background starts, warm-up, measure, stop, collect, prove again, down; and its folder in the
 * archive. */

struct trial_context {
        struct archive *archive;
        const struct plan *plan;
        const volatile int *stop; /* non-zero: give up, leave nothing */

        /* called about ten times a second while it measures, with the share that is done in parts per million */
        void (*progress)(void *userdata, uint32_t done_ppm);
        void *userdata;
};

struct trial_outcome {
        bool is_valid;
        char reason[VALIDITY_REASON_SIZE]; /* why not */
};

/* trial_run - run @trial and commit it to the archive
 *
 * A trial that broke a rule of validity is committed as invalid, with the reason; that is an outcome, not an error.
 * Return: 0; -EINTR where *@stop asked to end (nothing is committed); another negative errno with the reason in @err
 * where neither this nor another trial can be run (no disk, no right).
 */
int trial_run(const struct trial_context *context, const struct plan_trial *trial, struct trial_outcome *ret,
              struct err *err);
