/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/adapter.h"
#include "evidence/kind.h"

/* The workload `monitor-decision`: requests to an actuation monitor, a thousand to a sample. */

struct monitor_decision_keys {
        int requests; /* enum measure_case */
        int64_t samples, warmup_samples;
        int64_t repeat;
        int64_t cpu;
};

extern const struct key_table monitor_decision_table;
extern const struct metric monitor_decision_metrics[];
extern const struct workload_ops monitor_decision_ops;

/* monitor_decision_size - of a trial with these keys; its time is a guess */
int monitor_decision_size(const struct node *map, struct workload_size *ret, struct err *err);

/* monitor_decision_missing - whether its processor may be used. Return: 0; -EOPNOTSUPP. */
int monitor_decision_missing(const struct node *map, struct err *err);
