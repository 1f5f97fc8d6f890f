/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/adapter.h"
#include "config/key.h"

/* The boundary `sandbox`: commands run by `assay exec`, as a user would. */

extern const struct key_table boundary_sandbox_table;
extern const struct boundary_ops boundary_sandbox_ops;

/* boundary_sandbox_check, boundary_sandbox_missing - as kinds.c wants them */
int boundary_sandbox_check(const struct node *boundary, struct err *err);
int boundary_sandbox_missing(const struct node *config, struct err *err);

/* boundary_sandbox_has_network - whether commands in it may reach an origin, by its configuration */
bool boundary_sandbox_has_network(const struct node *boundary);
