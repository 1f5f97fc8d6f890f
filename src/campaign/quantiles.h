/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "evidence/kind.h"

/* QUANTILES - the metrics of a series that is published by its quantiles, for a table of metrics */
#define QUANTILES(series_name)                                                                                         \
        {.name = series_name ".p50",                                                                                   \
         .unit = METRIC_NS,                                                                                            \
         .source = METRIC_QUANTILE,                                                                                    \
         .series = series_name,                                                                                        \
         .ppm = 500000},                                                                                               \
                {.name = series_name ".p95",                                                                           \
                 .unit = METRIC_NS,                                                                                    \
                 .source = METRIC_QUANTILE,                                                                            \
                 .series = series_name,                                                                                \
                 .ppm = 950000},                                                                                       \
                {.name = series_name ".p99",                                                                           \
                 .unit = METRIC_NS,                                                                                    \
                 .source = METRIC_QUANTILE,                                                                            \
                 .series = series_name,                                                                                \
                 .ppm = 990000},                                                                                       \
        {                                                                                                              \
                .name = series_name ".p99.9", .unit = METRIC_NS, .source = METRIC_QUANTILE, .series = series_name,     \
                .ppm = 999000                                                                                          \
        }
