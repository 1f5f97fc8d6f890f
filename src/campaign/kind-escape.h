/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/adapter.h"
#include "config/key.h"
#include "evidence/kind.h"

/* The workload `escape`: every way out that `assay exec` claims to close is tried, in the sandbox by its own prober,
 * and without a boundary to see that each of them leads out where nothing stops it. */

extern const struct key_table escape_table;
extern const struct metric escape_metrics[];
extern const struct workload_ops escape_ops;

/* escape_size, escape_missing - as struct kinds and kinds_missing() want them */
int escape_size(const struct node *map, struct workload_size *ret, struct err *err);
int escape_missing(const struct node *map, struct err *err);
