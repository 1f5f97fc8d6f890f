/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kind-udp-load.h"

#include <signal.h>

#include "base/clock.h"
#include "campaign/boundary-zones.h"
#include "campaign/traffic.h"
#include "load/generator.h"
#include "load/receiver.h"

#define SINK_PORT 9 /* discard, RFC 863 */
#define STOP_NS   (2 * NSEC_PER_SEC)

/* Other processes of its processor may want it, too: an ordinary one then gets its share only, and the rate is not
 * offered. Real-time priority would keep them away for good, since the generator never sleeps. */
#define NICE (-20)

struct udp_load {
        struct workload base;
        struct boundary *boundary;
        const char *name;
        struct udp_load_keys keys;
        struct path_flow flow;
        uint32_t layer2_bytes;
        bool has_bpf_sink; /* the testbed counts and drops; else the receiver does */
        struct generator *generator;
        struct receiver *receiver;
        struct child generator_child, receiver_child;
};

static struct udp_load *udp_load_of(struct workload *w)
{
        return (struct udp_load *)w; /* the first member */
}

/* Of a child: ends its run after the packet that it is at, so that what it counts is what it sent. */
static volatile int stop;

static void on_terminate(int number)
{
        stop = 1;
}

static void stop_on_terminate(void)
{
        struct sigaction action = {.sa_handler = on_terminate};

        sigaction(SIGTERM, &action, NULL);
}

static int run_generator(struct child_side *side, void *userdata)
{
        struct udp_load *u = userdata;
        struct err err = {0};
        int64_t start_ns;

        stop_on_terminate();
        if (generator_open(u->generator, &err) < 0)
                return child_failed(side, &err);
        if (child_ready(side) < 0 || child_wait_go(side, &start_ns) < 0)
                return 1;
        return generator_run(u->generator, start_ns, &stop, &err) < 0;
}

static int run_receiver(struct child_side *side, void *userdata)
{
        struct udp_load *u = userdata;
        struct err err = {0};
        int64_t start_ns;

        stop_on_terminate();
        if (receiver_open(u->receiver, &err) < 0)
                return child_failed(side, &err);
        if (child_ready(side) < 0 || child_wait_go(side, &start_ns) < 0)
                return 1;
        return receiver_run(u->receiver, &stop, &err) < 0;
}

static int make_sink(struct udp_load *u, const union address *local, struct err *err)
{
        struct testbed *tb = boundary_zones_testbed(u->boundary);
        struct receiver_config config = {.kind = RECEIVER_SOCKET,
                                         .local = *local,
                                         .sched = {.cpu = (int)u->keys.cpu, .nice = NICE, .lock_memory = true}};
        int r;

        u->has_bpf_sink = testbed_mechanism(tb).classifier == TESTBED_CLASSIFIER_BPF;
        if (u->has_bpf_sink)
                return testbed_sink_add(tb, u->flow.to, SINK_PORT, err);
        r = receiver_new(&config, &u->receiver, err);
        return r < 0 ? r
                     : traffic_child_start(u->boundary, "load-sink", u->keys.to, run_receiver, u, &u->receiver_child,
                                           err);
}

static int make_generator(struct udp_load *u, const union address *peer, const union address *local, struct err *err)
{
        struct generator_config config = {
                .peer = *peer,
                .local = *local,
                .packet_bytes = (uint32_t)u->keys.packet_bytes,
                .layer2_bytes = u->layer2_bytes,
                .rate_bps = (uint64_t)u->keys.rate_bps,
                .burst = (uint32_t)u->keys.burst_packets,
                .sched = {.cpu = (int)u->keys.cpu, .nice = NICE, .lock_memory = true, .precise_timers = true},
        };
        int r;

        r = generator_new(&config, &u->generator, err);
        return r < 0 ? r
                     : traffic_child_start(u->boundary, "load", u->keys.from, run_generator, u, &u->generator_child,
                                           err);
}

static int udp_load_build(struct udp_load *u, const struct node *config, struct err *err)
{
        struct testbed *tb = boundary_zones_testbed(u->boundary);
        union address peer, local;
        int r;

        r = key_table_read(&udp_load_table, config, u->name, &u->keys, err);
        if (r >= 0)
                r = traffic_flow(u->boundary, u->name, u->keys.from, u->keys.to, u->keys.slice, &u->flow, err);
        if (r >= 0)
                r = traffic_address(tb, u->keys.to, u->keys.slice, u->keys.family, SINK_PORT, &peer, err);
        if (r >= 0)
                r = traffic_address(tb, u->keys.from, u->keys.slice, u->keys.family, 0, &local, err);
        if (r < 0)
                return r;
        u->layer2_bytes = testbed_mechanism(tb).tagger == TESTBED_TAGGER_NONE ? UDP_ETHERNET_BYTES
                                                                              : UDP_ETHERNET_BYTES + UDP_TAG_BYTES;
        r = make_sink(u, &peer, err);
        return r < 0 ? r : make_generator(u, &peer, &local, err);
}

static void udp_load_free(struct workload *w)
{
        struct udp_load *u = udp_load_of(w);

        if (!u)
                return;
        child_done(&u->generator_child);
        child_done(&u->receiver_child);
        generator_free(u->generator);
        receiver_free(u->receiver);
        key_table_done(&udp_load_table, &u->keys);
        free(u);
}

static int udp_load_prepare(struct boundary *b, const char *name, const struct node *config, struct workload **ret,
                            struct err *err)
{
        struct udp_load *u = calloc(1, sizeof(*u));
        int r;

        if (!u)
                return err_set_nomem(err);
        u->base.ops = &udp_load_ops;
        u->boundary = b;
        u->name = name;
        u->generator_child = u->receiver_child = (struct child)CHILD_INIT;
        r = udp_load_build(u, config, err);
        if (r < 0) {
                udp_load_free(&u->base);
                return r;
        }
        *ret = &u->base;
        return 0;
}

static int udp_load_start(struct workload *w, int64_t start_ns, struct err *err)
{
        struct udp_load *u = udp_load_of(w);
        int r = 0;

        if (!u->has_bpf_sink)
                r = child_go(&u->receiver_child, start_ns, err);
        return r < 0 ? r : child_go(&u->generator_child, start_ns, err);
}

static int udp_load_event_fd(const struct workload *w)
{
        return ((const struct udp_load *)w)->generator_child.pidfd;
}

static int stop_child(const char *what, struct child *child, struct err *err)
{
        struct child_status status = {0};
        int r;

        r = child_stop(child, STOP_NS, &status);
        if (r < 0)
                return err_set(err, ERR_ENVIRONMENT, -r, "%s did not end", what);
        return child_check(what, &status, err);
}

static int udp_load_stop(struct workload *w, struct err *err)
{
        struct udp_load *u = udp_load_of(w);
        int r;

        r = stop_child("the load", &u->generator_child, err);
        if (r >= 0)
                r = boundary_zones_settle(u->boundary, err);
        if (r >= 0 && !u->has_bpf_sink)
                r = stop_child("the sink of the load", &u->receiver_child, err);
        return r;
}

/* What the path can carry for it; 0 where nothing limits it. */
static int64_t ceiling_bps(const struct udp_load *u)
{
        const struct topology *t = boundary_zones_topology(u->boundary);

        if (t->shape == TOPOLOGY_DIRECT || u->flow.to != t->uplink_to)
                return 0;
        return t->scheduler == TOPOLOGY_ONE_QUEUE ? t->uplink_rate_bps : t->slices[u->flow.slice].ceiling_bps;
}

static int read_sink(struct udp_load *u, struct scrape_count *ret, struct err *err)
{
        const struct receiver_counts *counts;

        if (u->has_bpf_sink)
                return testbed_sink_read(boundary_zones_testbed(u->boundary), u->flow.to, u->flow.slice, SINK_PORT, ret,
                                         err);
        counts = receiver_counts(u->receiver);
        *ret = (struct scrape_count){.packets = counts->packets,
                                     .bytes = counts->bytes + counts->packets * u->layer2_bytes};
        return 0;
}

static int udp_load_collect(struct workload *w, struct sample_writer *out, struct workload_result *ret, struct err *err)
{
        struct udp_load *u = udp_load_of(w);
        struct generator_counts sent;
        struct scrape_count delivered = {0};
        int r;

        generator_counts(u->generator, &sent);
        r = read_sink(u, &delivered, err);
        if (r < 0)
                return r;
        u->flow.sent_packets = sent.sent_packets;
        r = boundary_zones_account(u->boundary, &u->flow, err);
        if (r < 0)
                return r;
        ret->counts = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "duration_ns",
                                (json_int_t)sent.duration_ns, "ceiling_bps", (json_int_t)ceiling_bps(u),
                                "offered_packets", (json_int_t)sent.offered_packets, "offered_bytes",
                                (json_int_t)sent.offered_bytes, "sent_packets", (json_int_t)sent.sent_packets,
                                "sent_bytes", (json_int_t)sent.sent_bytes, "refused_packets",
                                (json_int_t)sent.refused_packets, "delivered_packets", (json_int_t)delivered.packets,
                                "delivered_bytes", (json_int_t)delivered.bytes, "dropped_packets",
                                (json_int_t)(sent.sent_packets - MIN(delivered.packets, sent.sent_packets)));
        ret->notes = json_pack("{s:s, s:o*}", "sink", u->has_bpf_sink ? "bpf" : "socket", "generator",
                               generator_notes_json(u->generator));
        return ret->counts && ret->notes ? 0 : err_set_nomem(err);
}

const struct workload_ops udp_load_ops = {
        .prepare = udp_load_prepare,
        .start = udp_load_start,
        .event_fd = udp_load_event_fd,
        .stop = udp_load_stop,
        .collect = udp_load_collect,
        .free = udp_load_free,
};
