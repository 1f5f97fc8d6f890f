/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed/layout.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macro.h"

static bool has_slice(uint32_t slices, size_t slice)
{
        return slices & UINT32_C(1) << slice;
}

static void mac_of(size_t link, unsigned end, uint8_t ret[6])
{
        /* locally administered, unicast */
        const uint8_t mac[6] = {0x02, 0xa5, 0x5a, (uint8_t)(link >> 8), (uint8_t)link, (uint8_t)(end + 1)};

        memcpy(ret, mac, sizeof(mac));
}

static struct layout_address address_of(size_t slice, size_t link, unsigned end)
{
        struct layout_address a = {
                .in4.s_addr = htonl(UINT32_C(0xc6120000) | (uint32_t)slice << 12 | (uint32_t)link << 2 | (end + 1)),
                .in6.s6_addr = {0x20, 0x01, 0x00, 0x02},
        };

        put_be16(&a.in6.s6_addr[6], (uint16_t)slice);
        put_be16(&a.in6.s6_addr[12], (uint16_t)link);
        put_be16(&a.in6.s6_addr[14], (uint16_t)(end + 1));
        mac_of(link, end, a.mac);
        return a;
}

/* Without a gateway, uplink.to has no link of its own: the others' end there. */
static bool has_own_link(const struct topology *t, size_t zone)
{
        return t->shape != TOPOLOGY_DIRECT || zone != t->uplink_to;
}

void layout_plan_done(struct layout_plan *plan)
{
        free(plan->ports);
        *plan = (struct layout_plan){0};
}

/* The walk that both plans are made by: what @is_gateway's side of every link says of itself and of its peer. */
static int plan_walk(const struct topology *t, bool is_gateway, struct layout_plan *ret, struct err *err)
{
        size_t link = 0;

        ret->n = 0;
        ret->ports = calloc(t->n_zones * t->n_slices, sizeof(*ret->ports));
        if (!ret->ports)
                return err_set_nomem(err);
        for (size_t zone = 0; zone < t->n_zones; zone++) {
                unsigned own = (zone == t->uplink_to) == is_gateway ? LAYOUT_LOWER : LAYOUT_UPPER;

                if (!has_own_link(t, zone))
                        continue;
                for (size_t slice = 0; slice < t->n_slices; slice++)
                        if (has_slice(t->zones[zone].slices, slice))
                                ret->ports[ret->n++] = (struct layout_port){
                                        .zone = zone,
                                        .slice = slice,
                                        .link = link,
                                        .vlan = t->slices[slice].vlan,
                                        .own = address_of(slice, link, own),
                                        .peer = address_of(slice, link, !own),
                                };
                link++;
        }
        return 0;
}

int layout_zone_plan(const struct topology *t, struct layout_plan *ret, struct err *err)
{
        return plan_walk(t, false, ret, err);
}

int layout_gateway_plan(const struct topology *t, struct layout_plan *ret, struct err *err)
{
        return plan_walk(t, true, ret, err);
}

void layout_free(struct layout *l)
{
        if (!l)
                return;
        free(l->nodes);
        free(l->links);
        free(l->subnets);
        free(l->routes);
        free(l);
}

/* A mismatch is a fault of this program, whichever manifest brought it to light. */
static int mismatch(const struct topology *t, const struct layout_port *port, const char *what, struct err *err)
{
        return err_set(err, ERR_BUG, EINVAL, "the plans of gateway and zones do not fit at zone %s, slice %s: %s",
                       t->zones[port->zone].name, t->slices[port->slice].name, what);
}

static bool address_equal(const struct layout_address *a, const struct layout_address *b)
{
        return memcmp(a->mac, b->mac, sizeof(a->mac)) == 0 && a->in4.s_addr == b->in4.s_addr &&
               memcmp(&a->in6, &b->in6, sizeof(a->in6)) == 0;
}

static const struct layout_port *port_find(const struct layout_plan *plan, const struct layout_port *like,
                                           size_t *ret_n)
{
        const struct layout_port *found = NULL;

        *ret_n = 0;
        for (size_t i = 0; i < plan->n; i++)
                if (plan->ports[i].zone == like->zone && plan->ports[i].slice == like->slice) {
                        found = &plan->ports[i];
                        (*ret_n)++;
                }
        return found;
}

static int check_port(const struct topology *t, const struct layout_plan *gateway, const struct layout_plan *zones,
                      const struct layout_port *like, struct err *err)
{
        const struct layout_port *g, *z;
        size_t n;

        g = port_find(gateway, like, &n);
        if (n != 1)
                return mismatch(t, like, n == 0 ? "the gateway's has no such port" : "the gateway's has it twice", err);
        z = port_find(zones, like, &n);
        if (n != 1)
                return mismatch(t, like, n == 0 ? "the zones' has no such port" : "the zones' has it twice", err);
        if (g->link != z->link)
                return mismatch(t, like, "they say different links", err);
        if (g->vlan != z->vlan)
                return mismatch(t, like, "they say different VLANs", err);
        if (!address_equal(&g->own, &z->peer) || !address_equal(&g->peer, &z->own))
                return mismatch(t, like, "they say different addresses", err);
        return 0;
}

static int check_plans(const struct topology *t, const struct layout_plan *gateway, const struct layout_plan *zones,
                       struct err *err)
{
        int r;

        for (size_t i = 0; i < gateway->n; i++) {
                r = check_port(t, gateway, zones, &gateway->ports[i], err);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < zones->n; i++) {
                r = check_port(t, gateway, zones, &zones->ports[i], err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void make_nodes(struct layout *l)
{
        const struct topology *t = l->topology;

        for (size_t i = 0; i < t->n_zones; i++)
                snprintf(l->nodes[l->n_nodes++].name, sizeof(l->nodes->name), "%s", t->zones[i].name);
        for (unsigned i = 1; i <= t->hops; i++) {
                struct layout_node *node = &l->nodes[l->n_nodes++];

                node->is_forwarder = true;
                if (i == t->hops)
                        snprintf(node->name, sizeof(node->name), "gateway");
                else
                        snprintf(node->name, sizeof(node->name), "relay-%u", i);
        }
}

static void make_link(struct layout *l, size_t lower, size_t upper, uint32_t slices)
{
        const struct topology *t = l->topology;
        size_t index = l->n_links++;
        struct layout_link *link = &l->links[index];

        link->slices = slices;
        link->is_uplink = t->hops > 0 && upper == t->uplink_to;
        snprintf(link->name, sizeof(link->name), "%s", link->is_uplink ? "uplink" : l->nodes[lower].name);
        for (unsigned i = 0; i < 2; i++) {
                struct layout_end *end = &link->ends[i];

                end->node = i == LAYOUT_LOWER ? lower : upper;
                snprintf(end->device, sizeof(end->device), "eth%zu", l->nodes[end->node].n_links++);
                end->ifindex = (int)(2 + 2 * index + i); /* 1 is each namespace's loopback */
                mac_of(index, i, end->mac);
        }
}

static void make_links(struct layout *l)
{
        const struct topology *t = l->topology;
        size_t first = t->n_zones, gateway = l->n_nodes - 1;
        uint32_t all = 0;

        for (size_t i = 0; i < t->n_zones; i++) {
                uint32_t slices = t->zones[i].slices;

                all |= slices;
                if (!has_own_link(t, i))
                        continue;
                if (t->shape == TOPOLOGY_DIRECT)
                        make_link(l, i, t->uplink_to, slices);
                else if (i == t->uplink_to)
                        make_link(l, gateway, i, slices);
                else
                        make_link(l, i, first, slices);
        }
        for (size_t i = first; i + 1 < l->n_nodes; i++)
                make_link(l, i, i + 1, all);
}

/* Number of the first link between forwarders. */
static size_t first_trunk(const struct layout *l)
{
        const struct topology *t = l->topology;

        return l->n_links - (t->hops > 0 ? t->hops - 1 : 0);
}

static void make_subnets(struct layout *l, const struct layout_plan *gateway)
{
        const struct topology *t = l->topology;
        const struct layout_port *port;

        for (size_t i = 0; i < gateway->n; i++) {
                bool is_upper = gateway->ports[i].zone != t->uplink_to;

                port = &gateway->ports[i];
                l->subnets[l->n_subnets++] = (struct layout_subnet){
                        .link = port->link,
                        .slice = port->slice,
                        .vlan = port->vlan,
                        .ends = {is_upper ? port->peer : port->own, is_upper ? port->own : port->peer},
                };
        }
        for (size_t link = first_trunk(l); link < l->n_links; link++)
                for (size_t slice = 0; slice < t->n_slices; slice++)
                        l->subnets[l->n_subnets++] = (struct layout_subnet){
                                .link = link,
                                .slice = slice,
                                .vlan = t->slices[slice].vlan,
                                .ends = {address_of(slice, link, LAYOUT_LOWER), address_of(slice, link, LAYOUT_UPPER)},
                        };
}

static const struct layout_subnet *subnet_find(const struct layout *l, size_t link, size_t slice)
{
        for (size_t i = 0; i < l->n_subnets; i++)
                if (l->subnets[i].link == link && l->subnets[i].slice == slice)
                        return &l->subnets[i];
        return NULL;
}

/* To subnet number @to, or all of its slice, by link @out, which carries the slice. */
static void add_route(struct layout *l, size_t node, size_t out, size_t to, bool to_slice)
{
        size_t slice = l->subnets[to].slice;
        unsigned peer = l->links[out].ends[LAYOUT_LOWER].node == node ? LAYOUT_UPPER : LAYOUT_LOWER;
        const struct layout_subnet *over = subnet_find(l, out, slice);

        if (!over)
                return;
        l->routes[l->n_routes++] = (struct layout_route){
                .node = node,
                .link = out,
                .slice = slice,
                .to = to,
                .to_slice = to_slice,
                .via = over->ends[peer],
        };
}

/* Every node has one way for what is not on its own links: zones to where they are attached, forwarders down.
 * Forwarders also know the links above the next one up. */
static void make_routes(struct layout *l)
{
        size_t first = l->topology->n_zones, trunks = first_trunk(l);

        for (size_t i = 0; i < l->n_subnets; i++) {
                const struct layout_subnet *s = &l->subnets[i];
                bool is_down = l->links[s->link].is_uplink || s->link >= trunks;

                add_route(l, l->links[s->link].ends[is_down ? LAYOUT_UPPER : LAYOUT_LOWER].node, s->link, i, true);
        }
        for (size_t node = first; node + 1 < l->n_nodes; node++)
                for (size_t i = 0; i < l->n_subnets; i++) {
                        const struct layout_subnet *s = &l->subnets[i];

                        if (l->links[s->link].ends[LAYOUT_LOWER].node > node)
                                add_route(l, node, trunks + (node - first), i, false);
                }
}

static int allocate(struct layout *l, struct err *err)
{
        const struct topology *t = l->topology;
        size_t n_nodes = t->n_zones + t->hops, n_links = t->n_zones + t->hops, n_subnets = n_links * t->n_slices;

        l->nodes = calloc(n_nodes, sizeof(*l->nodes));
        l->links = calloc(n_links, sizeof(*l->links));
        l->subnets = calloc(n_subnets, sizeof(*l->subnets));
        l->routes = calloc(n_subnets + (size_t)t->hops * t->hops * t->n_slices, sizeof(*l->routes));
        return l->nodes && l->links && l->subnets && l->routes ? 0 : err_set_nomem(err);
}

int layout_join(const struct topology *t, const struct layout_plan *gateway, const struct layout_plan *zones,
                struct layout **ret, struct err *err)
{
        _cleanup_layout_ struct layout *l = NULL;
        int r;

        r = check_plans(t, gateway, zones, err);
        if (r < 0)
                return r;
        l = calloc(1, sizeof(*l));
        if (!l)
                return err_set_nomem(err);
        l->topology = t;
        r = allocate(l, err);
        if (r < 0)
                return r;
        make_nodes(l);
        make_links(l);
        make_subnets(l, gateway);
        make_routes(l);
        *ret = TAKE_PTR(l);
        return 0;
}

int layout_make(const struct topology *t, struct layout **ret, struct err *err)
{
        struct layout_plan gateway = {0}, zones = {0};
        int r;

        r = layout_gateway_plan(t, &gateway, err);
        if (r >= 0)
                r = layout_zone_plan(t, &zones, err);
        if (r >= 0)
                r = layout_join(t, &gateway, &zones, ret, err);
        layout_plan_done(&gateway);
        layout_plan_done(&zones);
        return r;
}

bool layout_node_find(const struct layout *l, const char *name, size_t *ret)
{
        for (size_t i = 0; i < l->n_nodes; i++)
                if (streq(l->nodes[i].name, name)) {
                        *ret = i;
                        return true;
                }
        return false;
}

bool layout_link_find(const struct layout *l, const char *name, size_t *ret)
{
        size_t node;

        for (size_t i = 0; i < l->n_links; i++)
                if (streq(l->links[i].name, name)) {
                        *ret = i;
                        return true;
                }
        if (!layout_node_find(l, name, &node) || l->nodes[node].is_forwarder)
                return false;
        for (size_t i = 0; i < l->n_links; i++)
                if (l->links[i].ends[LAYOUT_UPPER].node == node) {
                        *ret = i;
                        return true;
                }
        return false;
}

struct ip_prefix layout_address_prefix(const struct layout_address *a, int family, unsigned length_bits)
{
        struct ip_prefix p = {.family = family, .length_bits = length_bits};

        if (family == AF_INET)
                memcpy(p.bytes, &a->in4, sizeof(a->in4));
        else
                memcpy(p.bytes, &a->in6, sizeof(a->in6));
        return p;
}

/* The network that @a lies in: its bits past the prefix are 0. */
static struct ip_prefix network_of(const struct layout_address *a, int family, unsigned length_bits)
{
        struct ip_prefix p = layout_address_prefix(a, family, length_bits);

        for (unsigned bit = length_bits; bit < sizeof(p.bytes) * 8; bit++)
                p.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
        return p;
}

struct ip_prefix layout_slice_network(const struct layout_subnet *subnet, int family)
{
        return network_of(&subnet->ends[0], family, family == AF_INET ? LAYOUT_SLICE_PREFIX4 : LAYOUT_SLICE_PREFIX6);
}

struct ip_prefix layout_link_network(const struct layout_subnet *subnet, int family)
{
        return network_of(&subnet->ends[0], family, family == AF_INET ? LAYOUT_LINK_PREFIX4 : LAYOUT_LINK_PREFIX6);
}

/* The link by which traffic between two zones reaches or leaves @zone. */
static bool zone_link(const struct layout *l, size_t zone, size_t slice, size_t *ret, unsigned *ret_end)
{
        for (size_t i = 0; i < l->n_links; i++)
                for (unsigned end = 0; end < 2; end++)
                        if (l->links[i].ends[end].node == zone && has_slice(l->links[i].slices, slice)) {
                                *ret = i;
                                *ret_end = end;
                                return true;
                        }
        return false;
}

const struct layout_address *layout_zone_address(const struct layout *l, size_t zone, size_t slice)
{
        const struct layout_subnet *subnet = NULL;
        unsigned end;
        size_t link;

        if (zone_link(l, zone, slice, &link, &end))
                subnet = subnet_find(l, link, slice);
        return subnet ? &subnet->ends[end] : NULL;
}

size_t layout_path(const struct layout *l, size_t from_zone, size_t to_zone, struct layout_step *ret)
{
        const struct topology *t = l->topology;
        size_t trunks = first_trunk(l), n_trunks = l->n_links - trunks, n = 0;
        bool is_upward = to_zone == t->uplink_to, is_downward = from_zone == t->uplink_to;

        if (from_zone == to_zone)
                return 0;
        if (t->shape == TOPOLOGY_DIRECT) {
                size_t other = is_upward ? from_zone : to_zone;

                if (!is_upward && !is_downward)
                        return 0;
                ret[n++] = (struct layout_step){.link = other - (other > t->uplink_to), .is_upward = is_upward};
                return n;
        }
        ret[n++] = (struct layout_step){.link = from_zone, .is_upward = !is_downward};
        for (size_t i = 0; is_upward && i < n_trunks; i++)
                ret[n++] = (struct layout_step){.link = trunks + i, .is_upward = true};
        for (size_t i = n_trunks; is_downward && i > 0; i--)
                ret[n++] = (struct layout_step){.link = trunks + i - 1, .is_upward = false};
        ret[n++] = (struct layout_step){.link = to_zone, .is_upward = is_upward};
        return n;
}
