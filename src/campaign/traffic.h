/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "config/node.h"
#include "load/address.h"
#include "testbed/testbed.h"

/* What the workloads that send packets through zones have in common. */

/* What a rate of layer 2 counts beside the IP packet: the Ethernet header, and with it the 802.1Q tag. */
#define TRAFFIC_ETHERNET_BYTES 14
#define TRAFFIC_LAYER2_BYTES   18

/* traffic_rate_bps - bits of layer 2 a second of @rate_hz packets of @packet_bytes each (of the IP packet) */
static inline int64_t traffic_rate_bps(int64_t rate_hz, int64_t packet_bytes)
{
        return rate_hz * (packet_bytes + TRAFFIC_LAYER2_BYTES) * 8;
}

/* traffic_missing - whether the processors that a cell's workloads are pinned to may be used here
 *
 * Return: 0; a negative errno with the processor named (kind unsupported) in @err.
 */
int traffic_missing(const struct node *config, struct err *err);

/* traffic_address - where a zone is reached in a slice, with a port
 * @family: index into {"ipv4", "ipv6"}, as keys have it
 *
 * Return: 0; -ENOENT (kind usage) where the zone does not carry the slice.
 */
int traffic_address(const struct testbed *tb, const char *zone, const char *slice, int family, uint16_t port,
                    union address *ret, struct err *err);
