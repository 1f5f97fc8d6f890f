/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "bpfvm/cost.h"

/* Cost tables as files (docs/formats/costs.md). */

/* bpf_cost_to_json - the table as an object; NULL if memory ran out */
json_t *bpf_cost_to_json(const struct cost_table *table);

/* bpf_cost_load - read a table; every class and every helper has to be there, each from 1 to 2^32 - 1 picoseconds
 *
 * Return: 0; a negative errno with the reason in @err.
 */
int bpf_cost_load(const char *path, struct cost_table *ret, struct err *err);
