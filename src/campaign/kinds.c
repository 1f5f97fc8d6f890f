/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kinds.h"

#include <assert.h>

#include "base/clock.h"
#include "campaign/boundary-none.h"
#include "campaign/boundary-ordinary-proxy.h"
#include "campaign/boundary-sandbox.h"
#include "campaign/boundary-wrapper.h"
#include "campaign/boundary-zones.h"
#include "campaign/kind-bpf-verify.h"
#include "campaign/kind-command.h"
#include "campaign/kind-datagram.h"
#include "campaign/kind-escape.h"
#include "campaign/kind-event-to-actuation.h"
#include "campaign/kind-http.h"
#include "campaign/kind-monitor-decision.h"
#include "campaign/kind-stamp-probe.h"
#include "campaign/kind-udp-load.h"
#include "campaign/traffic.h"
#include "sys/capability.h"
#include "testbed/topology.h"

/* Set-up, proofs and collection of a trial, beside its warm-up and duration; measured with `assay run exp-000 --short`.
 */
#define TRIAL_OVERHEAD_NS (700 * NSEC_PER_MSEC)

/* Of a compressed row, and of the other files of a trial with their share of the summary, in blocks of 4096. */
#define ROW_BYTES   24
#define TRIAL_BYTES 65536

#define FLOWS_MAX 17

/* Where a workload runs. */
enum place {
        PLACE_HOST = 1,   /* for itself, on this host */
        PLACE_ZONES = 2,  /* sends packets between zones */
        PLACE_STAGE = 4,  /* a command in an enclosure (campaign/enclosure.h) */
        PLACE_PROVEN = 8, /* an enclosure that tries to get out of itself, or none */
};

static const struct kind boundaries[] = {
        {.name = "zones", .table = &topology_keys},
        {.name = "none", .table = &boundary_none_table},
        {.name = "sandbox", .table = &boundary_sandbox_table},
        {.name = "wrapper", .table = &boundary_wrapper_table},
        {.name = "ordinary-proxy", .table = &boundary_ordinary_proxy_table},
};

/* What the campaign knows of each of them, in their order. */
static const struct boundary_adapter {
        const struct boundary_ops *ops;
        unsigned places;                                            /* enum place: what can run in it */
        int (*missing)(const struct node *config, struct err *err); /* NULL: it needs nothing */
        bool is_plain;                                    /* takes part in the client's HTTP, so there can be no TLS */
        bool (*has_network)(const struct node *boundary); /* of a stage; NULL: it has */
        int (*check)(const struct node *boundary, struct err *err); /* what its table cannot see; NULL: nothing */
} boundary_adapters[] = {
        {.ops = &boundary_zones_ops, .places = PLACE_ZONES, .missing = boundary_zones_missing},
        {.ops = &boundary_none_ops, .places = PLACE_HOST | PLACE_STAGE | PLACE_PROVEN},
        {.ops = &boundary_sandbox_ops,
         .places = PLACE_STAGE | PLACE_PROVEN,
         .missing = boundary_sandbox_missing,
         .has_network = boundary_sandbox_has_network,
         .check = boundary_sandbox_check},
        {.ops = &boundary_wrapper_ops,
         .places = PLACE_STAGE,
         .missing = boundary_wrapper_missing,
         .has_network = boundary_wrapper_has_network,
         .check = boundary_wrapper_check},
        {.ops = &boundary_ordinary_proxy_ops,
         .places = PLACE_STAGE,
         .is_plain = true,
         .missing = boundary_ordinary_proxy_missing},
};

static const struct kind workloads[] = {
        {.name = "stamp-probe", .table = &stamp_probe_table, .metrics = stamp_probe_metrics},
        {.name = "udp-load", .table = &udp_load_table},
        {.name = "monitor-decision", .table = &monitor_decision_table, .metrics = monitor_decision_metrics},
        {.name = "event-to-actuation", .table = &event_to_actuation_table, .metrics = event_to_actuation_metrics},
        {.name = "bpf-verify", .table = &bpf_verify_table, .metrics = bpf_verify_metrics},
        {.name = "http", .table = &http_table, .metrics = http_metrics},
        {.name = "datagram", .table = &datagram_table, .metrics = datagram_metrics},
        {.name = "command", .table = &command_table, .metrics = command_metrics},
        {.name = "escape", .table = &escape_table, .metrics = escape_metrics},
};

/* As above. Of one that sends packets, what it wants of the host is the traffic's. */
static const struct workload_adapter {
        const struct workload_ops *ops;
        enum place place;
        bool needs_network; /* of a stage */
        bool is_datagram;   /* of UDP, which no proxy of HTTP carries */
        int (*size)(const struct node *map, struct workload_size *ret, struct err *err); /* NULL: only a background */
        int (*missing)(const struct node *map, struct err *err);
        int (*check)(const struct node *map, struct err *err); /* what its table cannot see; NULL: nothing */
} workload_adapters[] = {
        {.ops = &stamp_probe_ops, .place = PLACE_ZONES, .size = stamp_probe_size},
        {.ops = &udp_load_ops, .place = PLACE_ZONES},
        {.ops = &monitor_decision_ops,
         .place = PLACE_HOST,
         .size = monitor_decision_size,
         .missing = monitor_decision_missing},
        {.ops = &event_to_actuation_ops,
         .place = PLACE_HOST,
         .size = event_to_actuation_size,
         .missing = event_to_actuation_missing},
        {.ops = &bpf_verify_ops,
         .place = PLACE_HOST,
         .size = bpf_verify_size,
         .missing = bpf_verify_missing,
         .check = bpf_verify_check},
        {.ops = &http_ops, .place = PLACE_STAGE, .needs_network = true, .size = http_size, .missing = http_missing},
        {.ops = &datagram_ops,
         .place = PLACE_STAGE,
         .needs_network = true,
         .is_datagram = true,
         .size = datagram_size,
         .missing = datagram_missing},
        {.ops = &command_ops,
         .place = PLACE_STAGE,
         .size = command_size,
         .missing = command_missing,
         .check = command_check},
        {.ops = &escape_ops, .place = PLACE_PROVEN, .size = escape_size, .missing = escape_missing},
};

static_assert(ARRAY_SIZE(boundaries) == ARRAY_SIZE(boundary_adapters), "each boundary has an adapter");
static_assert(ARRAY_SIZE(workloads) == ARRAY_SIZE(workload_adapters), "each workload has an adapter");

static const struct boundary_adapter *boundary_adapter_of(const struct node *config)
{
        const char *kind = node_scalar_at(config, "boundary.kind");

        for (size_t i = 0; kind && i < ARRAY_SIZE(boundaries); i++)
                if (streq(boundaries[i].name, kind))
                        return &boundary_adapters[i];
        return NULL;
}

const struct boundary_ops *kinds_boundary(const char *kind)
{
        for (size_t i = 0; i < ARRAY_SIZE(boundaries); i++)
                if (streq(boundaries[i].name, kind))
                        return boundary_adapters[i].ops;
        return NULL;
}

static const struct workload_adapter *adapter_of(const struct node *map)
{
        const char *kind = node_scalar_at(map, "kind");

        for (size_t i = 0; kind && i < ARRAY_SIZE(workloads); i++)
                if (streq(workloads[i].name, kind))
                        return &workload_adapters[i];
        return NULL;
}

const struct workload_ops *kinds_workload(const char *kind)
{
        for (size_t i = 0; i < ARRAY_SIZE(workloads); i++)
                if (streq(workloads[i].name, kind))
                        return workload_adapters[i].ops;
        return NULL;
}

static bool has_zones(const struct node *config)
{
        return boundary_adapter_of(config)->places == PLACE_ZONES;
}

/* What the zones have to carry of one workload; a probe is traffic too. */
static int flow_of_probe(const struct node *map, struct topology_flow *ret, struct err *err)
{
        struct stamp_probe_keys keys = {0};
        int r;

        r = key_table_read(&stamp_probe_table, map, "workload", &keys, err);
        if (r >= 0)
                *ret = (struct topology_flow){.where = "workload",
                                              .keys = map,
                                              .rate_bps = traffic_rate_bps(keys.rate_hz, keys.packet_bytes)};
        key_table_done(&stamp_probe_table, &keys);
        return r;
}

static int flow_of_load(const struct node *map, const char *where, struct topology_flow *ret, struct err *err)
{
        struct udp_load_keys keys = {0};
        int r;

        r = key_table_read(&udp_load_table, map, where, &keys, err);
        if (r >= 0)
                *ret = (struct topology_flow){.where = where,
                                              .keys = map,
                                              .rate_bps = keys.rate_bps,
                                              .is_overload = keys.is_overload};
        key_table_done(&udp_load_table, &keys);
        return r;
}

static int check_traffic(const struct topology *topology, const struct node *config, struct err *err)
{
        const struct node *workload = node_get(config, "workload"), *backgrounds = node_get(config, "background");
        size_t n = 1, n_backgrounds = backgrounds ? backgrounds->n_items : 0;
        struct topology_flow flows[FLOWS_MAX];
        int r;

        if (n_backgrounds >= FLOWS_MAX)
                return err_set_at(err, ERR_USAGE, &backgrounds->position,
                                  "at most %d background workloads are possible", FLOWS_MAX - 1);
        r = flow_of_probe(workload, &flows[0], err);
        for (size_t i = 0; i < n_backgrounds && r >= 0; i++)
                r = flow_of_load(backgrounds->items[i], backgrounds->keys[i], &flows[n++], err);
        return r < 0 ? r : topology_check_flows(topology, flows, n, err);
}

/* Packets need zones, a command an enclosure, and a client a network in it. */
static int check_place(const struct node *config, const struct node *map, const char *where, struct err *err)
{
        const struct boundary_adapter *boundary = boundary_adapter_of(config);
        const struct workload_adapter *workload = adapter_of(map);
        const struct node *kind = node_get(map, "kind");

        if (!(boundary->places & workload->place))
                return err_set_at(err, ERR_USAGE, &kind->position, "%s: %s does not run in the boundary %s", where,
                                  node_scalar_at(map, "kind"), node_scalar_at(config, "boundary.kind"));
        if (workload->needs_network && boundary->has_network && !boundary->has_network(node_get(config, "boundary")))
                return err_set_at(err, ERR_USAGE, &kind->position, "%s: %s needs a network, and this boundary has none",
                                  where, node_scalar_at(map, "kind"));
        if (boundary->is_plain && streq(node_scalar_at(map, "tls") ? node_scalar_at(map, "tls") : "", "true"))
                return err_set_at(err, ERR_USAGE, &node_get(map, "tls")->position,
                                  "%s: tls does not go through an ordinary proxy", where);
        if (boundary->is_plain && workload->is_datagram)
                return err_set_at(err, ERR_USAGE, &kind->position,
                                  "%s: datagrams do not go through an ordinary proxy, so there is nothing to measure",
                                  where);
        return 0;
}

static int check_places(const struct node *config, struct err *err)
{
        const struct node *workload = node_get(config, "workload"), *backgrounds = node_get(config, "background");
        int r;

        if (!adapter_of(workload)->size)
                return err_set_at(err, ERR_USAGE, &workload->position, "workload: %s can only be a background workload",
                                  node_scalar_at(workload, "kind"));
        r = check_place(config, workload, "workload", err);
        for (size_t i = 0; backgrounds && i < backgrounds->n_items && r == 0; i++)
                r = check_place(config, backgrounds->items[i], backgrounds->keys[i], err);
        return r;
}

static int check_cell(const struct node *config, struct err *err)
{
        const struct node *workload = node_get(config, "workload");
        _cleanup_topology_ struct topology *topology = NULL;
        int r;

        r = boundary_adapter_of(config)->check ? boundary_adapter_of(config)->check(node_get(config, "boundary"), err)
                                               : 0;
        if (r >= 0)
                r = check_places(config, err);
        if (r >= 0 && adapter_of(workload)->check)
                r = adapter_of(workload)->check(workload, err);
        if (r < 0 || !has_zones(config))
                return r;
        r = topology_read(node_get(config, "boundary"), &topology, err);
        return r < 0 ? r : check_traffic(topology, config, err);
}

static int estimate(const struct node *config, struct trial_estimate *ret, struct err *err)
{
        const struct node *workload = node_get(config, "workload");
        struct workload_size size;
        int r;

        r = adapter_of(workload)->size(workload, &size, err);
        if (r < 0)
                return r;
        *ret = (struct trial_estimate){.duration_ns = size.duration_ns + TRIAL_OVERHEAD_NS,
                                       .disk_bytes = size.rows * ROW_BYTES + TRIAL_BYTES,
                                       .values = size.values};
        return 0;
}

const struct kinds *kinds_all(void)
{
        static const struct kinds all = {
                .n_boundaries = ARRAY_SIZE(boundaries),
                .boundaries = boundaries,
                .n_workloads = ARRAY_SIZE(workloads),
                .workloads = workloads,
                .check_cell = check_cell,
                .estimate = estimate,
        };

        return &all;
}

/* What a stage is made of. */
static int stage_missing(struct err *err)
{
        int r = capability_require("netns", err);

        return r < 0 ? r : capability_require("veth", err);
}

int kinds_missing(const struct node *config, struct err *err)
{
        const struct boundary_adapter *boundary = boundary_adapter_of(config);
        const struct node *workload = node_get(config, "workload");
        const struct workload_adapter *adapter = adapter_of(workload);
        int r = 0;

        if (boundary->missing)
                r = boundary->missing(config, err);
        if (r >= 0 && adapter->place & (PLACE_STAGE | PLACE_PROVEN))
                r = stage_missing(err);
        if (r >= 0)
                r = adapter->place == PLACE_ZONES ? traffic_missing(config, err) : adapter->missing(workload, err);
        return r;
}
