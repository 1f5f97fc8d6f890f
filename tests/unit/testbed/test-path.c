/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "testbed/path.h"

/* Zones and slices of exp-001, by index. */
enum { FRONT_LEFT, REAR_RIGHT, CENTRAL_HPC };
enum { ADAS, INFOTAINMENT };
enum { UPLINK = 2 };

/* A testbed as counters only: what a healthy one would have counted for some flows. */
struct model {
        struct topology *topology;
        struct layout *layout;
        struct scrape before, after;
        struct path_flow flows[4];
        size_t n_flows;
};

static void model_scrape(const struct layout *l, struct scrape *s)
{
        const struct topology *t = l->topology;

        assert_int_equal(scrape_init(s, l->n_links, t->n_slices), 0);
        s->has_ports = s->has_scheduler = true;
        s->n_classes = t->hops == 0 ? 0 : t->scheduler == TOPOLOGY_ONE_QUEUE ? 1 : t->n_slices;
        for (size_t i = 0; i < l->n_links; i++)
                s->links[i].is_running = true;
        for (size_t i = 0; i < s->n_classes; i++)
                s->classes[i].is_present = true;
}

static void carry(struct scrape *s, struct layout_step step, size_t slice, uint64_t packets)
{
        struct scrape_port *ports = s->ports[step.link * s->n_slices + slice];

        (step.is_upward ? &s->links[step.link].up : &s->links[step.link].down)->sent.packets += packets;
        ports[step.is_upward ? LAYOUT_LOWER : LAYOUT_UPPER].out.packets += packets;
        ports[step.is_upward ? LAYOUT_UPPER : LAYOUT_LOWER].in.packets += packets;
}

static void model_send(struct model *m, size_t from, size_t to, size_t slice, uint64_t packets)
{
        struct layout_step steps[LAYOUT_PATH_MAX];
        size_t n = layout_path(m->layout, from, to, steps);

        for (size_t i = 0; i < n; i++) {
                carry(&m->after, steps[i], slice, packets);
                if (m->layout->links[steps[i].link].is_uplink && steps[i].is_upward)
                        m->after.classes[m->after.n_classes == 1 ? 0 : slice].sent.packets += packets;
        }
        m->flows[m->n_flows++] = (struct path_flow){
                .from = from,
                .to = to,
                .slice = slice,
                .sent_packets = packets,
                .must_arrive = true,
                .arrived_packets = packets,
                .has_ttl = true,
                .ttl_min = (uint8_t)(255 - (n - 1)),
                .ttl_max = (uint8_t)(255 - (n - 1)),
                .has_tags = true,
                .tagged_packets = packets * n,
        };
}

/* Probes there and back, and a one-way load. */
static struct model model_of(const char *const *edits)
{
        struct model m = {.topology = topology_of(edits)};
        struct err err = {0};

        assert_int_equal(layout_make(m.topology, &m.layout, &err), 0);
        model_scrape(m.layout, &m.before);
        model_scrape(m.layout, &m.after);
        model_send(&m, FRONT_LEFT, CENTRAL_HPC, ADAS, 1000);
        model_send(&m, CENTRAL_HPC, FRONT_LEFT, ADAS, 1000);
        model_send(&m, REAR_RIGHT, CENTRAL_HPC, INFOTAINMENT, 5000);
        return m;
}

static void model_done(struct model *m)
{
        scrape_done(&m->before);
        scrape_done(&m->after);
        layout_free(m->layout);
        topology_free(m->topology);
}

static void assert_verdict(struct model *m, const char *reason)
{
        struct path_proof proof;

        assert_int_equal(path_judge(m->layout, true, &m->before, &m->after, m->flows, m->n_flows, &proof, NULL), 0);
        assert_string_equal(proof.reason, reason ? reason : "");
        assert_int_equal(proof.holds, !reason);
}

/* The queue drops @n of the load: everything behind it sees them no more. */
static void drop_load(struct model *m, uint64_t n, uint64_t n_waiting)
{
        struct scrape_class *class = &m->after.classes[m->after.n_classes == 1 ? 0 : INFOTAINMENT];

        class->sent.packets -= n + n_waiting;
        class->dropped_packets += n;
        class->backlog_packets += n_waiting;
        m->after.links[UPLINK].up.sent.packets -= n + n_waiting;
        m->after.ports[UPLINK * 2 + INFOTAINMENT][LAYOUT_UPPER].in.packets -= n + n_waiting;
        m->flows[2].must_arrive = false;
        m->flows[2].arrived_packets -= n + n_waiting;
}

static void healthy_testbeds_hold(void **state)
{
        const char *const *shapes[] = {
                NULL,
                EDITS("scheduler: tree", "scheduler: one-queue"),
                EDITS("topology: star", "topology: daisy-chain\nhops: 4"),
                EDITS("topology: star", "topology: direct"),
        };

        for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
                struct model m = model_of(shapes[i]);

                assert_verdict(&m, NULL);
                model_done(&m);
        }
}

static void drops_of_a_queue_count_as_passed(void **state)
{
        const char *const *shapes[] = {NULL, EDITS("scheduler: tree", "scheduler: one-queue")};

        for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
                struct model m = model_of(shapes[i]);

                drop_load(&m, 700, 30);
                assert_verdict(&m, NULL);
                m.after.classes[m.after.n_classes - 1].dropped_packets--;
                assert_verdict(&m,
                               "link uplink carried only 5999 of 6000 packets from gateway: the others went another "
                               "way");
                model_done(&m);
        }
}

static void drop_on_link(struct model *m, size_t link, size_t slice, uint64_t n)
{
        m->after.links[link].up.sent.packets -= n;
        m->after.links[link].up.dropped_packets += n;
        m->after.ports[link * 2 + slice][LAYOUT_UPPER].in.packets -= n;
        m->after.ports[UPLINK * 2 + slice][LAYOUT_LOWER].out.packets -= n;
        m->after.ports[UPLINK * 2 + slice][LAYOUT_UPPER].in.packets -= n;
        m->after.links[UPLINK].up.sent.packets -= n;
        m->after.classes[slice].sent.packets -= n;
}

/* What links themselves could not hand over is counted, and missing on the links behind them. */
static void drops_of_links_are_accounted(void **state)
{
        struct model m = model_of(NULL);

        for (size_t i = 0; i < m.n_flows; i++)
                m.flows[i].must_arrive = false;
        drop_on_link(&m, REAR_RIGHT, INFOTAINMENT, 10);
        drop_on_link(&m, FRONT_LEFT, ADAS, 7);
        assert_verdict(&m, NULL);
        m.after.links[UPLINK].up.sent.packets -= 1;
        assert_verdict(&m, "link uplink carried only 5982 of 6000 packets from gateway: the others went another way");
        model_done(&m);
}

static void earlier_counts_do_not_matter(void **state)
{
        struct model m = model_of(NULL);

        for (int i = 0; i < 2; i++) {
                struct scrape *s = i ? &m.after : &m.before;

                s->links[0].up.sent.packets += 77;
                s->classes[0].dropped_packets += 5;
                s->refused[1][0][SLICE_DROP_NOT_IP] += 9;
                s->unclassified_packets += 3;
        }
        assert_verdict(&m, NULL);
        model_done(&m);
}

static void lie_links(struct model *m)
{
        m->after.links[FRONT_LEFT].up.sent.packets = 0;
}

static void lie_more(struct model *m)
{
        m->after.links[FRONT_LEFT].down.sent.packets += 3;
}

static void lie_down(struct model *m)
{
        m->after.links[REAR_RIGHT].is_running = false;
}

static void lie_tree(struct model *m)
{
        m->after.has_scheduler = false;
        snprintf(m->after.root_kind, sizeof(m->after.root_kind), "noqueue");
}

static void lie_class_gone(struct model *m)
{
        m->after.classes[ADAS].is_present = false;
}

static void lie_class(struct model *m)
{
        m->after.classes[ADAS].sent.packets -= 1000;
        m->after.classes[INFOTAINMENT].sent.packets += 1000;
}

static void lie_unclassified(struct model *m)
{
        m->after.classes[ADAS].sent.packets -= 2;
        m->after.unclassified_packets += 2;
}

static void lie_untagged(struct model *m)
{
        m->after.refused[FRONT_LEFT][LAYOUT_UPPER][SLICE_DROP_UNTAGGED] = 1000;
        m->after.links[UPLINK].up.sent.packets -= 1000;
}

static void lie_mistagged(struct model *m)
{
        m->after.refused[UPLINK][LAYOUT_UPPER][SLICE_DROP_UNKNOWN_TAG] = 1;
}

static void lie_port(struct model *m)
{
        m->after.ports[FRONT_LEFT * 2 + ADAS][LAYOUT_UPPER].in.packets = 0;
}

static void lie_ttl(struct model *m)
{
        m->flows[0].ttl_max = 255;
}

static void lie_hops(struct model *m)
{
        m->flows[1].ttl_min = m->flows[1].ttl_max = 253;
}

static void lie_arrived(struct model *m)
{
        m->flows[1].arrived_packets--;
}

static void lie_wire(struct model *m)
{
        m->flows[0].tagged_packets -= 1;
        m->flows[0].untagged_packets = 1;
}

static void lie_blind(struct model *m)
{
        m->flows[0].tagged_packets = 0;
}

static void each_fault_has_its_reason(void **state)
{
        static const struct {
                void (*lie)(struct model *m);
                const char *reason;
        } cases[] = {
                {lie_links, "link front-left carried only 0 of 1000 packets from front-left: the others went another "
                            "way"},
                {lie_more, "link front-left carried 1003 packets from gateway, 3 more than were sent over it"},
                {lie_down, "link rear-right is down"},
                {lie_tree, "the uplink has no scheduler of the kind tree: its root queue is noqueue"},
                {lie_class_gone, "the uplink's class of slice adas is gone"},
                {lie_class, "the uplink's class of adas got only 0 of its 1000 packets"},
                {lie_unclassified, "2 packets left the uplink's scheduler without a class"},
                {lie_untagged, "gateway refused 1000 packets on link front-left: they had no VLAN tag"},
                {lie_mistagged,
                 "central-hpc refused 1 packets on link uplink: they had a VLAN tag of no slice of the link"},
                {lie_port, "gateway received 0 packets with the tag of slice adas over link front-left, not 1000"},
                {lie_ttl, "packets from front-left to central-hpc in slice adas arrived with TTL 254 to 255, not 254: "
                          "they did not pass 1 forwarding nodes"},
                {lie_hops, "packets from central-hpc to front-left in slice adas arrived with TTL 253 to 253, not 254: "
                           "they did not pass 1 forwarding nodes"},
                {lie_arrived, "only 999 of 1000 packets from central-hpc to front-left in slice adas arrived"},
                {lie_wire, "1 frames from front-left to central-hpc in slice adas had no tag with VLAN 10 on the "
                           "wire"},
                {lie_blind, "no frame from front-left to central-hpc in slice adas with VLAN 10 was seen on the wire"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct model m = model_of(NULL);

                cases[i].lie(&m);
                assert_verdict(&m, cases[i].reason);
                model_done(&m);
        }
}

/* Where nobody can tag, missing tags are no fault. */
static void without_tags_none_are_wanted(void **state)
{
        struct model m = model_of(NULL);
        struct path_proof proof;

        lie_wire(&m);
        assert_int_equal(path_judge(m.layout, false, &m.before, &m.after, m.flows, m.n_flows, &proof, NULL), 0);
        assert_true(proof.holds);
        model_done(&m);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(healthy_testbeds_hold),        cmocka_unit_test(drops_of_a_queue_count_as_passed),
                cmocka_unit_test(drops_of_links_are_accounted), cmocka_unit_test(earlier_counts_do_not_matter),
                cmocka_unit_test(each_fault_has_its_reason),    cmocka_unit_test(without_tags_none_are_wanted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
