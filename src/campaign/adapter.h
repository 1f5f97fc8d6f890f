/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "base/sample.h"
#include "base/text.h"
#include "config/node.h"

/* The two interfaces that carry every experiment. An experiment is one adapter (a file here) and one manifest; this is
 * the only place where features meet. */

struct boundary;
struct workload;

/* What a boundary shows to be in force. */
struct proof {
        bool holds;
        char reason[512]; /* why not; empty where it holds */
        json_t *evidence; /* what was observed; goes into trial.json; owned by the proof */
};

struct boundary_ops {
        const char *kind;

        /* bring it up for a cell's configuration; nothing stays behind on failure */
        int (*up)(struct boundary **ret, const struct node *config, struct err *err);

        /* evidence that it is in force: traffic of our own, counters before and after. A boundary that is not in force
         * is a proof that does not hold, not an error. */
        int (*prove)(struct boundary *b, struct proof *ret_proof, struct err *err);

        /* counters as OpenMetrics text, ending in "# EOF" */
        int (*observe)(struct boundary *b, struct text *out, struct err *err);

        /* idempotent; accepts a half-built one; releases @b */
        void (*down)(struct boundary *b);
};

/* What a workload did, for trial.json. */
struct workload_result {
        json_t *counts; /* object of integers: "sent", "received", "offered_bytes", ...; owned */
        bool is_valid;
        char reason[512]; /* why not */
};

struct workload_ops {
        const char *kind;
        const struct column *columns; /* NULL for pure load */
        size_t n_columns;

        int (*prepare)(struct workload **ret, struct boundary *b, const struct node *config, struct err *err);
        int (*start)(struct workload *w, int64_t start_ns, struct err *err); /* at this CLOCK_MONOTONIC time */
        int (*stop)(struct workload *w, struct err *err);
        int (*collect)(struct workload *w, struct sample_writer *out, struct workload_result *ret, struct err *err);
        void (*free)(struct workload *w);
};
