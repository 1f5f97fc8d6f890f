/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kinds.h"

#include <assert.h>

#include "base/clock.h"
#include "campaign/boundary-none.h"
#include "campaign/boundary-zones.h"
#include "campaign/kind-bpf-verify.h"
#include "campaign/kind-event-to-actuation.h"
#include "campaign/kind-monitor-decision.h"
#include "campaign/kind-stamp-probe.h"
#include "campaign/kind-udp-load.h"
#include "campaign/traffic.h"
#include "testbed/topology.h"

/* Set-up, proofs and collection of a trial, beside its warm-up and duration; measured with `assay run exp-000 --short`.
 */
#define TRIAL_OVERHEAD_NS (700 * NSEC_PER_MSEC)

/* Of a compressed row, and of the other files of a trial. */
#define ROW_BYTES   24
#define TRIAL_BYTES 16384

#define FLOWS_MAX 17

static int estimate_probe(const struct node *map, int64_t *ret_ns, int64_t *ret_rows, struct err *err)
{
        struct stamp_probe_keys keys = {0};
        int r;

        r = key_table_read(&stamp_probe_table, map, "workload", &keys, err);
        if (r >= 0) {
                *ret_ns = keys.warmup_ns + keys.duration_ns;
                *ret_rows = *ret_ns / NSEC_PER_MSEC * keys.rate_hz / 1000;
        }
        key_table_done(&stamp_probe_table, &keys);
        return r;
}

static const struct kind boundaries[] = {
        {.name = "zones", .table = &topology_keys},
        {.name = "none", .table = &boundary_none_table},
};

static const struct boundary_ops *const boundary_adapters[] = {&boundary_zones_ops, &boundary_none_ops};

static const struct kind workloads[] = {
        {.name = "stamp-probe", .table = &stamp_probe_table, .metrics = stamp_probe_metrics},
        {.name = "udp-load", .table = &udp_load_table},
        {.name = "monitor-decision", .table = &monitor_decision_table, .metrics = monitor_decision_metrics},
        {.name = "event-to-actuation", .table = &event_to_actuation_table, .metrics = event_to_actuation_metrics},
        {.name = "bpf-verify", .table = &bpf_verify_table, .metrics = bpf_verify_metrics},
};

/* What the campaign knows of each of them, in their order. One that sends packets needs zones, and its estimate and
 * what it wants of the host are the traffic's. */
static const struct workload_adapter {
        const struct workload_ops *ops;
        bool needs_zones;
        int (*estimate)(const struct node *map, int64_t *ret_ns, int64_t *ret_rows, struct err *err);
        int (*missing)(const struct node *map, struct err *err);
        int (*check)(const struct node *map, struct err *err); /* what its table cannot see; NULL: nothing */
} workload_adapters[] = {
        {.ops = &stamp_probe_ops, .needs_zones = true, .estimate = estimate_probe},
        {.ops = &udp_load_ops, .needs_zones = true},
        {.ops = &monitor_decision_ops, .estimate = monitor_decision_estimate, .missing = monitor_decision_missing},
        {.ops = &event_to_actuation_ops,
         .estimate = event_to_actuation_estimate,
         .missing = event_to_actuation_missing},
        {.ops = &bpf_verify_ops,
         .estimate = bpf_verify_estimate,
         .missing = bpf_verify_missing,
         .check = bpf_verify_check},
};

static_assert(ARRAY_SIZE(boundaries) == ARRAY_SIZE(boundary_adapters), "each boundary has an adapter");
static_assert(ARRAY_SIZE(workloads) == ARRAY_SIZE(workload_adapters), "each workload has an adapter");

const struct boundary_ops *kinds_boundary(const char *kind)
{
        for (size_t i = 0; i < ARRAY_SIZE(boundaries); i++)
                if (streq(boundaries[i].name, kind))
                        return boundary_adapters[i];
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
        return kinds_boundary(node_scalar_at(config, "boundary.kind")) == &boundary_zones_ops;
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

/* Packets need zones, and nothing else of ours runs in them. */
static int check_place(const struct node *config, const struct node *map, const char *where, struct err *err)
{
        const struct node *kind = node_get(map, "kind");

        if (adapter_of(map)->needs_zones == has_zones(config))
                return 0;
        return err_set_at(err, ERR_USAGE, &kind->position, "%s: %s does not run in the boundary %s", where,
                          node_scalar_at(map, "kind"), node_scalar_at(config, "boundary.kind"));
}

static int check_places(const struct node *config, struct err *err)
{
        const struct node *workload = node_get(config, "workload"), *backgrounds = node_get(config, "background");
        int r;

        if (!adapter_of(workload)->estimate)
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

        r = check_places(config, err);
        if (r >= 0 && adapter_of(workload)->check)
                r = adapter_of(workload)->check(workload, err);
        if (r < 0 || !has_zones(config))
                return r;
        r = topology_read(node_get(config, "boundary"), &topology, err);
        return r < 0 ? r : check_traffic(topology, config, err);
}

static int estimate(const struct node *config, int64_t *ret_duration_ns, int64_t *ret_disk_bytes, struct err *err)
{
        const struct node *workload = node_get(config, "workload");
        int64_t measured_ns, rows;
        int r;

        r = adapter_of(workload)->estimate(workload, &measured_ns, &rows, err);
        if (r < 0)
                return r;
        *ret_duration_ns = measured_ns + TRIAL_OVERHEAD_NS;
        *ret_disk_bytes = rows * ROW_BYTES + TRIAL_BYTES;
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

int kinds_missing(const struct node *config, struct err *err)
{
        const struct node *workload = node_get(config, "workload");
        int r;

        if (!has_zones(config))
                return adapter_of(workload)->missing(workload, err);
        r = boundary_zones_missing(config, err);
        return r < 0 ? r : traffic_missing(config, err);
}
