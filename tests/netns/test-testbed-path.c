/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed-support.h"

#include "sys/qdisc.h"
#include "sys/slice.h"
#include "wire/openmetrics.h"

/* ---- healthy testbeds ---- */

static void every_shape_and_scheduler_is_proven(void **state)
{
        const struct {
                bool needs_bpf;
                const char *const *edits;
        } variants[] = {
                {false, NULL},
                {true, EDITS(PER_QUEUE)},
                {false, EDITS(ONE_QUEUE)},
                {false, EDITS(CHAIN_3)},
                {true, EDITS(CHAIN_3, PER_QUEUE)},
                {false, EDITS(DIRECT)},
                {false, EDITS("queue-limit: 1000p", "queue-limit: 1p", "guarantee: 350mbit", "guarantee: 80kbit",
                              "guarantee: 80kbit, ceiling: 500mbit", "guarantee: 80kbit, ceiling: 80kbit")},
        };

        for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
                struct err err = {0};
                struct text faults = {0};
                struct bed b;

                if (variants[i].needs_bpf && !has_bpf())
                        continue;
                bed_up(&b, variants[i].edits);
                assert_path(&b, NULL);
                assert_path(&b, NULL); /* and again: nothing of the first is in the way */
                assert_int_equal(testbed_check(b.tb, &faults, &err), 0);
                bed_down(&b);
                text_done(&faults);
        }
}

/* What this process may not do is not done in silence. */
static void mechanism_is_named(void **state)
{
        _cleanup_topology_ struct topology *t = topology_of(EDITS(PER_QUEUE));
        struct testbed_mechanism mechanism;
        struct err err = {0};
        struct bed b;

        bed_up(&b, NULL);
        mechanism = testbed_mechanism(b.tb);
        bed_down(&b);
        assert_string_equal(testbed_classifier_name(mechanism.classifier), has_bpf() ? "bpf" : "nftables");
        if (has_bpf()) {
                assert_int_not_equal(mechanism.tagger, TESTBED_TAGGER_NONE);
                assert_ok(testbed_missing(t, &err));
        } else {
                assert_true(testbed_missing(t, &err) < 0);
                assert_int_equal(err.kind, ERR_UNSUPPORTED);
                assert_non_null(strstr(err.text, "scheduler tree-per-queue: loading BPF programs needs CAP_BPF"));
        }
}

/* What a proof finds, in numbers: two families and four packets a flow, each way. */
static void proof_counts_what_it_sent(void **state)
{
        _cleanup_testbed_proof_ struct testbed_proof proof = {0};
        struct err err = {0};
        struct bed b;

        bed_up(&b, EDITS(CHAIN_3));
        assert_ok(testbed_prove(b.tb, &proof, &err));
        assert_int_equal(proof.n_flows, 4);
        for (size_t i = 0; i < proof.n_flows; i++) {
                const struct path_flow *flow = &proof.flows[i];

                assert_int_equal(flow->sent_packets, 8);
                assert_int_equal(flow->arrived_packets, 8);
                assert_int_equal(flow->ttl_min, 255 - 3);
                assert_int_equal(flow->ttl_max, 255 - 3);
        }
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(proof.after.classes[i].sent.packets - proof.before.classes[i].sent.packets, 8);
        bed_down(&b);
}

/* The testbed is silent: with nobody sending, no counter moves, whatever the kernel would like to say. */
static void nothing_is_sent_but_by_request(void **state)
{
        _cleanup_scrape_ struct scrape before = {0}, after = {0};
        struct err err = {0};
        struct bed b;
        int64_t end;

        bed_up(&b, NULL);
        assert_ok(testbed_observe(b.tb, &before, &err));
        for (size_t i = 0; i < before.n_links; i++) {
                assert_int_equal(before.links[i].up.sent.packets, 0);
                assert_int_equal(before.links[i].down.sent.packets, 0);
        }
        end = clock_now_ns(CLOCK_MONOTONIC) + NSEC_PER_SEC; /* reports to multicast routers come within a second */
        clock_sleep_until_ns(CLOCK_MONOTONIC, end, NULL);
        assert_ok(testbed_observe(b.tb, &after, &err));
        assert_memory_equal(before.links, after.links, sizeof(before.links));
        assert_memory_equal(before.refused, after.refused, sizeof(before.refused));
        bed_down(&b);
}

static void counters_are_openmetrics(void **state)
{
        static const struct openmetrics_label uplink[] = {{"link", "uplink"}, {"direction", "up"}},
                                              adas[] = {{"slice", "adas"}};
        _cleanup_openmetrics_ struct openmetrics_set set = {0};
        _cleanup_text_ struct text text = {0};
        _cleanup_scrape_ struct scrape s = {0};
        struct err err = {0};
        int64_t value = 0;
        struct bed b;

        bed_up(&b, NULL);
        assert_path(&b, NULL);
        assert_ok(testbed_observe(b.tb, &s, &err));
        assert_ok(scrape_format(&s, testbed_layout(b.tb), &text, &err));
        assert_ok(openmetrics_parse(span_of(text.data, text.len), "scrape", &set, &err));
        assert_ok(openmetrics_value(&set, "assay_link_packets", uplink, ARRAY_SIZE(uplink), &value));
        assert_int_equal(value, 16);
        assert_ok(openmetrics_value(&set, "assay_class_packets", adas, ARRAY_SIZE(adas), &value));
        assert_int_equal(value, 8);
        bed_down(&b);
}

static void addresses_are_given_out(void **state)
{
        struct err err = {0};
        struct ip_prefix p;
        char buf[IP_TEXT_MAX];
        struct bed b;

        bed_up(&b, NULL);
        assert_ok(testbed_address(b.tb, "central-hpc", "infotainment", AF_INET, &p, &err));
        assert_string_equal(ip_prefix_format(&p, buf), "198.18.16.10/32");
        assert_ok(testbed_address(b.tb, "front-left", "adas", AF_INET6, &p, &err));
        assert_string_equal(ip_prefix_format(&p, buf), "2001:2::1/128");
        assert_int_equal(testbed_address(b.tb, "front-left", "infotainment", AF_INET, &p, &err), -ENOENT);
        assert_string_equal(err.text, "zone front-left does not carry slice infotainment");
        assert_int_equal(testbed_address(b.tb, "trunk", "adas", AF_INET, &p, &err), -ENOENT);
        assert_non_null(testbed_zone_netns(b.tb, "rear-right"));
        assert_null(testbed_zone_netns(b.tb, "trunk"));
        bed_down(&b);
}

/* ---- broken ones, each made from a healthy one by what holds it ---- */

static struct netlink *netlink_to(struct bed *b, size_t node)
{
        struct netlink *nl = NULL;
        struct err err = {0};

        assert_ok(netlink_open(testbed_netns(b->tb, node), &nl, &err));
        return nl;
}

static const struct layout_end *end_of(struct bed *b, const char *link, unsigned end)
{
        size_t i;

        assert_true(layout_link_find(testbed_layout(b->tb), link, &i));
        return &testbed_layout(b->tb)->links[i].ends[end];
}

static void delete_qdisc(struct bed *b, const struct layout_end *end, uint32_t parent)
{
        struct netlink *nl = netlink_to(b, end->node);
        struct err err = {0};

        assert_ok(qdisc_delete(nl, end->ifindex, parent, &err));
        netlink_free(nl);
}

static void break_namespace(struct bed *b)
{
        assert_true(dup2(testbed_zone_netns(b->tb, "front-left")->fd, testbed_zone_netns(b->tb, "central-hpc")->fd) >=
                    0);
}

static void break_tags(struct bed *b)
{
        delete_qdisc(b, end_of(b, "front-left", LAYOUT_LOWER), TC_H_CLSACT);
        delete_qdisc(b, end_of(b, "front-left", LAYOUT_UPPER), TC_H_CLSACT);
}

static void break_sender_tags(struct bed *b)
{
        delete_qdisc(b, end_of(b, "front-left", LAYOUT_LOWER), TC_H_CLSACT);
}

static void break_tree(struct bed *b)
{
        delete_qdisc(b, end_of(b, "uplink", LAYOUT_LOWER), QDISC_ROOT);
}

static void break_link(struct bed *b)
{
        const struct layout_end *end = end_of(b, "front-left", LAYOUT_LOWER);
        struct netlink *nl = netlink_to(b, end->node);
        struct err err = {0};

        assert_ok(link_set_up(nl, end->ifindex, false, &err));
        netlink_free(nl);
}

static void delete_link(struct bed *b)
{
        const struct layout_end *end = end_of(b, "rear-right", LAYOUT_UPPER);
        struct netlink *nl = netlink_to(b, end->node);
        struct err err = {0};

        assert_ok(link_delete(nl, end->ifindex, &err));
        netlink_free(nl);
}

/* The uplink's programs replaced by others that give every slice's packets the class of the next. */
static void break_classes(struct bed *b)
{
        const struct layout *l = testbed_layout(b->tb);
        const struct layout_end *end = end_of(b, "uplink", LAYOUT_LOWER);
        struct netlink *nl = netlink_to(b, end->node);
        _cleanup_slice_filter_ struct slice_filter *filter = NULL;
        struct slice_config config = {.keeps_tags = testbed_mechanism(b->tb).tagger == TESTBED_TAGGER_8021Q};
        struct err err = {0};

        delete_qdisc(b, end, TC_H_CLSACT);
        for (size_t i = 0; i < l->n_subnets; i++) {
                const struct layout_subnet *subnet = &l->subnets[i];
                struct slice_rule *rule = &config.leaving[config.n_leaving];

                if (!l->links[subnet->link].is_uplink)
                        continue;
                for (unsigned family = 0; family < 2; family++) {
                        struct ip_prefix slice = layout_slice_network(subnet, family ? AF_INET6 : AF_INET);

                        if (family == 0)
                                slice_rule_init(rule, subnet->vlan);
                        assert_int_equal(slice_rule_allow(rule, &slice, &slice), 0);
                }
                config.entering[config.n_entering++] = *rule;
                rule->classid = QDISC_HANDLE(1, 0x10 + !subnet->slice);
                config.n_leaving++;
        }
        assert_ok(slice_filter_attach(nl, end->ifindex, &config, &filter, &err));
        netlink_free(nl);
}

/* A cable from front-left to central-hpc past the gateway, with a route for what goes up, or for what comes down. */
static void add_bypass(struct bed *b, bool is_upward)
{
        static const uint8_t macs[2][LINK_ALEN] = {{2, 0, 0, 0, 9, 1}, {2, 0, 0, 0, 9, 2}};
        struct link_end ends[] = {
                {.name = "bypass", .index = 901, .is_quiet = true, .has_mac = true, .mac = {2, 0, 0, 0, 9, 1}},
                {.name = "bypass", .index = 902, .is_quiet = true, .has_mac = true, .mac = {2, 0, 0, 0, 9, 2}},
        };
        size_t nodes[] = {FRONT_LEFT, CENTRAL_HPC};
        const char *const destinations[2][2] = {{"198.18.0.10/32", "2001:2::2:2/128"},
                                                {"198.18.0.1/32", "2001:2::1/128"}};
        struct netlink *nl[] = {netlink_to(b, FRONT_LEFT), netlink_to(b, CENTRAL_HPC)};
        struct err err = {0};

        assert_ok(link_add_veth(nl[0], &ends[0], &ends[1], testbed_netns(b->tb, nodes[1]), &err));
        for (size_t i = 0; i < 2; i++)
                assert_ok(link_set_up(nl[i], ends[i].index, true, &err));
        for (size_t i = 0; i < 2; i++)
                assert_ok(link_wait_running(nl[i], ends[i].index, LONG_NS, &err));
        for (size_t family = 0; family < 2; family++) {
                size_t from = is_upward ? 0 : 1;
                struct ip_prefix to;

                assert_int_equal(ip_prefix_parse(destinations[from][family], &to), 0);
                assert_ok(ip_route_add(nl[from], ends[from].index, &to, NULL, NULL, &err));
                assert_ok(ip_neighbour_add(nl[from], ends[from].index, &to, macs[!from], &err));
        }
        netlink_free(nl[0]);
        netlink_free(nl[1]);
}

static void break_way_up(struct bed *b)
{
        add_bypass(b, true);
}

static void break_way_down(struct bed *b)
{
        add_bypass(b, false);
}

/* What a fault is made from: BPF programs, or BPF programs that tag. */
enum needs { NOTHING, BPF, BPF_TAGS };

static bool can_break(struct bed *b, enum needs needs)
{
        struct testbed_mechanism m = testbed_mechanism(b->tb);

        return needs == NOTHING || (needs == BPF && m.classifier == TESTBED_CLASSIFIER_BPF) ||
               (needs == BPF_TAGS && m.tagger == TESTBED_TAGGER_BPF);
}

static const struct {
        const char *what;
        enum needs needs;
        void (*break_it)(struct bed *b);
        const char *reason, *fault; /* of the proof, and of the check; NULL: that cannot see it */
} broken[] = {
        {"one namespace", NOTHING, break_namespace, "front-left and central-hpc are one network namespace",
         "central-hpc: its network namespace is gone\n"},
        {"no tags", BPF_TAGS, break_tags,
         "8 frames from front-left to central-hpc in slice adas had no tag with VLAN 10 on the wire",
         "link front-left: the programs that keep slices apart are gone from its end in front-left\n"
         "link front-left: the programs that keep slices apart are gone from its end in gateway\n"},
        {"no tags from the zone", BPF_TAGS, break_sender_tags,
         "gateway refused 8 packets on link front-left: they had no VLAN tag",
         "link front-left: the programs that keep slices apart are gone from its end in front-left\n"},
        {"no tree", NOTHING, break_tree, "the uplink has no scheduler of the kind tree: its root queue is noqueue",
         "uplink: it has no scheduler of the kind tree\n"},
        {"wrong class", BPF, break_classes, "the uplink's class of adas got only 0 of its 8 packets", NULL},
        {"way up past the gateway", NOTHING, break_way_up,
         "link front-left carried only 0 of 8 packets from front-left: the others went another way", NULL},
        {"way down past the gateway", NOTHING, break_way_down,
         "link front-left carried only 0 of 8 packets from gateway: the others went another way", NULL},
        {"link down", NOTHING, break_link, "link front-left is down",
         "link front-left: its end in front-left is down\nlink front-left: its end in gateway carries no packets\n"},
        {"link gone", NOTHING, delete_link, "link rear-right is down",
         "link rear-right: its end in rear-right is gone\nlink rear-right: its end in gateway is gone\n"},
};

static void broken_testbeds_are_refused(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
                _cleanup_text_ struct text faults = {0};
                struct err err = {0};
                struct bed b;

                bed_up(&b, NULL);
                if (can_break(&b, broken[i].needs)) {
                        print_message("%s\n", broken[i].what);
                        assert_path(&b, NULL);
                        broken[i].break_it(&b);
                        assert_path(&b, broken[i].reason);
                        assert_ok(testbed_check(b.tb, &faults, &err));
                        assert_string_equal(faults.data ? faults.data : "", broken[i].fault ? broken[i].fault : "");
                }
                bed_down(&b);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_shape_and_scheduler_is_proven),
                cmocka_unit_test(mechanism_is_named),
                cmocka_unit_test(proof_counts_what_it_sent),
                cmocka_unit_test(nothing_is_sent_but_by_request),
                cmocka_unit_test(counters_are_openmetrics),
                cmocka_unit_test(addresses_are_given_out),
                cmocka_unit_test(broken_testbeds_are_refused),
        };
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
