/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "evidence/summary-internal.h"
#include "evidence/summary.h"
#include "stats/bounds.h"
#include "stats/clusters.h"
#include "stats/proportion.h"
#include "stats/sort.h"

static const char *const pooled_counts[] = {"duplicates", "lost", "missed", "received", "reordered", "sent"};

static bool is_counted(const json_t *trial)
{
        return json_integer_value(json_object_get(trial, "position")) > 0;
}

/* The first trial whose round counts; its siblings have the same series, counts and backgrounds. */
static const json_t *first_counted(const json_t *trials)
{
        json_t *trial;
        size_t i;

        json_array_foreach(trials, i, trial)
        {
                if (is_counted(trial))
                        return trial;
        }
        return NULL;
}

/* Adds the integers of @from to those of @sums. */
static int add_integers(json_t *sums, const json_t *from)
{
        const char *key;
        json_t *value;

        json_object_foreach((json_t *)from, key, value)
        {
                int64_t sum = json_integer_value(json_object_get(sums, key));

                if (!json_is_integer(value))
                        continue;
                if (__builtin_add_overflow(sum, json_integer_value(value), &sum))
                        sum = INT64_MAX;
                if (json_object_set_new(sums, key, json_integer(sum)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Losses and the like are pooled over all valid trials, also those whose round does not count. */
static int add_pooled(json_t *cell, const json_t *trials)
{
        _cleanup_json_ json_t *pooled = json_object(), *counts = json_object();
        json_t *trial;
        size_t i;
        int r = pooled && counts ? 0 : -ENOMEM;

        json_array_foreach(trials, i, trial)
        {
                for (size_t k = 0; k < ARRAY_SIZE(pooled_counts) && r == 0; k++) {
                        _cleanup_json_ json_t *one =
                                json_pack("{s:O}", pooled_counts[k], json_object_get(trial, pooled_counts[k]));

                        r = one ? add_integers(pooled, one) : -ENOMEM;
                }
                if (r == 0)
                        r = add_integers(counts, json_object_get(trial, "counts"));
        }
        if (r == 0 && (json_object_set(pooled, "counts", counts) < 0 || json_object_set(cell, "pooled", pooled) < 0))
                r = -ENOMEM;
        return r;
}

static int add_loss(json_t *cell)
{
        const json_t *pooled = json_object_get(cell, "pooled");
        int64_t lost = json_integer_value(json_object_get(pooled, "lost"));
        int64_t sent = json_integer_value(json_object_get(pooled, "sent"));
        struct proportion p;

        if (proportion_of((uint64_t)lost, (uint64_t)sent, &p) < 0)
                return 0;
        if (json_object_set_new(cell, "loss",
                                json_pack("{s:I, s:I, s:I}", "ppb", (json_int_t)p.ppb, "lower_ppb", (json_int_t)p.lower,
                                          "upper_ppb", (json_int_t)p.upper)) < 0)
                return -ENOMEM;
        return 0;
}

static int64_t rate_bps(const json_t *load, const char *key)
{
        __int128 bits = (__int128)json_integer_value(json_object_get(load, key)) * 8 * NSEC_PER_SEC;
        int64_t duration_ns = json_integer_value(json_object_get(load, "duration_ns"));

        if (duration_ns <= 0 || bits < 0 || bits / duration_ns > INT64_MAX)
                return 0;
        return (int64_t)(bits / duration_ns);
}

static int add_load(json_t *all, const char *name, const json_t *trials)
{
        _cleanup_json_ json_t *load = json_object();
        json_t *trial;
        size_t i;

        json_array_foreach(trials, i, trial)
        {
                const json_t *one = json_object_get(json_object_get(trial, "background"), name);

                if (is_counted(trial) && add_integers(load, one) < 0)
                        return -ENOMEM;
        }
        if (json_object_set_new(load, "offered_bps", json_integer(rate_bps(load, "offered_bytes"))) < 0 ||
            json_object_set_new(load, "sent_bps", json_integer(rate_bps(load, "sent_bytes"))) < 0 ||
            json_object_set_new(load, "delivered_bps", json_integer(rate_bps(load, "delivered_bytes"))) < 0 ||
            json_object_set(all, name, load) < 0)
                return -ENOMEM;
        return 0;
}

static int add_background(json_t *cell, const json_t *trials)
{
        const json_t *loads = json_object_get(first_counted(trials), "background");
        _cleanup_json_ json_t *all = json_object();
        const char *name;
        json_t *load;

        json_object_foreach((json_t *)loads, name, load)
        {
                if (add_load(all, name, trials) < 0)
                        return -ENOMEM;
        }
        return json_object_set(cell, "background", all) < 0 ? -ENOMEM : 0;
}

static json_t *clusters_to_json(const struct cluster clusters[static 2])
{
        return json_pack("[{s:I, s:o}, {s:I, s:o}]", "rounds", (json_int_t)clusters[0].n, "median",
                         summary_value_to_json(clusters[0].median), "rounds", (json_int_t)clusters[1].n, "median",
                         summary_value_to_json(clusters[1].median));
}

/* Median and bounds of sorted round values, or the clusters that they fall into. */
static json_t *bounds_to_json(const int64_t *sorted, size_t n)
{
        struct cluster clusters[2];
        struct bounds b;
        int r;

        r = clusters_find(sorted, n, clusters);
        if (r < 0)
                return NULL;
        if (r > 0)
                return json_pack("{s:I, s:o}", "rounds", (json_int_t)n, "clusters", clusters_to_json(clusters));
        if (bounds_at(sorted, n, &b) < 0)
                return json_pack("{s:I}", "rounds", (json_int_t)n);
        if (b.rank == 0)
                return json_pack("{s:I, s:o}", "rounds", (json_int_t)n, "median", summary_value_to_json(b.median));
        return json_pack("{s:I, s:o, s:o, s:o}", "rounds", (json_int_t)n, "median", summary_value_to_json(b.median),
                         "lower", summary_value_to_json(b.lower), "upper", summary_value_to_json(b.upper));
}

/* Bounds of a metric over the rounds that count; a round without value leaves nothing to say but how many have one. */
static json_t *metric_over_rounds(const json_t *trials, const struct metric *metric, int64_t *values)
{
        size_t n = 0, counted = 0, i;
        json_t *trial;

        json_array_foreach(trials, i, trial)
        {
                if (!is_counted(trial))
                        continue;
                counted++;
                if (summary_round_value(trial, metric, &values[n]) == 0)
                        n++;
        }
        if (n < counted)
                return json_pack("{s:I}", "rounds", (json_int_t)n);
        sort_i64(values, n);
        return bounds_to_json(values, n);
}

static int add_series(json_t *cell, const json_t *trials, int64_t *values)
{
        const json_t *series = json_object_get(first_counted(trials), "series");
        _cleanup_json_ json_t *all = json_object();
        const char *name;
        json_t *one;

        json_object_foreach((json_t *)series, name, one)
        {
                json_t *quantiles = json_object();

                for (size_t i = 0; i < SUMMARY_QUANTILES; i++) {
                        struct metric metric = {.source = METRIC_QUANTILE,
                                                .series = name,
                                                .ppm = summary_quantiles[i].ppm};

                        if (json_object_set_new(quantiles, summary_quantiles[i].key,
                                                metric_over_rounds(trials, &metric, values)) < 0) {
                                json_decref(quantiles);
                                return -ENOMEM;
                        }
                }
                if (json_object_set_new(all, name, quantiles) < 0)
                        return -ENOMEM;
        }
        return json_object_set(cell, "series", all) < 0 ? -ENOMEM : 0;
}

static int add_counts(json_t *cell, const json_t *trials, int64_t *values)
{
        const json_t *counts = json_object_get(first_counted(trials), "counts");
        _cleanup_json_ json_t *all = json_object();
        const char *name;
        json_t *one;

        json_object_foreach((json_t *)counts, name, one)
        {
                struct metric metric = {.source = METRIC_NUMBER, .series = name};

                if (json_object_set_new(all, name, metric_over_rounds(trials, &metric, values)) < 0)
                        return -ENOMEM;
        }
        return json_object_set(cell, "counts", all) < 0 ? -ENOMEM : 0;
}

int summary_cell_finish(json_t *cell)
{
        const json_t *trials = json_object_get(cell, "trials");
        _cleanup_free_ int64_t *values = calloc(json_array_size(trials) + 1, sizeof(*values));
        int r;

        if (!values)
                return -ENOMEM;
        r = add_pooled(cell, trials);
        if (r == 0)
                r = add_loss(cell);
        if (r == 0)
                r = add_background(cell, trials);
        if (r == 0)
                r = add_series(cell, trials, values);
        if (r == 0)
                r = add_counts(cell, trials, values);
        return r;
}
