/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sys/ip.h"
#include "testbed/topology.h"

/* A topology as nodes, links, addresses and routes: a pure function of it, made before anything is built.
 *
 * Two plans are made independently, by the same walk over zones and slices: the gateway's, with the ends that the zones
 * are attached to, and the zones', with their own ends. They are joined by identity (zone and slice), and both have to
 * say the same about VLAN, link and addresses.
 *
 * Addresses come from the ranges set aside for benchmarking (RFC 2544: 198.18.0.0/15, RFC 5180: 2001:2::/48), so that
 * none is ever mistaken for a real one. An address names its slice and link:
 *
 *      198.18.0.0 + (slice << 12 | link << 2 | host)       a slice is a /20, its part of a link a /30
 *      2001:2:0:SLICE::LINK:HOST                           a slice is a /64, its part of a link a /112
 *
 * where host is 1 at the link's lower end and 2 at its upper one. Upward is towards uplink.to. */

enum {
        LAYOUT_LOWER,
        LAYOUT_UPPER,
        LAYOUT_NODES_MAX = TOPOLOGY_ZONES_MAX + TOPOLOGY_HOPS_MAX,
        LAYOUT_LINKS_MAX = TOPOLOGY_ZONES_MAX + TOPOLOGY_HOPS_MAX - 1,
        LAYOUT_PATH_MAX = TOPOLOGY_HOPS_MAX + 1,
        LAYOUT_SLICE_PREFIX4 = 20,
        LAYOUT_SLICE_PREFIX6 = 64,
        LAYOUT_LINK_PREFIX4 = 30,
        LAYOUT_LINK_PREFIX6 = 112,
};

struct layout_address {
        uint8_t mac[6];
        struct in_addr in4;
        struct in6_addr in6;
};

/* What one plan says about one slice of one zone. */
struct layout_port {
        size_t zone, slice; /* its identity */
        size_t link;
        uint16_t vlan;
        struct layout_address own, peer;
};

struct layout_plan {
        size_t n;
        struct layout_port *ports;
};

struct layout_node {
        char name[72]; /* of the zone; "gateway", "relay-1" */
        bool is_forwarder;
        size_t n_links;
};

struct layout_end {
        size_t node;
        char device[16];
        int ifindex; /* unique in the whole testbed, so that a BPF program can tell links apart by it */
        uint8_t mac[6];
};

struct layout_link {
        char name[72]; /* of its lower node; "uplink" for the link to uplink.to */
        bool is_uplink;
        uint32_t slices;
        struct layout_end ends[2];
};

/* One slice's part of one link. */
struct layout_subnet {
        size_t link, slice;
        uint16_t vlan;
        struct layout_address ends[2];
};

struct layout_route {
        size_t node, link; /* the link that it leaves @node by */
        size_t slice;
        size_t to;     /* subnet that it leads to */
        bool to_slice; /* and to the rest of its slice */
        struct layout_address via;
};

struct layout {
        const struct topology *topology; /* borrowed */
        size_t n_nodes, n_links, n_subnets, n_routes;
        struct layout_node *nodes; /* zones in the manifest's order, then relays upward, then the gateway */
        struct layout_link *links; /* zones' links in the manifest's order, then those between forwarders */
        struct layout_subnet *subnets;
        struct layout_route *routes;
};

/* A link that a packet crosses, and which way. */
struct layout_step {
        size_t link;
        bool is_upward;
};

/* layout_make - plan a topology, which must outlive the layout
 * @ret: layout_free() releases it
 *
 * Return: 0; -ENOMEM; -EINVAL (kind bug) where the two plans do not fit.
 */
int layout_make(const struct topology *topology, struct layout **ret, struct err *err);

void layout_free(struct layout *layout);

DEFINE_CLEANUP(struct layout *, layout_free)
#define _cleanup_layout_ _cleanup_(layout_free_cleanup)

/* layout_gateway_plan, layout_zone_plan - the parts of layout_make(); layout_plan_done() releases them */
int layout_gateway_plan(const struct topology *topology, struct layout_plan *ret, struct err *err);
int layout_zone_plan(const struct topology *topology, struct layout_plan *ret, struct err *err);
void layout_plan_done(struct layout_plan *plan);

/* layout_join - layout of two plans. Names the first identity that is in one plan only, twice in one, or about which
 * the plans disagree. Return: as layout_make(). */
int layout_join(const struct topology *topology, const struct layout_plan *gateway, const struct layout_plan *zones,
                struct layout **ret, struct err *err);

/* layout_node_find, layout_link_find - index of a name. A link answers to the name of the zone at either end, too.
 * False where there is none. */
bool layout_node_find(const struct layout *layout, const char *name, size_t *ret);
bool layout_link_find(const struct layout *layout, const char *name, size_t *ret);

/* layout_zone_address - the address of a zone in a slice that it carries: where its traffic is sent to; NULL where it
 * does not carry the slice */
const struct layout_address *layout_zone_address(const struct layout *layout, size_t zone, size_t slice);

/* layout_address_prefix - an address with a prefix length; its bits past the prefix are kept */
struct ip_prefix layout_address_prefix(const struct layout_address *address, int family, unsigned length_bits);

/* layout_slice_network, layout_link_network - the network of a whole slice, and of its part of one link */
struct ip_prefix layout_slice_network(const struct layout_subnet *subnet, int family);
struct ip_prefix layout_link_network(const struct layout_subnet *subnet, int family);

/* layout_path - the links between two different zones, in order
 * @ret: LAYOUT_PATH_MAX steps
 *
 * Return: how many steps; one more than there are nodes that forward. 0 where no path exists.
 */
size_t layout_path(const struct layout *layout, size_t from_zone, size_t to_zone, struct layout_step *ret);
