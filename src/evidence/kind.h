/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "config/key.h"
#include "config/node.h"

/* What evidence has to know of boundaries and workloads without knowing them: their keys, how to check a cell, which
 * metrics come from a trial. The campaign fills in these tables (campaign/kinds.c); evidence only reads them. */

enum metric_unit {
        METRIC_NS,  /* a duration; may be infinite ("lost") */
        METRIC_PS,  /* a duration of picoseconds: what a quantile is for one of many */
        METRIC_PPB, /* a proportion in parts per thousand million */
        METRIC_COUNT,
        METRIC_BPS, /* bits of layer 2 a second */
};

enum metric_source {
        METRIC_QUANTILE, /* nearest rank @ppm of the series @series of a round's trial */
        METRIC_LOSS,     /* lost over sent, pooled over the cell's trials, exact one-sided 95% bound */
        METRIC_COUNTER,  /* the integer @series of trial.json's "counts", pooled over the cell's trials */
        METRIC_NUMBER,   /* the integer @series of trial.json's "counts" as the value of its round ("throughput") */
};

struct metric {
        const char *name; /* "rtt.p99" */
        enum metric_unit unit;
        enum metric_source source;
        const char *series; /* "rtt", "rtt_user", "response"; or the name of a counter */
        uint32_t ppm;       /* of a quantile */
        const char *per;    /* of a quantile in METRIC_PS: the integer of trial.json's "counts" that it is divided by */
};

/* Pooled metrics have one value a cell, so rules can only bound them; the others have one a round and can be compared.
 */
static inline bool metric_is_pooled(const struct metric *metric)
{
        return metric->source == METRIC_LOSS || metric->source == METRIC_COUNTER;
}

struct kind {
        const char *name;              /* "stamp-probe" */
        const struct key_table *table; /* keys beside `kind` (has_kind is set) */
        const struct metric *metrics;  /* ended by one without name; NULL for boundaries and pure load */
};

/* What one trial of a configuration comes to, as far as that is known before it runs. */
struct trial_estimate {
        int64_t duration_ns; /* set-up included */
        int64_t disk_bytes;
        int64_t values; /* the most that a series can have, without the warm-up */
};

struct kinds {
        size_t n_boundaries, n_workloads;
        const struct kind *boundaries;
        const struct kind *workloads;

        /* The whole configuration of one cell, keys already checked by the tables: what no single table can see (a zone
         * that nobody defined, guarantees above the uplink, a level above the link). Errors carry a position. */
        int (*check_cell)(const struct node *config, struct err *err);

        /* What a trial of a configuration that check_cell() accepts comes to. */
        int (*estimate)(const struct node *config, struct trial_estimate *ret, struct err *err);
};
