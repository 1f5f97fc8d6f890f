/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "campaign/adapter.h"
#include "config/key.h"
#include "config/node.h"
#include "load/address.h"
#include "load/udp.h"
#include "sys/child.h"
#include "testbed/testbed.h"

/* What the workloads that send packets through zones have in common. */

/* Keys that they share, as rows of their tables; @offset_ is the member of the struct that takes the value. */
#define TRAFFIC_KEY_SLICE(offset_, help_)                                                                              \
        {                                                                                                              \
                .name = "slice", .type = KEY_NAME, .offset = (offset_), .is_required = true, .help = (help_)           \
        }
#define TRAFFIC_KEY_FAMILY(offset_)                                                                                    \
        {                                                                                                              \
                .name = "family", .type = KEY_CHOICE, .offset = (offset_), .fallback = "ipv4",                         \
                .choices = traffic_families, .help = "Version of IP."                                                  \
        }
#define TRAFFIC_KEY_CPU(name_, offset_, fallback_, help_)                                                              \
        {                                                                                                              \
                .name = (name_), .type = KEY_QUANTITY, .offset = (offset_), .fallback = (fallback_),                   \
                .unit = UNIT_COUNT, .max = 1023, .help = (help_)                                                       \
        }

extern const char *const traffic_families[];

/* traffic_rate_bps - bits of layer 2 a second of @rate_hz packets of @packet_bytes each (of the IP packet), tag
 * included
 */
static inline int64_t traffic_rate_bps(int64_t rate_hz, int64_t packet_bytes)
{
        return rate_hz * (packet_bytes + UDP_ETHERNET_BYTES + UDP_TAG_BYTES) * 8;
}

/* traffic_missing - whether the processors that a cell's workloads are pinned to may be used here
 *
 * Return: 0; a negative errno with the processor named (kind unsupported) in @err.
 */
int traffic_missing(const struct node *config, struct err *err);

/* traffic_family - the address family of an index into traffic_families */
int traffic_family(int choice);

/* traffic_address - where a zone is reached in a slice, with a port
 * @family: index into traffic_families, as keys have it
 *
 * Return: 0; -ENOENT (kind usage) where the zone does not carry the slice.
 */
int traffic_address(const struct testbed *tb, const char *zone, const char *slice, int family, uint16_t port,
                    union address *ret, struct err *err);

/* traffic_flow - zones and slice by name as a flow of the boundary's topology, of which nothing is sent yet
 * @name: of the workload, for the error
 *
 * Return: 0; -EINVAL (kind bug: the manifest was checked) where the topology has none of that name.
 */
int traffic_flow(struct boundary *b, const char *name, const char *from, const char *to, const char *slice,
                 struct path_flow *ret, struct err *err);

/* traffic_child_start - run @fn in a process inside @zone, and wait until it is ready
 * @name: of the process, which an error begins with
 * @ret:  the child, which may have to be released also where this fails
 *
 * Return: 0, or a negative errno, with the child's own reason where it had one.
 */
int traffic_child_start(struct boundary *b, const char *name, const char *zone,
                        int (*fn)(struct child_side *side, void *userdata), void *userdata, struct child *ret,
                        struct err *err);
