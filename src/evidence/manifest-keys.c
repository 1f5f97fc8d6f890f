/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
#include "evidence/manifest-internal.h"

/* The keys of a manifest, and the reference page made of them. */

#define OFFSET(field) offsetof(struct STRUCT, field)

/* What is counted: keys at the top of a manifest and under `short`. */
#define ROUNDS                                                                                                         \
        .name = "rounds", .type = KEY_QUANTITY, .offset = OFFSET(rounds), .unit = UNIT_COUNT, .min = 6, .max = 100000, \
        .help = "How often each cell runs; a multiple of `campaigns`."
#define WARMUP_ROUNDS                                                                                                  \
        .name = "warmup-rounds", .type = KEY_QUANTITY, .offset = OFFSET(warmup_rounds), .unit = UNIT_COUNT, .min = 0,  \
        .max = 1000, .help = "Rounds before the first that counts."
#define CAMPAIGNS                                                                                                      \
        .name = "campaigns", .type = KEY_QUANTITY, .offset = OFFSET(campaigns), .unit = UNIT_COUNT, .min = 1,          \
        .max = 10000, .help = "Into how many blocks of at least 6 rounds the campaign is split, each judged alone."
#define SEED                                                                                                           \
        .name = "seed", .type = KEY_QUANTITY, .offset = OFFSET(seed), .unit = UNIT_COUNT,                              \
        .help = "What the order of the trials and the bootstrap are drawn from."

const char *const rule_bound_names[N_BOUNDS + 1] = {
        [BOUND_AT_MOST] = "at_most",
        [BOUND_AT_LEAST] = "at_least",
        [BOUND_WITHIN] = "within",
        [BOUND_RATIO_AT_MOST] = "ratio_at_most",
        [BOUND_RATIO_AT_LEAST] = "ratio_at_least",
        [BOUND_RATIO_WITHIN] = "ratio_within",
        [BOUND_DIFFERENCE_AT_MOST] = "difference_at_most",
        [BOUND_DIFFERENCE_AT_LEAST] = "difference_at_least",
        [BOUND_DIFFERENCE_WITHIN] = "difference_within",
};

#define STRUCT rule_keys
#define BOUND(key, index, what, text)                                                                                  \
        {                                                                                                              \
                .name = key, .type = KEY_NODE, .offset = OFFSET(bounds) + (index) * sizeof(struct node *),             \
                .expected = what, .help = text                                                                         \
        }

static const char cell_expected[] = "a cell [arm, point], or {growth: [[arm, point], [arm, point]]}";

static const struct key rule_keys[] = {
        {.name = "of",
         .type = KEY_NODE,
         .offset = OFFSET(of),
         .is_required = true,
         .expected = cell_expected,
         .help = "What is judged; a growth is the value of the first cell over that of the second, round by round."},
        {.name = "versus",
         .type = KEY_NODE,
         .offset = OFFSET(versus),
         .expected = cell_expected,
         .help = "What it is compared with, round by round; of a ratio or difference."},
        {.name = "metric",
         .type = KEY_STRING,
         .offset = OFFSET(metric),
         .is_required = true,
         .help = "A metric of the workload of these cells."},
        BOUND("at_most", BOUND_AT_MOST, "a value in the metric's unit", "The value is at most this."),
        BOUND("at_least", BOUND_AT_LEAST, "a value in the metric's unit", "The value is at least this."),
        BOUND("within", BOUND_WITHIN, "a list of two values", "The value lies between these."),
        BOUND("ratio_at_most", BOUND_RATIO_AT_MOST, "a number", "`of` over `versus` is at most this."),
        BOUND("ratio_at_least", BOUND_RATIO_AT_LEAST, "a number", "`of` over `versus` is at least this."),
        BOUND("ratio_within", BOUND_RATIO_WITHIN, "a list of two numbers", "`of` over `versus` lies between these."),
        BOUND("difference_at_most", BOUND_DIFFERENCE_AT_MOST, "a value in the metric's unit",
              "`of` less `versus` is at most this."),
        BOUND("difference_at_least", BOUND_DIFFERENCE_AT_LEAST, "a value in the metric's unit",
              "`of` less `versus` is at least this."),
        BOUND("difference_within", BOUND_DIFFERENCE_WITHIN, "a list of two values",
              "`of` less `versus` lies between these."),
        {.name = "advisory",
         .type = KEY_BOOL,
         .offset = OFFSET(is_advisory),
         .fallback = "false",
         .help = "The rule is shown and decides nothing."},
        {.name = "campaigns-that-fail-at-most",
         .type = KEY_NODE,
         .offset = OFFSET(campaigns_that_fail_at_most),
         .expected = "a number from 0 to 1 such as 0.15",
         .help = "The rule is judged in each campaign alone, and the share of those in which it fails is bounded."},
        {0},
};
#undef STRUCT

const struct key_table manifest_rule_table = {
        .name = "rule",
        .help = "A bound on a metric of one cell, or of one cell against another. It has exactly one of the keys that "
                "bound.",
        .size = sizeof(struct rule_keys),
        .keys = rule_keys,
};

#define STRUCT hypothesis_keys
static const struct key hypothesis_keys[] = {
        {.name = "claim",
         .type = KEY_STRING,
         .offset = OFFSET(claim),
         .is_required = true,
         .help = "One sentence that can be wrong."},
        {.name = "rules",
         .type = KEY_LIST,
         .offset = OFFSET(rules),
         .is_required = true,
         .table = &manifest_rule_table,
         .help = "The claim fails if any of them fails, and holds if all hold."},
        {0},
};
#undef STRUCT

const struct key_table manifest_hypothesis_table = {
        .name = "hypothesis",
        .help = "A claim, and the rules that decide it.",
        .size = sizeof(struct hypothesis_keys),
        .keys = hypothesis_keys,
};

#define STRUCT override_keys
#define OVERRIDES                                                                                                      \
        {.name = "boundary",                                                                                           \
         .type = KEY_MAP,                                                                                              \
         .offset = OFFSET(boundary),                                                                                   \
         .expected = "a mapping with the keys of its kind",                                                            \
         .help = "What isolates."},                                                                                    \
                {.name = "workload",                                                                                   \
                 .type = KEY_MAP,                                                                                      \
                 .offset = OFFSET(workload),                                                                           \
                 .expected = "a mapping with the keys of its kind",                                                    \
                 .help = "What runs and is measured."},                                                                \
        {                                                                                                              \
                .name = "background", .type = KEY_MAP, .offset = OFFSET(background),                                   \
                .expected = "a mapping of names to workloads", .help = "What runs beside it."                          \
        }

static const struct key base_keys[] = {
        {.name = "include",
         .type = KEY_FILE,
         .offset = OFFSET(include),
         .help = "A manifest whose `base` is taken first; the keys beside `include` are laid over it."},
        OVERRIDES,
        {0},
};

const struct key_table manifest_base_table = {
        .name = "base",
        .help = "The configuration that all cells start from.",
        .size = sizeof(struct override_keys),
        .keys = base_keys,
};

static const char *const control_choices[] = {
        [CONTROL_NONE] = "none", [CONTROL_HARM] = "harm", [CONTROL_SAME_SAME] = "same-same", NULL};

static const struct key arm_keys[] = {
        {.name = "control",
         .type = KEY_CHOICE,
         .offset = OFFSET(control),
         .choices = control_choices,
         .fallback = "none",
         .help = "A `harm` control has to show the harm that isolation prevents; a `same-same` control is compared "
                 "with "
                 "a cell of the same configuration, and its bounds are the noise floor."},
        OVERRIDES,
        {0},
};

const struct key_table manifest_arm_table = {
        .name = "arm",
        .help = "What differs in one arm of the experiment.",
        .size = sizeof(struct override_keys),
        .keys = arm_keys,
};

static const struct key point_keys[] = {OVERRIDES, {0}};

const struct key_table manifest_point_table = {
        .name = "point",
        .help = "What differs at one point of the experiment, such as a level of load.",
        .size = sizeof(struct override_keys),
        .keys = point_keys,
};

static const struct key short_keys[] = {
        {.name = "points",
         .type = KEY_NAMES,
         .offset = OFFSET(points),
         .help = "The points that are kept; rules of others are not judged. Without it all are."},
        {ROUNDS},
        {WARMUP_ROUNDS},
        {CAMPAIGNS},
        {SEED},
        OVERRIDES,
        {0},
};
#undef STRUCT

const struct key_table manifest_short_table = {
        .name = "short",
        .help = "What `--short` merges into every cell, after arm and point.",
        .size = sizeof(struct override_keys),
        .keys = short_keys,
};

#define STRUCT manifest_keys
static const char *const versions[] = {"1", NULL};

static const struct key keys[] = {
        {.name = "assay",
         .type = KEY_CHOICE,
         .offset = OFFSET(version),
         .is_required = true,
         .choices = versions,
         .help = "Version of this format."},
        {.name = "id", .type = KEY_NAME, .offset = OFFSET(id), .is_required = true, .help = "Such as `exp-001`."},
        {.name = "title", .type = KEY_STRING, .offset = OFFSET(title), .is_required = true, .help = "One line."},
        {.name = "hypotheses",
         .type = KEY_TABLES,
         .offset = OFFSET(hypotheses),
         .is_required = true,
         .table = &manifest_hypothesis_table,
         .help = "What is claimed."},
        {.name = "base",
         .type = KEY_MAP,
         .offset = OFFSET(base),
         .is_required = true,
         .table = &manifest_base_table,
         .help = "What all cells start from."},
        {.name = "arms",
         .type = KEY_TABLES,
         .offset = OFFSET(arms),
         .is_required = true,
         .table = &manifest_arm_table,
         .help = "What is compared."},
        {.name = "points",
         .type = KEY_TABLES,
         .offset = OFFSET(points),
         .is_required = true,
         .table = &manifest_point_table,
         .help = "Where it is compared."},
        {.name = "cells",
         .type = KEY_MAP,
         .offset = OFFSET(cells),
         .expected = "a mapping of each arm to `all` or a list of points",
         .help = "Which cells there are; without it each arm has all points."},
        {.name = "control-rules",
         .type = KEY_MAP,
         .offset = OFFSET(control_rules),
         .expected = "a mapping of each control to a rule or a list of rules",
         .help = "What a control has to show before a claim counts."},
        {ROUNDS, .fallback = "8"},
        {WARMUP_ROUNDS, .fallback = "0"},
        {CAMPAIGNS, .fallback = "1"},
        {SEED, .fallback = "1"},
        {.name = "short",
         .type = KEY_MAP,
         .offset = OFFSET(shortened),
         .table = &manifest_short_table,
         .help = "A shorter form."},
        {.name = "caveats",
         .type = KEY_STRINGS,
         .offset = OFFSET(caveats),
         .help = "What a reader has to know besides; shown with the verdict."},
        {0},
};
#undef STRUCT

const struct key_table manifest_table = {
        .name = "manifest",
        .help = "The top of the file.",
        .size = sizeof(struct manifest_keys),
        .keys = keys,
};

/* ---- the reference page ---- */

static void document_metrics(const struct kind *kind, struct text *out)
{
        static const char *const units[] = {
                [METRIC_NS] = "a duration",
                [METRIC_PS] = "a duration down to picoseconds",
                [METRIC_PPB] = "a number from 0 to 1",
                [METRIC_COUNT] = "a whole number",
                [METRIC_BPS] = "a rate",
        };
        static const char *const sources[] = {
                [METRIC_QUANTILE] = "a quantile of each round",
                [METRIC_LOSS] = "pooled over the cell, judged by its exact one-sided 95% bound",
                [METRIC_COUNTER] = "pooled over the cell, compared exactly",
                [METRIC_NUMBER] = "one number a round",
        };

        if (!kind->metrics)
                return;
        text_addf(out, "Metrics of `%s`:\n\n| metric | unit | value |\n|---|---|---|\n", kind->name);
        for (const struct metric *metric = kind->metrics; metric->name; metric++)
                text_addf(out, "| `%s` | %s | %s |\n", metric->name, units[metric->unit], sources[metric->source]);
        text_add(out, "\n");
}

static void document_kinds(const char *heading, const struct kind *kinds, size_t n, struct text *out)
{
        text_addf(out, "## %s\n\n", heading);
        for (size_t i = 0; i < n; i++) {
                key_table_document(kinds[i].table, out);
                document_metrics(&kinds[i], out);
        }
}

int manifest_document(const struct kinds *kinds, struct text *out)
{
        text_add(out, "## Manifest\n\n");
        key_table_document(&manifest_table, out);
        document_kinds("Boundaries", kinds->boundaries, kinds->n_boundaries, out);
        document_kinds("Workloads", kinds->workloads, kinds->n_workloads, out);
        return out->failed ? -ENOMEM : 0;
}
