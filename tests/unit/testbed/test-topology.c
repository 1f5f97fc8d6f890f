/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

static void reads_exp_001(void **state)
{
        _cleanup_topology_ struct topology *t = topology_of(NULL);
        size_t i;

        assert_int_equal(t->shape, TOPOLOGY_STAR);
        assert_int_equal(t->scheduler, TOPOLOGY_TREE);
        assert_int_equal(t->hops, 1);
        assert_int_equal(t->uplink_rate_bps, 500000000);
        assert_int_equal(t->n_slices, 2);
        assert_int_equal(t->n_zones, 3);
        assert_string_equal(t->slices[0].name, "adas");
        assert_int_equal(t->slices[0].vlan, 10);
        assert_int_equal(t->slices[0].guarantee_bps, 100000000);
        assert_int_equal(t->slices[0].ceiling_bps, 500000000);
        assert_int_equal(t->slices[0].priority, 0);
        assert_int_equal(t->slices[0].queue_limit_packets, 100);
        assert_int_equal(t->slices[1].priority, 1);
        assert_int_equal(t->slices[1].queue_limit_packets, 1000);
        assert_int_equal(topology_shared_leaf_packets(t), 1000);
        assert_int_equal(t->zones[0].slices, 1);
        assert_int_equal(t->zones[1].slices, 2);
        assert_int_equal(t->zones[2].slices, 3);
        assert_true(topology_zone_find(t, "central-hpc", &i));
        assert_int_equal(i, 2);
        assert_int_equal(t->uplink_to, 2);
        assert_false(topology_zone_find(t, "rear-left", &i));
        assert_true(topology_slice_find(t, "infotainment", &i));
        assert_int_equal(i, 1);
        assert_false(topology_slice_find(t, "ota", &i));
}

static void reads_other_shapes(void **state)
{
        _cleanup_topology_ struct topology *chain =
                topology_of(EDITS("topology: star", "topology: daisy-chain\nhops: 3"));
        _cleanup_topology_ struct topology *direct = topology_of(EDITS("topology: star", "topology: direct"));
        _cleanup_topology_ struct topology *defaults =
                topology_of(EDITS("topology: star\n", "", ", scheduler: tree", "", ", priority: 1", ""));

        assert_int_equal(chain->shape, TOPOLOGY_DAISY_CHAIN);
        assert_int_equal(chain->hops, 3);
        assert_int_equal(direct->shape, TOPOLOGY_DIRECT);
        assert_int_equal(direct->hops, 0);
        assert_int_equal(defaults->shape, TOPOLOGY_STAR);
        assert_int_equal(defaults->scheduler, TOPOLOGY_TREE);
        assert_int_equal(defaults->slices[1].priority, 0);
}

static void limits_are_inclusive(void **state)
{
        _cleanup_topology_ struct topology *full =
                topology_of(EDITS("guarantee: 100mbit", "guarantee: 150mbit", "vlan: 10", "vlan: 1", "vlan: 20",
                                  "vlan: 4094", "priority: 1", "priority: 7"));
        _cleanup_topology_ struct topology *strict =
                topology_of(EDITS("scheduler: tree", "scheduler: tree-per-queue", "ceiling: 500mbit",
                                  "ceiling: 100mbit", "ceiling: 500mbit", "ceiling: 400mbit"));

        assert_int_equal(full->slices[1].vlan, 4094);
        assert_int_equal(strict->scheduler, TOPOLOGY_TREE_PER_QUEUE);
}

static const struct {
        const char *edits[5];
        const char *error;
} bad[] = {
        {{"guarantee: 100mbit", "guarantee: 151mbit"},
         "m.yaml:5:39: slice infotainment: the guarantees up to here add up to 501mbit, more than the uplink's rate of "
         "500mbit"},
        {{"ceiling: 500mbit", "ceiling: 501mbit"},
         "m.yaml:4:57: slice adas: its ceiling of 501mbit is above the uplink's rate of 500mbit"},
        {{"ceiling: 500mbit", "ceiling: 99mbit"},
         "m.yaml:4:39: slice adas: its guarantee of 100mbit is above its ceiling of 99mbit"},
        {{"scheduler: tree", "scheduler: tree-per-queue"},
         "m.yaml:5:57: slice infotainment: the ceilings up to here add up to 1gbit, more than the uplink's rate of "
         "500mbit; the trees of tree-per-queue lend each other nothing"},
        {{"vlan: 20", "vlan: 10"},
         "m.yaml:5:24: slice infotainment: VLAN 10 is already that of slice adas; give each slice its own"},
        {{"vlan: 10", "vlan: 0"}, "m.yaml:4:24: boundary.slices.adas.vlan: 0 is out of range, expected 1 to 4094"},
        {{"vlan: 10", "vlan: 4095"},
         "m.yaml:4:24: boundary.slices.adas.vlan: 4095 is out of range, expected 1 to 4094"},
        {{"priority: 0", "priority: 8"},
         "m.yaml:4:76: boundary.slices.adas.priority: 8 is out of range, expected 0 to 7"},
        {{"to: central-hpc", "to: rear-left"}, "m.yaml:2:14: uplink: there is no zone named rear-left"},
        {{"front-left:  {slices: [adas]}", "front-left:  {slices: [ota]}"},
         "m.yaml:7:26: zone front-left: there is no slice named ota"},
        {{"front-left:  {slices: [adas]}", "front-left:  {slices: []}"},
         "m.yaml:7:25: zone front-left: it carries no slice"},
        {{"[adas, infotainment]", "[adas]"},
         "m.yaml:9:25: zone central-hpc: it is behind the uplink, and does not carry slice infotainment"},
        {{"rear-right:  {slices: [infotainment]}", "rear-right:  {slices: [adas]}"},
         "m.yaml:5:17: slice infotainment: no zone but central-hpc carries it, so nothing can cross the uplink in it"},
        {{"  front-left:  {slices: [adas]}", "  gateway:  {slices: [adas]}"},
         "m.yaml:7:3: zone gateway: the name is reserved for the testbed's own nodes and links"},
        {{"  front-left:  {slices: [adas]}", "  relay-1:  {slices: [adas]}"},
         "m.yaml:7:3: zone relay-1: the name is reserved for the testbed's own nodes and links"},
        {{"topology: star", "topology: daisy-chain"},
         "m.yaml:1:11: topology daisy-chain: `hops` is missing; say how many nodes forward, 1 to 16"},
        {{"topology: star", "topology: daisy-chain\nhops: 0"},
         "m.yaml:2:7: boundary.hops: 0 is out of range, expected 1 to 16"},
        {{"topology: star", "topology: daisy-chain\nhops: 17"},
         "m.yaml:2:7: boundary.hops: 17 is out of range, expected 1 to 16"},
        {{"topology: star", "topology: direct\nhops: 1"},
         "m.yaml:2:7: hops: only topology daisy-chain has them, this is direct"},
        {{"rear-right:  {slices: [infotainment]}\n", "\n", "front-left:  {slices: [adas]}", "\n"},
         "m.yaml:10:3: zones: there are 1; 2 to 64 are possible"},
};

static void refuses_what_is_wrong(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                _cleanup_free_ char *text = edited(exp_001, bad[i].edits);
                struct topology *t = NULL;
                struct err err = {0};
                char message[1024];

                assert_int_equal(read_topology(text, &t, &err), -EINVAL);
                assert_null(t);
                assert_int_equal(err.kind, ERR_USAGE);
                err_format(&err, message, sizeof(message));
                assert_string_equal(message, bad[i].error);
        }
}

static void refuses_too_many(void **state)
{
        static const struct {
                size_t n_slices, n_zones;
                const char *error;
        } cases[] = {
                {32, 8, NULL},
                {4, 64, NULL},
                {5, 52, "zones: all links together carry 260 slices; 256 are possible"},
                {33, 2, "slices: there are 33; 1 to 32 are possible"},
                {1, 65, "zones: there are 65; 2 to 64 are possible"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *text = many(cases[i].n_slices, cases[i].n_zones, 1);
                _cleanup_topology_ struct topology *t = NULL;
                struct err err = {0};
                int r = read_topology(text, &t, &err);

                assert_int_equal(r, cases[i].error ? -EINVAL : 0);
                if (cases[i].error)
                        assert_string_equal(err.text, cases[i].error);
        }
}

/* ---- traffic ---- */

struct flow_case {
        const char *edits[5]; /* of exp_001 */
        const char *keys[2];  /* of at most two flows */
        int64_t rates_mbit[2];
        bool is_overload[2];
        const char *error; /* NULL: it fits */
};

#define PROBE "{from: front-left, to: central-hpc, slice: adas, rate: 0}"
#define LOAD  "{from: rear-right, to: central-hpc, slice: infotainment, rate: 0}"
#define BOTH                                                                                                           \
        {                                                                                                              \
                "rear-right:  {slices: [infotainment]}", "rear-right:  {slices: [adas, infotainment]}"                 \
        }

static const struct flow_case flow_cases[] = {
        {.keys = {PROBE, LOAD}, .rates_mbit = {1, 400}},
        {.keys = {PROBE, LOAD}, .rates_mbit = {0, 500}},
        {.keys = {PROBE, LOAD},
         .rates_mbit = {1, 500},
         .error = "m.yaml:1:64: flow 2: this makes 501mbit in all, above the uplink's rate of 500mbit; add "
                  "`overload: true` if that is meant"},
        {.keys = {LOAD},
         .rates_mbit = {501},
         .error = "m.yaml:1:64: flow 1: this makes 501mbit in all, above slice infotainment's ceiling of 500mbit; add "
                  "`overload: true` if that is meant"},
        {.keys = {LOAD}, .rates_mbit = {600}, .is_overload = {true}},
        {.keys = {PROBE, LOAD}, .rates_mbit = {1, 600}, .is_overload = {false, true}},
        {.edits = {"ceiling: 500mbit", "ceiling: 100mbit"},
         .keys = {PROBE, LOAD},
         .rates_mbit = {101, 300},
         .is_overload = {false, true},
         .error = "m.yaml:1:56: flow 1: this makes 101mbit in all, above slice adas's ceiling of 100mbit; add "
                  "`overload: true` if that is meant"},
        {.edits = {"scheduler: tree", "scheduler: one-queue", "ceiling: 500mbit", "ceiling: 100mbit"},
         .keys = {PROBE, LOAD},
         .rates_mbit = {101, 300}},
        {.keys = {"{from: central-hpc, to: front-left, slice: adas}"}, .rates_mbit = {2000}},
        {.edits = {"topology: star", "topology: direct"}, .keys = {LOAD}, .rates_mbit = {2000}},
        {.keys = {"{from: rear-left, to: central-hpc, slice: adas}"},
         .error = "m.yaml:1:8: flow 1: there is no zone named rear-left"},
        {.keys = {"{from: front-left, to: hpc, slice: adas}"},
         .error = "m.yaml:1:24: flow 1: there is no zone named hpc"},
        {.keys = {"{from: front-left, slice: adas}"}, .error = "m.yaml:1:1: flow 1: `to` has to name a zone"},
        {.keys = {"{from: front-left, to: central-hpc}"}, .error = "m.yaml:1:1: flow 1: `slice` has to name a slice"},
        {.keys = {"{from: front-left, to: front-left, slice: adas}"},
         .error = "m.yaml:1:24: flow 1: `from` and `to` are both front-left"},
        {.keys = {"{from: front-left, to: central-hpc, slice: ota}"},
         .error = "m.yaml:1:44: flow 1: there is no slice named ota"},
        {.keys = {"{from: front-left, to: central-hpc, slice: infotainment}"},
         .error = "m.yaml:1:44: flow 1: zone front-left does not carry slice infotainment"},
        {.keys = {"{from: front-left, to: rear-right, slice: adas}"},
         .error = "m.yaml:1:43: flow 1: zone rear-right does not carry slice adas"},
        {.edits = {"topology: star", "topology: direct", "[infotainment]", "[adas, infotainment]"},
         .keys = {"{from: front-left, to: rear-right, slice: adas}"},
         .error = "m.yaml:1:24: flow 1: topology direct joins zones only to central-hpc, not front-left to "
                  "rear-right"},
};

static void checks_traffic(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(flow_cases); i++) {
                const struct flow_case *c = &flow_cases[i];
                _cleanup_topology_ struct topology *t = topology_of(c->edits);
                struct node *nodes[2] = {0};
                struct topology_flow flows[2];
                struct err err = {0};
                char message[1024];
                size_t n = 0;
                int r;

                for (; n < 2 && c->keys[n]; n++) {
                        assert_int_equal(node_parse(span_of_text(c->keys[n]), "m.yaml", NULL, &nodes[n], &err), 0);
                        flows[n] = (struct topology_flow){
                                .where = n == 0 ? "flow 1" : "flow 2",
                                .keys = nodes[n],
                                .rate_bps = c->rates_mbit[n] * 1000000,
                                .is_overload = c->is_overload[n],
                        };
                }
                r = topology_check_flows(t, flows, n, &err);
                err_format(&err, message, sizeof(message));
                assert_string_equal(message, c->error ? c->error : "");
                assert_int_equal(r, c->error ? -EINVAL : 0);
                node_free(nodes[0]);
                node_free(nodes[1]);
        }
}

/* Rates near the largest number do not wrap around to small ones. */
static void sums_do_not_wrap(void **state)
{
        _cleanup_topology_ struct topology *t = topology_of(EDITS("scheduler: tree", "scheduler: one-queue"));
        _cleanup_node_ struct node *node = NULL;
        struct err err = {0};
        struct topology_flow flows[3];

        assert_int_equal(node_parse(span_of_text(LOAD), "m.yaml", NULL, &node, &err), 0);
        for (size_t i = 0; i < 3; i++)
                flows[i] = (struct topology_flow){.where = "f", .keys = node, .rate_bps = i == 0 ? 0 : INT64_MAX};
        assert_int_equal(topology_check_flows(t, flows, 3, &err), -EINVAL);
}

static void names_are_those_of_the_manifest(void **state)
{
        assert_string_equal(topology_shape_name(TOPOLOGY_DAISY_CHAIN), "daisy-chain");
        assert_string_equal(topology_scheduler_name(TOPOLOGY_TREE_PER_QUEUE), "tree-per-queue");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_exp_001),        cmocka_unit_test(reads_other_shapes),
                cmocka_unit_test(limits_are_inclusive), cmocka_unit_test(refuses_what_is_wrong),
                cmocka_unit_test(refuses_too_many),     cmocka_unit_test(checks_traffic),
                cmocka_unit_test(sums_do_not_wrap),     cmocka_unit_test(names_are_those_of_the_manifest),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
