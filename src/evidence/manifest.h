/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "config/node.h"
#include "evidence/kind.h"

/* What is claimed and how it will be judged: the manifest, read and checked. See docs/formats/manifest.md. */

enum control_kind { CONTROL_NONE, CONTROL_HARM, CONTROL_SAME_SAME };

struct manifest_arm {
        char *name;
        enum control_kind control;
        struct node *overrides; /* a mapping, without the key `control` */
};

struct manifest_point {
        char *name;
        struct node *overrides;
};

struct manifest_cell {
        size_t arm, point;   /* indices */
        char *name;          /* "per-queue/600mbit" */
        struct node *config; /* base < arm < point < short < command line, without anything but what kinds read */
};

/* What one side of a rule refers to: the value of a cell, or the growth (ratio within the round) of one over another.
 */
struct manifest_operand {
        bool is_growth;
        size_t cell; /* of a growth: the numerator */
        size_t base; /* of a growth: the denominator */
};

enum rule_form {
        RULE_VALUE,      /* `of` itself */
        RULE_RATIO,      /* `of` over `versus`, in ppm */
        RULE_DIFFERENCE, /* `of` less `versus`, in the metric's unit */
};

struct manifest_rule {
        struct manifest_operand of, versus; /* versus only where the form is not RULE_VALUE; both or neither a growth */
        const struct metric *metric;        /* of the workload of all its cells */
        enum rule_form form;
        bool has_low, has_high;
        int64_t low, high; /* in the base unit of manifest_rule_unit(): ppm, ns, ppb, bits a second or a count */
        bool is_advisory;
        int64_t campaigns_that_fail_at_most_ppb; /* -1: the rule is judged once over all rounds */
        char *text; /* for people: "rtt.p99 of per-queue/600mbit over per-queue/idle at most 1.25" */
        struct position position;
};

/* manifest_rule_unit - what the bounds of @rule are: ratios, and differences of growths, in ppm; else the metric's unit
 */
enum unit manifest_rule_unit(const struct manifest_rule *rule);

struct manifest_hypothesis {
        char *name;
        char *claim;
        size_t n_rules;
        struct manifest_rule *rules;
};

struct manifest_control {
        size_t arm;
        size_t n_rules;
        struct manifest_rule *rules;
};

/* A file that the manifest includes, or that a key of a cell names (KEY_FILE), as read. */
struct manifest_input {
        char *path; /* as written: below the manifest's folder, in which all of them are looked up */
        char *data;
        size_t len;
};

struct manifest {
        char *path;
        char *data; /* the exact bytes */
        size_t len;
        char sha256[65];

        char *id, *title;
        struct node *base;
        size_t n_arms, n_points, n_cells, n_hypotheses, n_controls, n_inputs, n_caveats;
        struct manifest_arm *arms;
        struct manifest_point *points;
        struct manifest_cell *cells; /* in the order arms x points */
        struct manifest_hypothesis *hypotheses;
        struct manifest_control *controls;
        struct manifest_input *inputs;
        char **caveats;
        size_t n_unjudged;
        char **unjudged; /* for people: rules, and hypotheses and controls without rules, whose cells `short` leaves out
                          */
        uint32_t rounds, warmup_rounds, campaigns;
        uint64_t seed; /* at most INT64_MAX */
};

/* What the command line adds to a manifest; it is recorded in the plan. */
struct manifest_options {
        bool is_short; /* merge the manifest's `short` */
        size_t n_overrides;
        const char *const *overrides; /* each "path=value", as written: "workload.duration=5s", "rounds=8", "seed=1" */
        const char *inputs; /* folder in which includes are looked for, relative to the manifest's; NULL: that one. In
                             * an archive the manifest is data/manifest.yaml and its includes are below data/inputs */
};

/* manifest_load - read a manifest and all it includes, merge, and check
 * @kinds:    what boundaries and workloads there are; each cell's configuration is checked by theirs
 * @options:  NULL for none
 * @ret:      manifest_free() releases it
 *
 * Rules of cells that `short` leaves out are dropped. Errors carry file, line and column. Checked besides keys and
 * units: rules name existing cells and metrics that the cell's workload has; every hypothesis has a rule that decides;
 * there is a control; each control has rules that name it, and a same-same control has the configuration of what it is
 * compared with; a trial has values enough for the percentiles that rules judge; rounds divisible by campaigns, 6 at
 * least in each; included files stay below the manifest's folder. Return: 0, or a negative errno with the reason (kind
 * usage) in @err.
 */
int manifest_load(int dirfd, const char *path, const struct kinds *kinds, const struct manifest_options *options,
                  struct manifest **ret, struct err *err);

/* manifest_parse - as manifest_load(), of bytes
 * @name:          what to call the input in positions
 * @inputs_dirfd:  folder of the files that it includes; an archive keeps them in data/inputs
 */
int manifest_parse(struct span bytes, const char *name, int inputs_dirfd, const struct kinds *kinds,
                   const struct manifest_options *options, struct manifest **ret, struct err *err);

/* manifest_find_input - the included file of this path; NULL if there is none */
const struct manifest_input *manifest_find_input(const struct manifest *manifest, const char *path);

/* manifest_document - the reference of all keys of a manifest (docs/formats/manifest.md), as Markdown: the manifest's
 * own, and those and the metrics of each kind. Return: 0 or -ENOMEM. */
int manifest_document(const struct kinds *kinds, struct text *out);

void manifest_free(struct manifest *manifest);

DEFINE_CLEANUP(struct manifest *, manifest_free)
#define _cleanup_manifest_ _cleanup_(manifest_free_cleanup)
