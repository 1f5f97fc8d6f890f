/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/adapter.h"
#include "evidence/kind.h"

/* The workload `event-to-actuation`: events to a verified program, and the values that it asks for. */

struct event_to_actuation_keys {
        int64_t rate_hz;
        int64_t duration_ns, warmup_ns;
        int64_t instructions;
        int64_t cpu, trigger_cpu;
};

extern const struct key_table event_to_actuation_table;
extern const struct metric event_to_actuation_metrics[];
extern const struct workload_ops event_to_actuation_ops;

/* event_to_actuation_size - of a trial with these keys */
int event_to_actuation_size(const struct node *map, struct workload_size *ret, struct err *err);

/* event_to_actuation_missing - whether its processors may be used. Return: 0; -EOPNOTSUPP. */
int event_to_actuation_missing(const struct node *map, struct err *err);
