/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/adapter.h"
#include "config/key.h"
#include "evidence/kind.h"

/* The workload `http`: a client inside the boundary fetches from an origin outside. */

struct http_keys {
        int64_t threads, requests, warmup;
        int64_t body_bytes, write_bytes;
        int64_t events, event_bytes, every_ns;
        int64_t timeout_ns, cpu, origin_cpu;
        int connection; /* index of "fresh", "keep-alive" */
        bool tls;
};

extern const struct key_table http_table;
extern const struct metric http_metrics[];
extern const struct workload_ops http_ops;

/* http_size, http_missing - as struct kinds and kinds_missing() want them */
int http_size(const struct node *map, struct workload_size *ret, struct err *err);
int http_missing(const struct node *map, struct err *err);
