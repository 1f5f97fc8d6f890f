/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "campaign/adapter.h"
#include "testbed/testbed.h"

/* The boundary `zones`: a testbed, as an adapter. The workloads that run in it reach the testbed through this header.
 */

extern const struct boundary_ops boundary_zones_ops;

/* boundary_zones_missing - whether this host can build the boundary of a cell's configuration
 *
 * Return: 0; a negative errno with the missing capability named in @err.
 */
int boundary_zones_missing(const struct node *config, struct err *err);

/* boundary_zones_testbed, boundary_zones_topology - what stands under @b, borrowed */
struct testbed *boundary_zones_testbed(struct boundary *b);
const struct topology *boundary_zones_topology(struct boundary *b);

/* boundary_zones_settle - wait until the uplink's queues are empty, so that counters of sender and sink can be compared
 *
 * Return: 0; -ETIMEDOUT after two seconds.
 */
int boundary_zones_settle(struct boundary *b, struct err *err);

/* boundary_zones_account - tell the proof that follows what was sent; workloads do so when they collect */
int boundary_zones_account(struct boundary *b, const struct path_flow *flow, struct err *err);
