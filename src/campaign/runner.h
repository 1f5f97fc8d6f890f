/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "campaign/trial.h"
#include "evidence/manifest.h"
#include "evidence/plan.h"

/* A whole campaign: plan, trials, summary, verdict, sealed archive. */

/* What somebody who watches is told. Every function may be NULL. */
struct campaign_watcher {
        void *userdata;

        /* once, before the first trial; @archive is the path of the folder, @done how many trials a resumed one has */
        void (*planned)(void *userdata, const struct plan *plan, const char *archive, size_t done);

        /* @left_ns is the expected time of this trial and all after it */
        void (*began)(void *userdata, const struct plan_trial *trial, size_t number, size_t total, int64_t left_ns);
        void (*progress)(void *userdata, uint32_t done_ppm);
        void (*ended)(void *userdata, const struct plan_trial *trial, const struct trial_outcome *outcome);
};

struct campaign_options {
        const char *manifest; /* path */
        struct manifest_options overrides;
        const char *output;       /* folder in which the archive's is made */
        bool skip_missing;        /* leave out cells that this host cannot run */
        const volatile int *stop; /* non-zero: end after cleaning up */
        const struct campaign_watcher *watcher;
};

struct campaign_outcome {
        char archive[4096]; /* path of the archive's folder, once there is one; otherwise empty */
        size_t trials_done, trials_planned;
        int exit_code; /* that of the verdict */
};

/* campaign_plan - read the manifest and make the plan, without running anything
 *
 * Return: 0; a negative errno with the missing capability in @err where a cell cannot run here and cells are not to be
 * skipped; another negative errno.
 */
int campaign_plan(const struct campaign_options *options, struct manifest **ret_manifest, struct plan **ret_plan,
                  struct err *err);

/* campaign_run - run it from the start
 *
 * Return: 0 with the outcome; -EINTR where it was asked to stop: the archive can be resumed; another negative errno
 * with the reason. @ret is set in every case, so that the archive's path can be told.
 */
int campaign_run(const struct campaign_options *options, struct campaign_outcome *ret, struct err *err);

/* campaign_resume - go on with an archive that was interrupted; of @options only stop and watcher are used */
int campaign_resume(const char *archive, const struct campaign_options *options, struct campaign_outcome *ret,
                    struct err *err);
