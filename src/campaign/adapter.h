/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/sample.h"
#include "base/text.h"
#include "config/node.h"

/* The two interfaces that carry every experiment. An experiment is one adapter (a file here) and one manifest; this is
 * the only place where features meet. */

/* What a boundary shows to be in force. */
struct proof {
        bool holds;
        char reason[512]; /* why not; empty where it holds */
        json_t *evidence; /* what was observed; goes into trial.json; a reference of the proof's own, or NULL */
};

/* What isolates: a zone network, a sandbox, a container, a VM, or nothing. Adapters embed this as their first member.
 */
struct boundary {
        const struct boundary_ops *ops;
};

struct boundary_ops {
        /* bring it up for a cell's whole configuration; on failure nothing stays behind. The files that the
         * configuration names lie below @inputs_dirfd, which is borrowed for the call. */
        int (*up)(const struct node *config, int inputs_dirfd, struct boundary **ret, struct err *err);

        /* evidence that it is in force: traffic of our own, counters before and after, and what workloads accounted for
         * so far. A boundary that is not in force is a proof that does not hold, never an error. */
        int (*prove)(struct boundary *b, struct proof *ret, struct err *err);

        /* counters as OpenMetrics text, ending in "# EOF" */
        int (*observe)(struct boundary *b, struct text *out, struct err *err);

        /* how it is really made on this host: an object of strings, and in "weaker" a list of sentences, each a
         * mechanism weaker than the manifest asks for; a new reference */
        json_t *(*describe)(const struct boundary *b);

        /* take it down; accepts NULL and a half-built one; releases @b */
        void (*down)(struct boundary *b);
};

/* What runs: a probe, a load, a command. Adapters embed this as their first member. */
struct workload {
        const struct workload_ops *ops;
};

/* What a workload did. */
struct workload_result {
        json_t *counts; /* object of integers, for trial.json; a reference of the result's own */
        json_t *notes;  /* object: how it ran (pinning, scheduling, clocks); may be NULL */
};

/* How large a trial of a workload is, as its keys say. */
struct workload_size {
        int64_t duration_ns; /* warm-up included */
        int64_t rows;        /* that are stored, warm-up included */
        int64_t values;      /* of them those after the warm-up */
};

struct workload_ops {
        const struct column *columns; /* NULL for pure load */
        size_t n_columns;

        /* sockets, pinning, children that wait for the start */
        int (*prepare)(struct boundary *b, const char *name, const struct node *config, struct workload **ret,
                       struct err *err);

        /* begin at @start_ns of CLOCK_MONOTONIC, which lies ahead */
        int (*start)(struct workload *w, int64_t start_ns, struct err *err);

        /* descriptor that becomes readable when the workload has ended by itself, or when one of its ends died; -1: it
         * goes on until stop */
        int (*event_fd)(const struct workload *w);

        /* end it and wait until it has ended; also after it ended by itself */
        int (*stop)(struct workload *w, struct err *err);

        /* hand out what it did; rows only where there are columns. An end that died makes this fail with the reason. */
        int (*collect)(struct workload *w, struct sample_writer *out, struct workload_result *ret, struct err *err);

        /* release; ends what still runs */
        void (*free)(struct workload *w);
};
