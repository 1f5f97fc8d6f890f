/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <arpa/inet.h>

static struct layout *layout_of(const struct topology *t)
{
        struct layout *l = NULL;
        struct err err = {0};

        if (layout_make(t, &l, &err) < 0)
                fail_msg("%s", err.text);
        return l;
}

static void assert_address(const struct layout_address *a, const char *in4, const char *in6)
{
        char text[INET6_ADDRSTRLEN];

        assert_non_null(a);
        assert_string_equal(inet_ntop(AF_INET, &a->in4, text, sizeof(text)), in4);
        assert_string_equal(inet_ntop(AF_INET6, &a->in6, text, sizeof(text)), in6);
}

static void star_is_laid_out(void **state)
{
        _cleanup_topology_ struct topology *t = topology_of(NULL);
        _cleanup_layout_ struct layout *l = layout_of(t);
        size_t i;

        assert_int_equal(l->n_nodes, 4);
        assert_string_equal(l->nodes[3].name, "gateway");
        assert_true(l->nodes[3].is_forwarder);
        assert_int_equal(l->n_links, 3);
        assert_string_equal(l->links[0].name, "front-left");
        assert_string_equal(l->links[2].name, "uplink");
        assert_true(l->links[2].is_uplink);
        assert_int_equal(l->links[2].ends[LAYOUT_LOWER].node, 3);
        assert_int_equal(l->links[2].ends[LAYOUT_UPPER].node, 2);
        assert_string_equal(l->links[2].ends[LAYOUT_LOWER].device, "eth2");
        assert_string_equal(l->links[2].ends[LAYOUT_UPPER].device, "eth0");
        assert_int_equal(l->n_subnets, 4);
        assert_int_equal(l->n_routes, 4); /* each zone's way into each of its slices */

        /* slice << 12 | link << 2 | host, by hand */
        assert_address(layout_zone_address(l, 0, 0), "198.18.0.1", "2001:2::1");
        assert_address(layout_zone_address(l, 1, 1), "198.18.16.5", "2001:2:0:1::1:1");
        assert_address(layout_zone_address(l, 2, 0), "198.18.0.10", "2001:2::2:2");
        assert_address(layout_zone_address(l, 2, 1), "198.18.16.10", "2001:2:0:1::2:2");
        assert_null(layout_zone_address(l, 0, 1));

        assert_true(layout_link_find(l, "central-hpc", &i));
        assert_int_equal(i, 2);
        assert_true(layout_link_find(l, "rear-right", &i));
        assert_int_equal(i, 1);
        assert_false(layout_link_find(l, "gateway", &i));
        assert_true(layout_node_find(l, "gateway", &i));
        assert_int_equal(i, 3);
}

/* One packet's way by the routes alone, as forwarding will take it: nodes that it visits, until its address is local.
 */
static size_t follow(const struct layout *l, size_t node, size_t slice, const struct layout_address *to)
{
        size_t n = 0;

        for (; n < LAYOUT_NODES_MAX; n++) {
                size_t next = SIZE_MAX, out = SIZE_MAX;

                for (size_t i = 0; i < l->n_subnets; i++) { /* on a link of this node */
                        const struct layout_subnet *s = &l->subnets[i];
                        const struct layout_end *ends = l->links[s->link].ends;

                        for (unsigned end = 0; end < 2; end++)
                                if (ends[end].node == node && s->slice == slice) {
                                        if (s->ends[end].in4.s_addr == to->in4.s_addr)
                                                return n;
                                        if (s->ends[!end].in4.s_addr == to->in4.s_addr)
                                                next = ends[!end].node;
                                }
                }
                for (size_t i = 0; next == SIZE_MAX && i < l->n_routes; i++) { /* the longer prefix first */
                        const struct layout_route *r = &l->routes[i];

                        if (r->node == node && r->slice == slice && !r->to_slice &&
                            (ntohl(l->subnets[r->to].ends[0].in4.s_addr) ^ ntohl(to->in4.s_addr)) >> 2 == 0)
                                out = r->link;
                }
                for (size_t i = 0; next == SIZE_MAX && out == SIZE_MAX && i < l->n_routes; i++)
                        if (l->routes[i].node == node && l->routes[i].slice == slice && l->routes[i].to_slice)
                                out = l->routes[i].link;
                if (next == SIZE_MAX) {
                        if (out == SIZE_MAX)
                                return SIZE_MAX;
                        next = l->links[out].ends[l->links[out].ends[0].node == node].node;
                }
                node = next;
        }
        return SIZE_MAX;
}

/* Every two zones that share a slice reach each other, over as many nodes as layout_path() says. */
static void routes_lead_where_paths_say(void **state)
{
        const char *const *shapes[] = {
                NULL,
                EDITS("topology: star", "topology: daisy-chain\nhops: 1"),
                EDITS("topology: star", "topology: daisy-chain\nhops: 2"),
                EDITS("topology: star", "topology: daisy-chain\nhops: 3"),
                EDITS("topology: star", "topology: daisy-chain\nhops: 16"),
                EDITS("topology: star", "topology: direct"),
                EDITS("topology: star", "topology: daisy-chain\nhops: 3", "to: central-hpc", "to: front-left",
                      "front-left:  {slices: [adas]}", "front-left:  {slices: [adas, infotainment]}"),
        };
        const unsigned hops[] = {1, 1, 2, 3, 16, 0, 3};

        for (size_t shape = 0; shape < ARRAY_SIZE(shapes); shape++) {
                _cleanup_topology_ struct topology *t = topology_of(shapes[shape]);
                _cleanup_layout_ struct layout *l = layout_of(t);
                size_t n_pairs = 0;

                for (size_t from = 0; from < t->n_zones; from++)
                        for (size_t to = 0; to < t->n_zones; to++)
                                for (size_t slice = 0; slice < t->n_slices; slice++) {
                                        uint32_t common = t->zones[from].slices & t->zones[to].slices;
                                        struct layout_step steps[LAYOUT_PATH_MAX];
                                        bool is_long = from == t->uplink_to || to == t->uplink_to;
                                        size_t n;

                                        if (from == to || !(common >> slice & 1))
                                                continue;
                                        n = layout_path(l, from, to, steps);
                                        assert_int_equal(n, is_long ? hops[shape] + 1 : 2);
                                        assert_int_equal(follow(l, from, slice, layout_zone_address(l, to, slice)), n);
                                        n_pairs++;
                                }
                assert_true(n_pairs >= 4);
        }
}

static void chain_crosses_relays_in_order(void **state)
{
        _cleanup_topology_ struct topology *t = topology_of(EDITS("topology: star", "topology: daisy-chain\nhops: 3"));
        _cleanup_layout_ struct layout *l = layout_of(t);
        struct layout_step steps[LAYOUT_PATH_MAX];
        const char *const up[] = {"front-left", "relay-1", "relay-2", "uplink"};

        assert_int_equal(layout_path(l, 0, 2, steps), 4);
        for (size_t i = 0; i < 4; i++) {
                assert_string_equal(l->links[steps[i].link].name, up[i]);
                assert_true(steps[i].is_upward);
        }
        assert_int_equal(layout_path(l, 2, 0, steps), 4);
        for (size_t i = 0; i < 4; i++) {
                assert_string_equal(l->links[steps[i].link].name, up[3 - i]);
                assert_false(steps[i].is_upward);
        }
        assert_int_equal(layout_path(l, 0, 1, steps), 2); /* both hang on the first relay */
        assert_true(steps[0].is_upward);
        assert_false(steps[1].is_upward);
        assert_int_equal(layout_path(l, 1, 1, steps), 0);
}

static void direct_has_no_gateway(void **state)
{
        _cleanup_topology_ struct topology *t = topology_of(EDITS("topology: star", "topology: direct"));
        _cleanup_layout_ struct layout *l = layout_of(t);
        struct layout_step steps[LAYOUT_PATH_MAX];
        size_t i;

        assert_int_equal(l->n_nodes, 3);
        assert_int_equal(l->n_links, 2);
        assert_false(layout_node_find(l, "gateway", &i));
        for (i = 0; i < l->n_links; i++) {
                assert_false(l->links[i].is_uplink);
                assert_int_equal(l->links[i].ends[LAYOUT_UPPER].node, 2);
        }
        assert_int_equal(layout_path(l, 0, 1, steps), 0);
}

/* Over the largest topology: no two link ends share a MAC, an interface index or an address. */
static void nothing_is_given_twice(void **state)
{
        struct topology_slice slices[TOPOLOGY_SLICES_MAX] = {0};
        struct topology_zone zones[TOPOLOGY_ZONES_MAX] = {0};
        struct topology t = {.shape = TOPOLOGY_DAISY_CHAIN,
                             .hops = TOPOLOGY_HOPS_MAX,
                             .uplink_to = TOPOLOGY_ZONES_MAX - 1,
                             .n_slices = TOPOLOGY_SLICES_MAX,
                             .n_zones = TOPOLOGY_ZONES_MAX,
                             .slices = slices,
                             .zones = zones};
        _cleanup_layout_ struct layout *l = NULL;
        _cleanup_free_ uint8_t *seen = calloc(1, 1 << 17);

        for (size_t i = 0; i < TOPOLOGY_ZONES_MAX; i++)
                zones[i] = (struct topology_zone){.name = (char *)"z", .slices = UINT32_MAX};
        for (size_t i = 0; i < TOPOLOGY_SLICES_MAX; i++)
                slices[i].vlan = (uint16_t)(i + 1);
        l = layout_of(&t);
        assert_int_equal(l->n_nodes, LAYOUT_NODES_MAX);
        assert_int_equal(l->n_links, LAYOUT_LINKS_MAX);
        for (size_t i = 0; i < l->n_subnets; i++)
                for (unsigned end = 0; end < 2; end++) {
                        const struct layout_address *a = &l->subnets[i].ends[end];
                        uint32_t offset = ntohl(a->in4.s_addr) - 0xc6120000u;

                        assert_true(offset < 1 << 17);
                        assert_false(seen[offset]);
                        seen[offset] = 1;
                        assert_int_equal(offset >> 12, l->subnets[i].slice);
                        assert_memory_equal(a->mac, l->links[l->subnets[i].link].ends[end].mac, 6);
                        for (size_t j = 0; j < i; j++)
                                assert_memory_not_equal(&a->in6, &l->subnets[j].ends[end].in6, 16);
                }
        for (size_t i = 0; i < l->n_links; i++)
                for (size_t j = 0; j <= i; j++) {
                        assert_memory_not_equal(l->links[i].ends[0].mac, l->links[j].ends[1].mac, 6);
                        assert_int_not_equal(l->links[i].ends[0].ifindex, l->links[j].ends[1].ifindex);
                        if (i != j)
                                assert_memory_not_equal(l->links[i].ends[0].mac, l->links[j].ends[0].mac, 6);
                }
}

static void same_topology_same_layout(void **state)
{
        _cleanup_topology_ struct topology *t = topology_of(NULL);
        _cleanup_layout_ struct layout *a = layout_of(t), *b = layout_of(t);

        assert_memory_equal(a->subnets, b->subnets, a->n_subnets * sizeof(*a->subnets));
        assert_memory_equal(a->links, b->links, a->n_links * sizeof(*a->links));
}

/* ---- the join ---- */

enum corruption { VLAN, LINK, ADDRESS4, ADDRESS6, MAC, MISSING_ZONE, MISSING_GATEWAY, TWICE, SWAPPED };

static void corrupt(struct layout_plan *gateway, struct layout_plan *zones, enum corruption how)
{
        switch (how) {
        case VLAN:
                gateway->ports[1].vlan++;
                break;
        case LINK:
                zones->ports[1].link++;
                break;
        case ADDRESS4:
                zones->ports[1].own.in4.s_addr ^= htonl(4);
                break;
        case ADDRESS6:
                gateway->ports[1].own.in6.s6_addr[15] ^= 1;
                break;
        case MAC:
                zones->ports[1].peer.mac[5] ^= 1;
                break;
        case MISSING_ZONE:
                zones->ports[1] = zones->ports[--zones->n];
                break;
        case MISSING_GATEWAY:
                gateway->ports[1] = gateway->ports[--gateway->n];
                break;
        case TWICE:
                zones->ports[0] = zones->ports[1];
                break;
        case SWAPPED: { /* the order does not matter: identity does */
                struct layout_port port = zones->ports[0];

                zones->ports[0] = zones->ports[1];
                zones->ports[1] = port;
                break;
        }
        }
}

static void plans_that_do_not_fit_are_refused(void **state)
{
        static const struct {
                enum corruption how;
                const char *error;
        } cases[] = {
                {VLAN, "zone rear-right, slice infotainment: they say different VLANs"},
                {LINK, "zone rear-right, slice infotainment: they say different links"},
                {ADDRESS4, "zone rear-right, slice infotainment: they say different addresses"},
                {ADDRESS6, "zone rear-right, slice infotainment: they say different addresses"},
                {MAC, "zone rear-right, slice infotainment: they say different addresses"},
                {MISSING_ZONE, "zone rear-right, slice infotainment: the zones' has no such port"},
                {MISSING_GATEWAY, "zone rear-right, slice infotainment: the gateway's has no such port"},
                {TWICE, "zone front-left, slice adas: the zones' has no such port"},
                {SWAPPED, NULL},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_topology_ struct topology *t = topology_of(NULL);
                _cleanup_layout_ struct layout *l = NULL;
                struct layout_plan gateway, zones;
                struct err err = {0};
                int r;

                assert_int_equal(layout_gateway_plan(t, &gateway, &err), 0);
                assert_int_equal(layout_zone_plan(t, &zones, &err), 0);
                assert_int_equal(gateway.n, 4);
                corrupt(&gateway, &zones, cases[i].how);
                r = layout_join(t, &gateway, &zones, &l, &err);
                layout_plan_done(&gateway);
                layout_plan_done(&zones);
                if (!cases[i].error) {
                        assert_int_equal(r, 0);
                        continue;
                }
                assert_int_equal(r, -EINVAL);
                assert_int_equal(err.kind, ERR_BUG);
                assert_string_equal(strstr(err.text, "zone "), strstr(cases[i].error, "zone "));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(star_is_laid_out),
                cmocka_unit_test(routes_lead_where_paths_say),
                cmocka_unit_test(chain_crosses_relays_in_order),
                cmocka_unit_test(direct_has_no_gateway),
                cmocka_unit_test(nothing_is_given_twice),
                cmocka_unit_test(same_topology_same_layout),
                cmocka_unit_test(plans_that_do_not_fit_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
