/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
#include "evidence/summary-internal.h"
#include "evidence/summary.h"
#include "stats/bounds.h"
#include "stats/quantile.h"

/* What a background workload has to count; the other keys of its entry are for people. */
static const char *const load_counts[] = {"delivered_bytes", "delivered_packets", "dropped_packets", "duration_ns",
                                          "offered_bytes",   "offered_packets",   "sent_bytes",      "sent_packets"};

static json_t *series_to_json(const struct series *series)
{
        json_t *json = json_pack("{s:I, s:I, s:I}", "values", (json_int_t)series->n, "lost", (json_int_t)series->lost,
                                 "unstamped", (json_int_t)series->unstamped);
        int r = json ? 0 : -1;

        for (size_t i = 0; i < SUMMARY_QUANTILES && r == 0; i++) {
                uint64_t value;

                if (series_quantile(series, summary_quantiles[i].ppm, &value) == 0)
                        r = json_object_set_new(json, summary_quantiles[i].key,
                                                summary_value_to_json((int64_t)MIN(value, (uint64_t)BOUNDS_INFINITE)));
        }
        if (r < 0) {
                json_decref(json);
                return NULL;
        }
        return json;
}

static json_t *all_series_to_json(const struct series_set *set)
{
        _cleanup_json_ json_t *all = json_object();

        for (size_t s = 0; s < set->n; s++)
                if (json_object_set_new(all, set->series[s].name, series_to_json(&set->series[s])) < 0)
                        return NULL;
        return TAKE_PTR(all);
}

static json_t *counts_to_json(const json_t *counts)
{
        _cleanup_json_ json_t *to = json_object();
        const char *key;
        json_t *value;

        json_object_foreach((json_t *)counts, key, value)
        {
                if (json_is_integer(value) && json_object_set(to, key, value) < 0)
                        return NULL;
        }
        return TAKE_PTR(to);
}

static json_t *load_to_json(const json_t *load)
{
        _cleanup_json_ json_t *to = json_object();

        for (size_t i = 0; i < ARRAY_SIZE(load_counts); i++) {
                json_int_t count = json_integer_value(json_object_get(load, load_counts[i]));

                if (json_object_set_new(to, load_counts[i], json_integer(count)) < 0)
                        return NULL;
        }
        return TAKE_PTR(to);
}

static json_t *background_to_json(const json_t *background)
{
        _cleanup_json_ json_t *all = json_object();
        const char *name;
        json_t *load;

        json_object_foreach((json_t *)background, name, load)
        {
                if (json_object_set_new(all, name, load_to_json(load)) < 0)
                        return NULL;
        }
        return TAKE_PTR(all);
}

json_t *summary_trial_to_json(const struct trial *trial, const struct series_set *set)
{
        int64_t duplicates, reordered;

        trial_count(trial, "duplicates", &duplicates);
        trial_count(trial, "reordered", &reordered);
        return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "trial", trial->name, "round",
                         (json_int_t)trial->round, "extra", (json_int_t)trial->extra, "sent", (json_int_t)set->sent,
                         "received", (json_int_t)set->received, "lost", (json_int_t)set->lost, "missed",
                         (json_int_t)set->missed, "duplicates", (json_int_t)duplicates, "reordered",
                         (json_int_t)reordered, "series", all_series_to_json(set), "counts",
                         counts_to_json(trial->counts), "background", background_to_json(trial->background));
}
