/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/adapter.h"

/* The boundary `zones`: a testbed, as an adapter. The workloads that run in it reach the testbed through this header.
 */

struct testbed;

extern const struct boundary_ops boundary_zones_ops;

/* boundary_zones_missing - whether this host can build the boundary of a cell's configuration
 *
 * Return: 0; -EOPNOTSUPP with the missing capability named in @err.
 */
int boundary_zones_missing(const struct node *config, struct err *err);

/* boundary_zones_testbed - the testbed under @b, borrowed; NULL if @b is another kind of boundary */
struct testbed *boundary_zones_testbed(struct boundary *b);

/* Packets that a workload sent through the testbed, for the proof that follows. */
struct zones_flow {
        const char *from, *to, *slice;           /* borrowed until the boundary is down */
        uint64_t sent_packets, sent_bytes;       /* bytes of layer 2, tag included */
        uint64_t replied_packets, replied_bytes; /* that came back the same way */
};

/* boundary_zones_account - tell what was sent; called by workloads when they collect */
int boundary_zones_account(struct boundary *b, const struct zones_flow *flow, struct err *err);
