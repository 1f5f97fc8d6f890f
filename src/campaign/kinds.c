/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kinds.h"

#include "base/clock.h"
#include "campaign/boundary-zones.h"
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

static const struct kind boundaries[] = {
        {.name = "zones", .table = &topology_keys},
};

static const struct kind workloads[] = {
        {.name = "stamp-probe", .table = &stamp_probe_table, .metrics = stamp_probe_metrics},
        {.name = "udp-load", .table = &udp_load_table},
};

const struct boundary_ops *kinds_boundary(const char *kind)
{
        return streq(kind, "zones") ? &boundary_zones_ops : NULL;
}

const struct workload_ops *kinds_workload(const char *kind)
{
        if (streq(kind, "stamp-probe"))
                return &stamp_probe_ops;
        return streq(kind, "udp-load") ? &udp_load_ops : NULL;
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

static int check_cell(const struct node *config, struct err *err)
{
        _cleanup_topology_ struct topology *topology = NULL;
        int r;

        r = topology_read(node_get(config, "boundary"), &topology, err);
        return r < 0 ? r : check_traffic(topology, config, err);
}

static int estimate(const struct node *config, int64_t *ret_duration_ns, int64_t *ret_disk_bytes, struct err *err)
{
        struct stamp_probe_keys keys = {0};
        int64_t measured;
        int r;

        r = key_table_read(&stamp_probe_table, node_get(config, "workload"), "workload", &keys, err);
        if (r >= 0) {
                measured = keys.warmup_ns + keys.duration_ns;
                *ret_duration_ns = measured + TRIAL_OVERHEAD_NS;
                *ret_disk_bytes = measured / NSEC_PER_MSEC * keys.rate_hz / 1000 * ROW_BYTES + TRIAL_BYTES;
        }
        key_table_done(&stamp_probe_table, &keys);
        return r;
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
        int r = boundary_zones_missing(config, err);

        return r < 0 ? r : traffic_missing(config, err);
}
