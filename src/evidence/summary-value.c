/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
#include "evidence/summary-internal.h"
#include "evidence/summary.h"
#include "stats/bounds.h"

#define PS_PER_NS 1000

const struct summary_quantile summary_quantiles[SUMMARY_QUANTILES] = {
        {500000, "p50_ns"},
        {950000, "p95_ns"},
        {990000, "p99_ns"},
        {999000, "p99.9_ns"},
};

const char *summary_quantile_key(uint32_t ppm)
{
        for (size_t i = 0; i < SUMMARY_QUANTILES; i++)
                if (summary_quantiles[i].ppm == ppm)
                        return summary_quantiles[i].key;
        return NULL;
}

json_t *summary_value_to_json(int64_t value)
{
        return value == BOUNDS_INFINITE ? json_string("lost") : json_integer(value);
}

int summary_value_from_json(const json_t *json, int64_t *ret)
{
        if (json_is_integer(json))
                *ret = json_integer_value(json);
        else if (json_is_string(json) && streq(json_string_value(json), "lost"))
                *ret = BOUNDS_INFINITE;
        else
                return 1;
        return 0;
}

/* Nanoseconds of so many, as picoseconds of one; rounded half up. */
static int divide(const json_t *trial, const char *count, int64_t *value)
{
        int64_t n = json_integer_value(json_object_get(json_object_get(trial, "counts"), count));

        if (*value == BOUNDS_INFINITE)
                return 0;
        if (n <= 0 || *value < 0 || *value > INT64_MAX / PS_PER_NS - n)
                return 1;
        *value = (*value * PS_PER_NS + n / 2) / n;
        return 0;
}

int summary_round_value(const json_t *trial, const struct metric *metric, int64_t *ret)
{
        const json_t *from;
        const char *key = metric->series;

        if (metric->source == METRIC_QUANTILE) {
                from = json_object_get(json_object_get(trial, "series"), metric->series);
                key = summary_quantile_key(metric->ppm);
        } else {
                from = json_object_get(trial, "counts");
        }
        if (!key || summary_value_from_json(json_object_get(from, key), ret) > 0)
                return 1;
        return metric->per ? divide(trial, metric->per, ret) : 0;
}

const json_t *summary_cell(const json_t *summary, const char *name)
{
        json_t *cell;
        size_t i;

        json_array_foreach(json_object_get(summary, "cells"), i, cell)
        {
                const char *known = json_string_value(json_object_get(cell, "cell"));

                if (known && streq(known, name))
                        return cell;
        }
        return NULL;
}
