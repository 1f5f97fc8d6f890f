/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sys/hysteresis.h"
#include "sys/netlink.h"
#include "testbed/testbed.h"

/* How a testbed is put together; each part is a file of its own that works on struct testbed. Order of building: nodes,
 * cables, then what tells slices apart on them (tagger or fence), then the uplink's shaper. Everything lives in the
 * nodes' namespaces, so releasing those takes it down. */

struct testbed_node {
        struct netns ns;
        uint64_t inode; /* of the namespace, when it was made */
        struct netlink *nl;
};

struct testbed {
        const struct topology *topology;
        struct layout *layout;
        struct testbed_mechanism mechanism;
        struct hysteresis hysteresis;
        size_t n_nodes;
        struct testbed_node *nodes;
        int (*devices)[2]; /* of each subnet's ends: index of the device that has the slice's address */
        struct tagger *tagger;
        struct drain *drains;
};

/* end_netlink - the connection to the node at an end of a link */
static inline struct netlink *end_netlink(const struct testbed *tb, const struct layout_end *end)
{
        return tb->nodes[end->node].nl;
}

/* node_build_all - a namespace for every node that sends nothing of its own */
int node_build_all(struct testbed *tb, struct err *err);

/* node_forward_all - let relays and gateway forward. A link that is made in a node that forwards reports itself to
 * multicast routers before it can be told to be quiet, so this comes after the links. */
int node_forward_all(struct testbed *tb, struct err *err);
void node_done(struct testbed_node *node);

/* cable_build_all - links, VLAN devices where there are any, addresses, neighbours, routes; every link carries packets
 * afterwards */
int cable_build_all(struct testbed *tb, struct err *err);

/* shaper_build - the scheduler on the uplink; nothing where there is no gateway */
int shaper_build(struct testbed *tb, struct err *err);

/* shaper_class, shaper_queue - handle of the class that a slice's packets belong to; its transmit queue, from 1, or 0
 * where it has none of its own */
uint32_t shaper_class(const struct topology *topology, size_t slice);
uint16_t shaper_queue(const struct topology *topology, size_t slice);

/* shaper_n_classes - how many classes are counted: one a slice, or one for all, or none */
size_t shaper_n_classes(const struct topology *topology);

/* shaper_observe - fill in the scheduler's part of a scrape */
int shaper_observe(struct testbed *tb, struct scrape *scrape, struct err *err);

/* ---- tagger: BPF programs at the link ends (bpf/slice.bpf.c) ---- */

/* tagger_build - load the programs and attach them to every link end. Return: 0; a negative errno, kind unsupported
 * where this process may not load BPF programs. */
int tagger_build(struct testbed *tb, struct err *err);
void tagger_free(struct tagger *tagger);

/* tagger_observe - fill in the ports and refusals of a scrape */
int tagger_observe(struct testbed *tb, struct scrape *scrape, struct err *err);

/* ---- fence: nftables where BPF programs may not be loaded ---- */

int fence_build(struct testbed *tb, struct err *err);

/* fence_stands - whether the rules of a forwarding node are all there */
bool fence_stands(const struct testbed *tb, size_t node);

/* drain_free_all - release the testbed's sinks */
void drain_free_all(struct drain *first);
