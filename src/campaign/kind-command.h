/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/adapter.h"
#include "config/key.h"
#include "evidence/kind.h"

/* The workload `command`: a program that runs inside the boundary again and again, from start to exit. */

struct command_keys {
        struct key_names argv;
        int64_t runs, warmup, timeout_ns, cpu;
};

extern const struct key_table command_table;
extern const struct metric command_metrics[];
extern const struct workload_ops command_ops;

/* command_size, command_missing, command_check - as struct kinds and kinds_missing() want them */
int command_size(const struct node *map, struct workload_size *ret, struct err *err);
int command_missing(const struct node *map, struct err *err);
int command_check(const struct node *map, struct err *err);
