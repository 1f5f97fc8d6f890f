/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/boundary-zones.h"

#include "base/clock.h"

#define FLOWS_MAX   64
#define SETTLE_NS   (2 * NSEC_PER_SEC)
#define SETTLE_STEP (2 * NSEC_PER_MSEC)

struct zones {
        struct boundary base;
        struct topology *topology;
        struct testbed *testbed;
        struct scrape since; /* when the accounts below began */
        size_t n_flows;
        struct path_flow flows[FLOWS_MAX];
};

static struct zones *zones_of(struct boundary *b)
{
        return (struct zones *)b; /* the first member */
}

static void zones_down(struct boundary *b)
{
        struct zones *z = zones_of(b);

        if (!z)
                return;
        testbed_down(z->testbed);
        topology_free(z->topology);
        scrape_done(&z->since);
        free(z);
}

static int zones_up(const struct node *config, int inputs_dirfd, struct boundary **ret, struct err *err)
{
        struct zones *z = calloc(1, sizeof(*z));
        int r;

        if (!z)
                return err_set_nomem(err);
        z->base.ops = &boundary_zones_ops;
        r = topology_read(node_get(config, "boundary"), &z->topology, err);
        if (r >= 0)
                r = testbed_up(z->topology, &z->testbed, err);
        if (r >= 0)
                r = testbed_observe(z->testbed, &z->since, err);
        if (r < 0) {
                zones_down(&z->base);
                return r;
        }
        *ret = &z->base;
        return 0;
}

static json_t *flow_to_json(const struct topology *t, const struct path_flow *f)
{
        json_t *flow = json_pack("{s:s, s:s, s:s, s:I}", "from", t->zones[f->from].name, "to", t->zones[f->to].name,
                                 "slice", t->slices[f->slice].name, "sent_packets", (json_int_t)f->sent_packets);

        if (f->has_ttl) {
                json_object_set_new(flow, "ttl_min", json_integer(f->ttl_min));
                json_object_set_new(flow, "ttl_max", json_integer(f->ttl_max));
        }
        if (f->has_tags) {
                json_object_set_new(flow, "tagged_packets", json_integer((json_int_t)f->tagged_packets));
                json_object_set_new(flow, "untagged_packets", json_integer((json_int_t)f->untagged_packets));
        }
        return flow;
}

/* By how much the uplink's classes advanced. */
static json_t *classes_to_json(const struct scrape *before, const struct scrape *after)
{
        json_t *classes = json_array();

        for (size_t i = 0; i < after->n_classes && i < before->n_classes; i++) {
                const struct scrape_class *b = &before->classes[i], *a = &after->classes[i];

                json_array_append_new(classes, json_pack("{s:I, s:I, s:I}", "sent_packets",
                                                         (json_int_t)(a->sent.packets - b->sent.packets), "sent_bytes",
                                                         (json_int_t)(a->sent.bytes - b->sent.bytes), "dropped_packets",
                                                         (json_int_t)(a->dropped_packets - b->dropped_packets)));
        }
        return classes;
}

static json_t *evidence_to_json(const struct zones *z, const struct scrape *before, const struct scrape *after,
                                const struct path_flow *flows, size_t n)
{
        json_t *list = json_array();

        for (size_t i = 0; i < n; i++)
                json_array_append_new(list, flow_to_json(z->topology, &flows[i]));
        return json_pack("{s:o, s:o, s:s}", "flows", list, "classes", classes_to_json(before, after), "scheduler",
                         after->root_kind);
}

/* What the workloads sent, against the counters. */
static int prove_accounts(struct zones *z, struct proof *ret, struct err *err)
{
        bool wants_tags = testbed_mechanism(z->testbed).tagger != TESTBED_TAGGER_NONE;
        _cleanup_scrape_ struct scrape now = {0};
        struct path_proof path;
        int r;

        r = testbed_observe(z->testbed, &now, err);
        if (r < 0)
                return r;
        r = path_judge(testbed_layout(z->testbed), wants_tags, &z->since, &now, z->flows, z->n_flows, &path, err);
        if (r < 0)
                return r;
        if (!path.holds) {
                ret->holds = false;
                snprintf(ret->reason, sizeof(ret->reason), "%s", path.reason);
        }
        json_object_set_new(ret->evidence, "workloads", evidence_to_json(z, &z->since, &now, z->flows, z->n_flows));
        return 0;
}

/* A few packets of our own along every path. */
static int prove_actively(struct zones *z, struct proof *ret, struct err *err)
{
        _cleanup_testbed_proof_ struct testbed_proof own = {0};
        int r;

        r = testbed_prove(z->testbed, &own, err);
        if (r < 0)
                return r;
        if (!own.path.holds && ret->holds) {
                ret->holds = false;
                snprintf(ret->reason, sizeof(ret->reason), "%s", own.path.reason);
        }
        json_object_set_new(ret->evidence, "own", evidence_to_json(z, &own.before, &own.after, own.flows, own.n_flows));
        return 0;
}

static int zones_prove(struct boundary *b, struct proof *ret, struct err *err)
{
        struct zones *z = zones_of(b);
        int r = 0;

        *ret = (struct proof){.holds = true, .evidence = json_object()};
        if (z->n_flows > 0)
                r = prove_accounts(z, ret, err);
        if (r >= 0)
                r = prove_actively(z, ret, err);
        z->n_flows = 0;
        scrape_done(&z->since);
        return r < 0 ? r : testbed_observe(z->testbed, &z->since, err);
}

static int zones_observe(struct boundary *b, struct text *out, struct err *err)
{
        struct zones *z = zones_of(b);
        _cleanup_scrape_ struct scrape now = {0};
        int r;

        r = testbed_observe(z->testbed, &now, err);
        if (r < 0)
                return r;
        return scrape_format(&now, testbed_layout(z->testbed), out, err);
}

static json_t *zones_describe(const struct boundary *b)
{
        const struct zones *z = (const struct zones *)b;
        struct testbed_mechanism how = testbed_mechanism(z->testbed);
        json_t *weaker = json_array();

        if (how.tagger == TESTBED_TAGGER_NONE)
                json_array_append_new(weaker, json_string("links carry no 802.1Q tags: BPF programs may not be loaded "
                                                          "and the kernel has no VLAN devices"));
        if (how.classifier == TESTBED_CLASSIFIER_NFTABLES)
                json_array_append_new(weaker,
                                      json_string("slices are told apart by nftables: nothing counts or refuses "
                                                  "packets slice by slice on the links"));
        return json_pack("{s:s, s:s, s:s, s:b, s:o}", "kind", "zones", "tagger", testbed_tagger_name(how.tagger),
                         "classifier", testbed_classifier_name(how.classifier), "htb_hysteresis", how.has_hysteresis,
                         "weaker", weaker);
}

const struct boundary_ops boundary_zones_ops = {
        .up = zones_up,
        .prove = zones_prove,
        .observe = zones_observe,
        .describe = zones_describe,
        .down = zones_down,
};

int boundary_zones_missing(const struct node *config, struct err *err)
{
        _cleanup_topology_ struct topology *topology = NULL;
        int r;

        r = topology_read(node_get(config, "boundary"), &topology, err);
        return r < 0 ? r : testbed_missing(topology, err);
}

struct testbed *boundary_zones_testbed(struct boundary *b)
{
        return zones_of(b)->testbed;
}

const struct topology *boundary_zones_topology(struct boundary *b)
{
        return zones_of(b)->topology;
}

int boundary_zones_settle(struct boundary *b, struct err *err)
{
        struct zones *z = zones_of(b);
        int64_t deadline = clock_now_ns(CLOCK_MONOTONIC) + SETTLE_NS, now;

        while ((now = clock_now_ns(CLOCK_MONOTONIC)) < deadline) {
                _cleanup_scrape_ struct scrape scrape = {0};
                uint64_t backlog = 0;
                int r;

                r = testbed_observe(z->testbed, &scrape, err);
                if (r < 0)
                        return r;
                for (size_t i = 0; i < scrape.n_classes; i++)
                        backlog += scrape.classes[i].backlog_packets;
                if (backlog == 0)
                        return 0;
                clock_sleep_until_ns(CLOCK_MONOTONIC, now + SETTLE_STEP, NULL);
        }
        return err_set(err, ERR_ENVIRONMENT, ETIMEDOUT, "the uplink's queues did not empty within two seconds");
}

int boundary_zones_account(struct boundary *b, const struct path_flow *flow, struct err *err)
{
        struct zones *z = zones_of(b);

        if (z->n_flows >= FLOWS_MAX)
                return err_set(err, ERR_BUG, ENOSPC, "more than %d flows in one trial", FLOWS_MAX);
        z->flows[z->n_flows++] = *flow;
        return 0;
}
