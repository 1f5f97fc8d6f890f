/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/adapter.h"
#include "config/key.h"

/* The boundary `none`: nothing isolates. For workloads that are measured for themselves, and for commands that others
 * run in an enclosure. */

extern const struct key_table boundary_none_table;
extern const struct boundary_ops boundary_none_ops;
