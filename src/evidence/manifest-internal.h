/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/key.h"
#include "evidence/manifest.h"

/* What the files manifest*.c share. The keys of a manifest are described by the tables of manifest-keys.c, read into
 * the structs here, and then checked against one another. */

#define MANIFEST_CELLS_MAX  1024
#define MANIFEST_VALUES_MAX 200000 /* of the configurations of all cells */
#define MANIFEST_TRIALS_MAX 100000
#define MANIFEST_INPUTS_MAX 64

struct hypothesis_keys {
        char *claim;
        struct key_tables rules; /* struct rule_keys */
};

enum rule_bound {
        BOUND_AT_MOST,
        BOUND_AT_LEAST,
        BOUND_WITHIN,
        BOUND_RATIO_AT_MOST,
        BOUND_RATIO_AT_LEAST,
        BOUND_RATIO_WITHIN,
        BOUND_DIFFERENCE_AT_MOST,
        BOUND_DIFFERENCE_AT_LEAST,
        BOUND_DIFFERENCE_WITHIN,
        N_BOUNDS,
};

extern const char *const rule_bound_names[N_BOUNDS + 1];

struct rule_keys {
        const struct node *of, *versus;
        char *metric;
        const struct node *bounds[N_BOUNDS];
        bool is_advisory;
        const struct node *campaigns_that_fail_at_most;
};

/* Of `base`, an arm, a point, or `short`: what they lay over the configuration, and what else each of them has. */
struct override_keys {
        const struct node *boundary, *workload, *background;
        char *include;                                  /* of `base` */
        int control;                                    /* of an arm: enum control_kind */
        struct key_names points;                        /* of `short` */
        int64_t rounds, warmup_rounds, campaigns, seed; /* of `short`; merged before they are read */
};

struct manifest_keys {
        int version;
        char *id, *title;
        struct key_tables hypotheses, arms, points;
        const struct node *base, *cells, *control_rules, *shortened;
        int64_t rounds, warmup_rounds, campaigns, seed;
        struct key_names caveats;
};

extern const struct key_table manifest_table, manifest_base_table, manifest_arm_table, manifest_point_table,
        manifest_short_table, manifest_hypothesis_table, manifest_rule_table;

/* How many values a series of one trial of a cell can have at most. */
struct cell_size {
        int64_t values;
        int64_t short_values; /* in the short form; INT64_MAX where that leaves the cell out, or there is none */
};

/* A manifest while it is read. */
struct manifest_reader {
        struct manifest *m;
        const struct kinds *kinds;
        const struct manifest_options *options; /* not NULL */
        const char *name;                       /* of the input, in positions */
        int inputs_dirfd;
        struct node *root; /* with what `short` and the command line say of rounds, seed and the like */
        struct manifest_keys keys;
        struct override_keys shortened; /* all zero where there is no `short` */
        struct cell_size *sizes;        /* for each cell */
        bool *is_kept;                  /* for each cell: whether `short`, if it is merged, keeps it */
        size_t n_values;                /* of the configurations of all cells so far */
        struct err *err;
};

/* manifest.c: lays the command line's overrides over the configuration of a cell */
int manifest_override_config(struct manifest_reader *r, struct node *config);

/* manifest-cell.c: reads `base`, arms, points and `cells`, and checks the configuration of each cell */
int manifest_read_cells(struct manifest_reader *r);

/* manifest-cell.c: keeps the cells of @r->is_kept alone; the rules left all name such */
int manifest_keep_cells(struct manifest_reader *r);

/* manifest-rule.c: reads hypotheses and control-rules; those of cells that are not kept go to m->unjudged */
int manifest_read_rules(struct manifest_reader *r);

void manifest_rules_free(struct manifest_rule *rules, size_t n);
