/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/traffic.h"

#include "campaign/cpu.h"
#include "campaign/kind-stamp-probe.h"
#include "campaign/kind-udp-load.h"

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

int traffic_address(const struct testbed *tb, const char *zone, const char *slice, int family, uint16_t port,
                    union address *ret, struct err *err)
{
        struct sockaddr_storage storage = {0};
        struct ip_prefix address;
        int r;

        r = testbed_address(tb, zone, slice, family == 0 ? AF_INET : AF_INET6, &address, err);
        if (r < 0)
                return r;
        ip_prefix_sockaddr(&address, port, &storage);
        memcpy(ret, &storage, sizeof(*ret));
        return 0;
}
