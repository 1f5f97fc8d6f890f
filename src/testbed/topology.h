/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "config/key.h"
#include "config/node.h"

/* What a manifest's `boundary` of kind `zones` asks for, checked as a whole: names are resolved to indices, and every
 * number is within what the testbed can build. See topology_keys for the keys. */

enum {
        TOPOLOGY_SLICES_MAX = 32, /* what an address holds, see layout.h */
        TOPOLOGY_ZONES_MAX = 64,
        TOPOLOGY_HOPS_MAX = 16,
        TOPOLOGY_PORTS_MAX = 256, /* slices that all links carry together: their counters have to fit into a scrape */
};

enum topology_shape {
        TOPOLOGY_STAR,        /* zones around one gateway */
        TOPOLOGY_DAISY_CHAIN, /* as a star, with hops - 1 relays between the zones and the gateway */
        TOPOLOGY_DIRECT,      /* every zone joined to uplink.to without a gateway, queue or rate: a control */
};

enum topology_scheduler {
        TOPOLOGY_TREE,           /* one HTB tree on the uplink, a class a slice */
        TOPOLOGY_TREE_PER_QUEUE, /* a transmit queue a slice, each with an HTB of its own; ceilings are strict */
        TOPOLOGY_ONE_QUEUE,      /* one class and one leaf for all slices */
};

struct topology_slice {
        char *name;
        uint16_t vlan;
        int64_t guarantee_bps; /* bits of layer 2 a second, the tag included */
        int64_t ceiling_bps;
        uint8_t priority; /* 0 is served first */
        uint32_t queue_limit_packets;
};

struct topology_zone {
        char *name;
        uint32_t slices; /* bit i: carries slice i */
};

struct topology {
        enum topology_shape shape;
        enum topology_scheduler scheduler;
        unsigned hops;    /* nodes that forward between two zones at most: 0 direct, 1 star, the chain's length */
        size_t uplink_to; /* the zone behind the gateway's uplink */
        int64_t uplink_rate_bps;
        size_t n_slices, n_zones;
        struct topology_slice *slices;
        struct topology_zone *zones;
};

/* Keys of `boundary` beside `kind`, for the manifest's reader and its reference page. */
extern const struct key_table topology_keys;

/* topology_read - read and check a boundary
 * @boundary: the mapping `boundary`; its `kind` is not looked at
 * @ret:      topology_free() releases it
 *
 * Checked besides keys, types and limits: guarantees lie below their ceilings and together below the uplink's rate;
 * ceilings lie below the uplink's rate, and together where trees per queue make them strict; VLANs differ; zones carry
 * slices that exist, every slice reaches uplink.to and some other zone; uplink.to exists; `hops` is given for a chain
 * and for nothing else; all links together carry TOPOLOGY_PORTS_MAX slices at most.
 * Return: 0, or a negative errno with reason and position (kind usage) in @err.
 */
int topology_read(const struct node *boundary, struct topology **ret, struct err *err);

void topology_free(struct topology *topology);

DEFINE_CLEANUP(struct topology *, topology_free)
#define _cleanup_topology_ _cleanup_(topology_free_cleanup)

/* topology_zone_find, topology_slice_find - index of a name; false where there is none */
bool topology_zone_find(const struct topology *topology, const char *name, size_t *ret);
bool topology_slice_find(const struct topology *topology, const char *name, size_t *ret);

/* topology_shared_leaf_packets - queue limit of the one leaf of `one-queue`: the largest of the slices' */
uint32_t topology_shared_leaf_packets(const struct topology *topology);

/* topology_shape_name, topology_scheduler_name - as written in the manifest */
const char *topology_shape_name(enum topology_shape shape);
const char *topology_scheduler_name(enum topology_scheduler scheduler);

/* Traffic that a workload sends one way, as far as the topology has to know it. */
struct topology_flow {
        const char *where;       /* what to call it in an error: "background.infotainment" */
        const struct node *keys; /* its mapping: names under `from`, `to` and `slice`, and positions for errors */
        int64_t rate_bps;        /* bits of layer 2 a second, the tag included; 0 where it sends nothing */
        bool is_overload;        /* `overload: true`: meant to send more than the link can carry */
};

/* topology_check_flows - whether all the traffic of a cell fits the topology
 *
 * Each flow's zones exist, differ and carry its slice; without a gateway one of them is uplink.to. What goes to
 * uplink.to stays, slice by slice, within the slice's ceiling and altogether within the uplink's rate, unless a flow
 * that has a part in it is an overload. Return: 0, or -EINVAL with reason and position (kind usage) in @err.
 */
int topology_check_flows(const struct topology *topology, const struct topology_flow *flows, size_t n, struct err *err);
