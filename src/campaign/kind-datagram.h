/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/adapter.h"
#include "config/key.h"
#include "evidence/kind.h"

/* The workload `datagram`: a client inside the boundary that asks an origin outside, by one datagram after the other.
 */

struct datagram_keys {
        int ask; /* index of "echo", "lookup" */
        int64_t requests, warmup, bytes;
        int64_t timeout_ns, cpu, origin_cpu;
};

extern const struct key_table datagram_table;
extern const struct metric datagram_metrics[];
extern const struct workload_ops datagram_ops;

/* datagram_size, datagram_missing - as struct kinds and kinds_missing() want them */
int datagram_size(const struct node *map, struct workload_size *ret, struct err *err);
int datagram_missing(const struct node *map, struct err *err);
