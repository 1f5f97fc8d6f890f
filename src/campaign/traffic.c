/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/traffic.h"

#include "base/clock.h"
#include "campaign/boundary-zones.h"
#include "campaign/cpu.h"
#include "campaign/kind-stamp-probe.h"
#include "campaign/kind-udp-load.h"

#define READY_NS (5 * NSEC_PER_SEC)

const char *const traffic_families[] = {"ipv4", "ipv6", NULL};

static int probe_missing(const struct node *map, struct err *err)
{
        struct stamp_probe_keys keys = {0};
        int r;

        r = key_table_read(&stamp_probe_table, map, "workload", &keys, err);
        if (r >= 0)
                r = cpu_missing("workload.cpu", keys.cpu, err);
        if (r >= 0)
                r = cpu_missing("workload.reflector-cpu", keys.reflector_cpu, err);
        key_table_done(&stamp_probe_table, &keys);
        return r;
}

static int load_missing(const struct node *map, const char *name, struct err *err)
{
        struct udp_load_keys keys = {0};
        int r;

        r = key_table_read(&udp_load_table, map, name, &keys, err);
        if (r >= 0)
                r = cpu_missing(name, keys.cpu, err);
        key_table_done(&udp_load_table, &keys);
        return r;
}

int traffic_missing(const struct node *config, struct err *err)
{
        const struct node *backgrounds = node_get(config, "background");
        int r;

        r = probe_missing(node_get(config, "workload"), err);
        for (size_t i = 0; backgrounds && i < backgrounds->n_items && r >= 0; i++)
                r = load_missing(backgrounds->items[i], backgrounds->keys[i], err);
        return r;
}

int traffic_family(int choice)
{
        return choice == 0 ? AF_INET : AF_INET6;
}

int traffic_address(const struct testbed *tb, const char *zone, const char *slice, int family, uint16_t port,
                    union address *ret, struct err *err)
{
        struct sockaddr_storage storage = {0};
        struct ip_prefix address;
        int r;

        r = testbed_address(tb, zone, slice, traffic_family(family), &address, err);
        if (r < 0)
                return r;
        ip_prefix_sockaddr(&address, port, &storage);
        memcpy(ret, &storage, sizeof(*ret));
        return 0;
}

int traffic_flow(struct boundary *b, const char *name, const char *from, const char *to, const char *slice,
                 struct path_flow *ret, struct err *err)
{
        const struct topology *t = boundary_zones_topology(b);
        struct path_flow flow = {0};

        if (!topology_zone_find(t, from, &flow.from) || !topology_zone_find(t, to, &flow.to) ||
            !topology_slice_find(t, slice, &flow.slice))
                return err_set(err, ERR_BUG, EINVAL, "the zones or slice of %s are not in the topology", name);
        *ret = flow;
        return 0;
}

int traffic_child_start(struct boundary *b, const char *name, const char *zone,
                        int (*fn)(struct child_side *side, void *userdata), void *userdata, struct child *ret,
                        struct err *err)
{
        const struct child_options options = {
                .name = name,
                .netns = testbed_zone_netns(boundary_zones_testbed(b), zone),
        };
        int r;

        r = child_start(&options, fn, userdata, ret, err);
        if (r >= 0)
                r = child_wait_ready(ret, READY_NS, err);
        if (r < 0)
                err_prefix(err, "the %s in zone %s", name, zone);
        return r;
}
