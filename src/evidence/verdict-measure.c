/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "evidence/series.h"
#include "evidence/summary-internal.h"
#include "evidence/summary.h"
#include "evidence/verdict-internal.h"
#include "stats/bootstrap.h"
#include "stats/bounds.h"
#include "stats/clusters.h"
#include "stats/effect.h"
#include "stats/proportion.h"
#include "stats/quantile.h"
#include "stats/sort.h"

int judge_init(struct judge *judge, const struct manifest *manifest, const json_t *summary)
{
        size_t stride = manifest->rounds + (size_t)1, i;

        *judge = (struct judge){
                .manifest = manifest,
                .cells = calloc(manifest->n_cells, sizeof(json_t *)),
                .trials = calloc(manifest->n_cells * stride, sizeof(json_t *)),
        };
        if (!judge->cells || !judge->trials)
                return -ENOMEM;
        for (size_t c = 0; c < manifest->n_cells; c++) {
                json_t *trial;

                judge->cells[c] = summary_cell(summary, manifest->cells[c].name);
                json_array_foreach(json_object_get(judge->cells[c], "trials"), i, trial)
                {
                        int64_t position = json_integer_value(json_object_get(trial, "position"));

                        if (position > 0 && position <= manifest->rounds)
                                judge->trials[c * stride + (size_t)position] = trial;
                }
        }
        return 0;
}

void judge_done(struct judge *judge)
{
        free(judge->cells);
        free(judge->trials);
}

struct block judge_whole(const struct judge *judge)
{
        return (struct block){1, judge->manifest->rounds};
}

void judgement_done(struct judgement *judgement)
{
        json_decref(judgement->clusters);
        json_decref(judgement->bootstrap);
        judgement->clusters = judgement->bootstrap = NULL;
}

void judgement_conclude(struct judgement *j, enum outcome outcome, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        j->outcome = outcome;
        vsnprintf(j->reason, sizeof(j->reason), format, args);
        va_end(args);
}

/* What is compared, round by round. */
struct rounds {
        size_t n;
        int64_t *of, *versus, *effect;
};

static int rounds_init(struct rounds *rounds, size_t n)
{
        *rounds = (struct rounds){
                .of = calloc(n, sizeof(int64_t)),
                .versus = calloc(n, sizeof(int64_t)),
                .effect = calloc(n, sizeof(int64_t)),
        };
        return rounds->of && rounds->versus && rounds->effect ? 0 : -ENOMEM;
}

static void rounds_done(struct rounds *rounds)
{
        free(rounds->of);
        free(rounds->versus);
        free(rounds->effect);
}

#define _cleanup_rounds_ _cleanup_(rounds_done)

static const json_t *trial_at(const struct judge *judge, size_t cell, size_t position)
{
        return judge->trials[cell * (judge->manifest->rounds + (size_t)1) + position];
}

/* Why a trial has no value for @metric. */
static void explain_no_value(const struct judge *judge, size_t cell, size_t round, const struct metric *metric,
                             struct judgement *j)
{
        const char *name = judge->manifest->cells[cell].name;
        const json_t *trial = trial_at(judge, cell, round), *series;
        int64_t have, unstamped;

        if (!judge->cells[cell]) {
                judgement_conclude(j, OUTCOME_INCONCLUSIVE, "no data: cell %s was left out", name);
                return;
        }
        series = json_object_get(json_object_get(trial, "series"), metric->series);
        if (!trial || metric->source != METRIC_QUANTILE || !series) {
                judgement_conclude(j, OUTCOME_INCONCLUSIVE, "no data: %s has no %s in round %zu", name, metric->name,
                                   round);
                return;
        }
        have = json_integer_value(json_object_get(series, "values")) +
               json_integer_value(json_object_get(series, "lost"));
        unstamped = json_integer_value(json_object_get(series, "unstamped"));
        if (have >= 0 && quantile_publishable((uint64_t)have, metric->ppm))
                judgement_conclude(j, OUTCOME_INCONCLUSIVE,
                                   "%" PRId64 " packets of %s in round %zu have no kernel stamp, beside %" PRId64
                                   " that have: at most 0.1%% may lack one",
                                   unstamped, name, round, have);
        else
                judgement_conclude(j, OUTCOME_INCONCLUSIVE,
                                   "too few samples: %s has %" PRId64 " in round %zu, %s needs %" PRIu64, name, have,
                                   round, metric->name, quantile_needed(metric->ppm));
}

/* Value of a cell in a round. Return: 0; 1 if there is none, and why in @j. */
static int cell_value(const struct judge *judge, size_t cell, size_t round, const struct metric *metric, int64_t *ret,
                      struct judgement *j)
{
        const json_t *trial = trial_at(judge, cell, round);

        if (trial && summary_round_value(trial, metric, ret) == 0)
                return 0;
        explain_no_value(judge, cell, round, metric, j);
        return 1;
}

/* The effect is undefined in this round. */
static void explain_undefined(const struct judge *judge, size_t cell, size_t round, int error, struct judgement *j)
{
        if (error == -ERANGE)
                judgement_conclude(j, OUTCOME_INCONCLUSIVE, "the number of round %zu does not fit into 64 bits", round);
        else
                judgement_conclude(j, OUTCOME_INCONCLUSIVE,
                                   "undefined: what it is compared with, %s, is lost or 0 in round %zu",
                                   judge->manifest->cells[cell].name, round);
}

static int operand_value(const struct judge *judge, const struct manifest_operand *operand, size_t round,
                         const struct metric *metric, int64_t *ret, struct judgement *j)
{
        int64_t value, base;
        int r;

        if (cell_value(judge, operand->cell, round, metric, &value, j) > 0)
                return 1;
        if (operand->is_growth) {
                if (cell_value(judge, operand->base, round, metric, &base, j) > 0)
                        return 1;
                r = effect_ratio(value, base, &value);
                if (r < 0) {
                        explain_undefined(judge, operand->base, round, r, j);
                        return 1;
                }
        }
        *ret = value;
        return 0;
}

/* Return: 0; 1 if a round has no value, and why in @j. */
static int collect_rounds(const struct judge *judge, const struct manifest_rule *rule, struct block block,
                          struct rounds *rounds, struct judgement *j)
{
        for (size_t round = block.first; round <= block.last; round++) {
                size_t n = rounds->n;
                int r = 0;

                if (operand_value(judge, &rule->of, round, rule->metric, &rounds->of[n], j) > 0)
                        return 1;
                if (rule->form != RULE_VALUE &&
                    operand_value(judge, &rule->versus, round, rule->metric, &rounds->versus[n], j) > 0)
                        return 1;
                if (rule->form == RULE_RATIO)
                        r = effect_ratio(rounds->of[n], rounds->versus[n], &rounds->effect[n]);
                else if (rule->form == RULE_DIFFERENCE)
                        r = effect_difference(rounds->of[n], rounds->versus[n], &rounds->effect[n]);
                else
                        rounds->effect[n] = rounds->of[n];
                if (r < 0) {
                        explain_undefined(judge, rule->versus.cell, round, r, j);
                        return 1;
                }
                rounds->n++;
        }
        return 0;
}

#define RULE_CELLS_MAX 4

static void add_cell(size_t cells[static RULE_CELLS_MAX], size_t *n, size_t cell)
{
        for (size_t i = 0; i < *n; i++)
                if (cells[i] == cell)
                        return;
        cells[(*n)++] = cell;
}

/* The cells that a rule names, each once. Return: how many. */
static size_t rule_cells(const struct manifest_rule *rule, size_t cells[static RULE_CELLS_MAX])
{
        size_t n = 0;

        add_cell(cells, &n, rule->of.cell);
        if (rule->of.is_growth)
                add_cell(cells, &n, rule->of.base);
        if (rule->form != RULE_VALUE)
                add_cell(cells, &n, rule->versus.cell);
        if (rule->form != RULE_VALUE && rule->versus.is_growth)
                add_cell(cells, &n, rule->versus.base);
        return n;
}

/* Adds the clusters of a cell's values in @block, if they are separated, to @j. Return: 0 or -ENOMEM. */
static int find_clusters(const struct judge *judge, size_t cell, const struct metric *metric, struct block block,
                         struct judgement *j)
{
        size_t n = block.last - block.first + 1;
        _cleanup_free_ int64_t *values = calloc(n, sizeof(*values));
        struct cluster c[2];
        json_t *entry;
        int r;

        if (!values)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                if (summary_round_value(trial_at(judge, cell, block.first + i), metric, &values[i]) > 0)
                        return 0;
        sort_i64(values, n);
        r = clusters_find(values, n, c);
        if (r <= 0)
                return r;
        entry = json_pack("{s:s, s:[{s:I, s:o}, {s:I, s:o}]}", "cell", judge->manifest->cells[cell].name, "clusters",
                          "rounds", (json_int_t)c[0].n, "median", summary_value_to_json(c[0].median), "rounds",
                          (json_int_t)c[1].n, "median", summary_value_to_json(c[1].median));
        if (!j->clusters)
                j->clusters = json_array();
        return json_array_append_new(j->clusters, entry) < 0 ? -ENOMEM : 0;
}

static int find_all_clusters(const struct judge *judge, const struct manifest_rule *rule, struct block block,
                             struct judgement *j)
{
        size_t cells[RULE_CELLS_MAX], n = rule_cells(rule, cells);

        for (size_t i = 0; i < n; i++) {
                int r = find_clusters(judge, cells[i], rule->metric, block, j);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_bootstrap(const struct judge *judge, const struct manifest_rule *rule, const struct rounds *rounds,
                         int64_t stream, struct judgement *j)
{
        enum bootstrap_form form = rule->form == RULE_RATIO ? BOOTSTRAP_RATIO : BOOTSTRAP_DIFFERENCE;
        struct bootstrap b;
        int r;

        if (stream < 0 || rule->form == RULE_VALUE || rounds->n < BOOTSTRAP_ROUNDS_MIN)
                return 0;
        r = bootstrap_paired(rounds->of, rounds->versus, rounds->n, form, judge->manifest->seed, (uint64_t)stream, &b);
        if (r == -ENOMEM)
                return r;
        if (r < 0) /* a resample without defined number: no interval */
                return 0;
        j->bootstrap =
                json_pack("{s:o, s:o, s:o, s:b, s:I, s:I}", "point", summary_value_to_json(b.point), "low",
                          summary_value_to_json(b.low), "high", summary_value_to_json(b.high), "degenerate",
                          b.is_degenerate, "resamples", (json_int_t)BOOTSTRAP_RESAMPLES, "stream", (json_int_t)stream);
        return j->bootstrap ? 0 : -ENOMEM;
}

/* A metric that has a value a round. */
static int measure_rounds(const struct judge *judge, const struct manifest_rule *rule, struct block block,
                          int64_t stream, struct judgement *j)
{
        _cleanup_rounds_ struct rounds rounds = {0};
        struct bounds b;
        int r;

        r = rounds_init(&rounds, block.last - block.first + 1);
        if (r < 0)
                return r;
        if (collect_rounds(judge, rule, block, &rounds, j) > 0) {
                j->rounds = rounds.n;
                return 0;
        }
        r = find_all_clusters(judge, rule, block, j);
        if (r >= 0)
                r = add_bootstrap(judge, rule, &rounds, stream, j);
        if (r < 0)
                return r;

        sort_i64(rounds.effect, rounds.n);
        if (bounds_at(rounds.effect, rounds.n, &b) < 0)
                return 0;
        j->rounds = b.n;
        j->has_value = true;
        j->value = b.median;
        j->has_bounds = b.rank > 0;
        j->lower = b.lower;
        j->upper = b.upper;
        return 0;
}

/* Adds up a count over the valid trials of a cell: all of them, or those of one block. Return: how many there are; 0
 * also where one of them lacks it. */
static size_t pool(const json_t *cell, const char *object, const char *name, struct block block, bool is_whole,
                   int64_t *ret)
{
        const json_t *trials = json_object_get(cell, "trials");
        size_t n = 0, i;
        json_t *trial;

        *ret = 0;
        json_array_foreach(trials, i, trial)
        {
                int64_t position = json_integer_value(json_object_get(trial, "position"));
                const json_t *value = json_object_get(object ? json_object_get(trial, object) : trial, name);
                bool is_in = is_whole || (position >= (int64_t)block.first && position <= (int64_t)block.last);

                if (!is_in)
                        continue;
                if (!json_is_integer(value))
                        return 0;
                if (__builtin_add_overflow(*ret, json_integer_value(value), ret))
                        *ret = INT64_MAX;
                n++;
        }
        return n;
}

/* A metric that is pooled over trials. */
static void measure_pooled(const struct judge *judge, const struct manifest_rule *rule, struct block block,
                           struct judgement *j)
{
        bool is_whole = block.first == 1 && block.last == judge->manifest->rounds;
        const json_t *cell = judge->cells[rule->of.cell];
        int64_t lost, sent;
        struct proportion p;

        if (rule->metric->source == METRIC_LOSS) {
                j->rounds = pool(cell, NULL, "lost", block, is_whole, &lost);
                pool(cell, NULL, "sent", block, is_whole, &sent);
                if (proportion_of((uint64_t)lost, (uint64_t)sent, &p) < 0)
                        return;
                j->value = p.ppb;
                j->lower = p.lower;
                j->upper = p.upper;
        } else {
                j->rounds = pool(cell, "counts", rule->metric->series, block, is_whole, &j->value);
                if (j->rounds == 0)
                        return;
                j->lower = j->upper = j->value;
        }
        j->has_value = j->has_bounds = true;
}

int judge_measure(const struct judge *judge, const struct manifest_rule *rule, struct block block, int64_t stream,
                  struct judgement *ret)
{
        *ret = (struct judgement){.outcome = OUTCOME_INCONCLUSIVE, .reason = "no data"};
        if (!metric_is_pooled(rule->metric))
                return measure_rounds(judge, rule, block, stream, ret);
        measure_pooled(judge, rule, block, ret);
        return 0;
}
