/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/adapter.h"
#include "evidence/kind.h"

/* What kinds of boundaries and workloads there are: the one place that names them all. */

/* kinds_all - their keys, metrics and checks, as evidence wants them */
const struct kinds *kinds_all(void);

/* kinds_boundary, kinds_workload - the adapter of a kind; NULL if there is none. Every kind that kinds_all() knows has
 * one. */
const struct boundary_ops *kinds_boundary(const char *kind);
const struct workload_ops *kinds_workload(const char *kind);

/* kinds_missing - whether this host can run a cell's configuration
 *
 * Return: 0 if it can; a negative errno with the missing capability or program named (kind unsupported) in @err.
 */
int kinds_missing(const struct node *config, struct err *err);
