/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "sys/ip.h"
#include "sys/link.h"
#include "testbed/testbed-internal.h"

#define MTU_BYTES     1500
#define WAIT_READY_NS (5 * NSEC_PER_SEC)

static void describe_end(const struct layout_end *end, struct link_end *ret)
{
        *ret = (struct link_end){
                .name = end->device,
                .index = end->ifindex,
                .is_quiet = true,
                .has_mac = true,
                .mtu = MTU_BYTES,
        };
        memcpy(ret->mac, end->mac, sizeof(ret->mac));
}

static int build_link(struct testbed *tb, const struct layout_link *link, struct err *err)
{
        const struct layout_end *ends = link->ends;
        struct link_end described[2];
        int r;

        for (unsigned i = 0; i < 2; i++)
                describe_end(&ends[i], &described[i]);
        if (link->is_uplink && tb->topology->scheduler == TOPOLOGY_TREE_PER_QUEUE) {
                described[LAYOUT_LOWER].n_tx_queues = (uint32_t)tb->topology->n_slices;
                described[LAYOUT_UPPER].n_rx_queues = (uint32_t)tb->topology->n_slices;
        }
        r = link_add_veth(end_netlink(tb, &ends[LAYOUT_LOWER]), &described[LAYOUT_LOWER], &described[LAYOUT_UPPER],
                          &tb->nodes[ends[LAYOUT_UPPER].node].ns, err);
        for (unsigned i = 0; r >= 0 && i < 2; i++)
                r = link_set_gso_max_segs(end_netlink(tb, &ends[i]), ends[i].ifindex, 1, err);
        for (unsigned i = 0; r >= 0 && i < 2; i++)
                r = link_set_up(end_netlink(tb, &ends[i]), ends[i].ifindex, true, err);
        return r;
}

static int build_vlan(struct netlink *nl, const struct layout_end *on, uint16_t vlan, int *ret, struct err *err)
{
        char name[24];
        int r;

        snprintf(name, sizeof(name), "%s.%u", on->device, vlan);
        r = link_add_vlan(nl, on->ifindex, name, vlan, err);
        if (r >= 0)
                r = link_find(nl, name, ret, err);
        return r < 0 ? r : link_set_up(nl, *ret, true, err);
}

/* The device that has the addresses of @subnet at @end: a VLAN device on the link; or the link itself, where the kernel
 * has no VLAN devices, which the first attempt finds out. */
static int build_device(struct testbed *tb, const struct layout_subnet *subnet, unsigned end, int *ret, struct err *err)
{
        const struct layout_end *on = &tb->layout->links[subnet->link].ends[end];
        struct err why = {0};
        int r;

        *ret = on->ifindex;
        if (tb->mechanism.tagger != TESTBED_TAGGER_8021Q)
                return 0;
        r = build_vlan(end_netlink(tb, on), on, subnet->vlan, ret, &why);
        if (r >= 0)
                return 0;
        if (r == -EOPNOTSUPP && subnet == tb->layout->subnets && end == LAYOUT_LOWER) {
                tb->mechanism.tagger = TESTBED_TAGGER_BPF;
                return 0;
        }
        if (err)
                *err = why;
        return r;
}

static int build_addresses(struct testbed *tb, size_t index, unsigned end, int family, struct err *err)
{
        const struct layout_subnet *subnet = &tb->layout->subnets[index];
        struct netlink *nl = end_netlink(tb, &tb->layout->links[subnet->link].ends[end]);
        unsigned length_bits = family == AF_INET ? LAYOUT_LINK_PREFIX4 : LAYOUT_LINK_PREFIX6;
        struct ip_prefix own = layout_address_prefix(&subnet->ends[end], family, length_bits);
        struct ip_prefix peer = layout_address_prefix(&subnet->ends[!end], family, length_bits);
        int r;

        r = ip_address_add(nl, tb->devices[index][end], &own, err);
        return r < 0 ? r : ip_neighbour_add(nl, tb->devices[index][end], &peer, subnet->ends[!end].mac, err);
}

static int build_subnet(struct testbed *tb, size_t index, struct err *err)
{
        int r;

        for (unsigned end = 0; end < 2; end++) {
                r = build_device(tb, &tb->layout->subnets[index], end, &tb->devices[index][end], err);
                if (r >= 0)
                        r = build_addresses(tb, index, end, AF_INET, err);
                if (r >= 0)
                        r = build_addresses(tb, index, end, AF_INET6, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int build_route(struct testbed *tb, const struct layout_route *route, int family, struct err *err)
{
        const struct layout *l = tb->layout;
        const struct layout_subnet *to = &l->subnets[route->to];
        unsigned host_bits = family == AF_INET ? 32 : 128;
        struct ip_prefix network = route->to_slice ? layout_slice_network(to, family) : layout_link_network(to, family);
        struct ip_prefix via = layout_address_prefix(&route->via, family, host_bits), source;
        unsigned end = l->links[route->link].ends[LAYOUT_LOWER].node == route->node ? LAYOUT_LOWER : LAYOUT_UPPER;

        for (size_t i = 0; i < l->n_subnets; i++)
                if (l->subnets[i].link == route->link && l->subnets[i].slice == route->slice) {
                        source = layout_address_prefix(&l->subnets[i].ends[end], family, host_bits);
                        return ip_route_add(tb->nodes[route->node].nl, tb->devices[i][end], &network, &via, &source,
                                            err);
                }
        return err_set(err, ERR_BUG, EINVAL, "a route of %s leaves by a link without its slice",
                       l->nodes[route->node].name);
}

/* Both ends of every link, and every address: what is sent before is lost. */
static int wait_ready(struct testbed *tb, struct err *err)
{
        const struct layout *l = tb->layout;
        int r;

        for (size_t i = 0; i < l->n_links; i++)
                for (unsigned end = 0; end < 2; end++) {
                        const struct layout_end *at = &l->links[i].ends[end];

                        r = link_wait_running(end_netlink(tb, at), at->ifindex, WAIT_READY_NS, err);
                        if (r < 0)
                                return r;
                }
        for (size_t i = 0; i < l->n_subnets; i++)
                for (unsigned end = 0; end < 2; end++) {
                        const struct layout_subnet *subnet = &l->subnets[i];
                        struct ip_prefix own = layout_address_prefix(&subnet->ends[end], AF_INET6, LAYOUT_LINK_PREFIX6);

                        r = ip_address_wait(end_netlink(tb, &l->links[subnet->link].ends[end]), &own, WAIT_READY_NS,
                                            err);
                        if (r < 0)
                                return r;
                }
        return 0;
}

int cable_build_all(struct testbed *tb, struct err *err)
{
        const struct layout *l = tb->layout;
        int r;

        tb->devices = calloc(l->n_subnets, sizeof(*tb->devices));
        if (!tb->devices)
                return err_set_nomem(err);
        for (size_t i = 0; i < l->n_links; i++) {
                r = build_link(tb, &l->links[i], err);
                if (r < 0) {
                        err_prefix(err, "link %s", l->links[i].name);
                        return r;
                }
        }
        for (size_t i = 0; i < l->n_subnets; i++) {
                r = build_subnet(tb, i, err);
                if (r < 0) {
                        err_prefix(err, "link %s", l->links[l->subnets[i].link].name);
                        return r;
                }
        }
        for (size_t i = 0; i < l->n_routes; i++) {
                r = build_route(tb, &l->routes[i], AF_INET, err);
                if (r >= 0)
                        r = build_route(tb, &l->routes[i], AF_INET6, err);
                if (r < 0) {
                        err_prefix(err, "%s", l->nodes[l->routes[i].node].name);
                        return r;
                }
        }
        return wait_ready(tb, err);
}
