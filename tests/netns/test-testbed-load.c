/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed-support.h"

#include <poll.h>
#include <sys/socket.h>

#define N_LOAD       30000
#define PROBE_EVERY  400  /* so few that all of them fit their queue, however late it is served */
#define PACKET_BYTES 1400 /* of IP */
#define PORT         9000

/* A socket in a zone that sends to another one's sink. */
static int sender(struct bed *b, const char *from, const char *to, const char *slice)
{
        const int size_bytes = 64 << 20; /* the queue's packets stay charged to it: see that they do not hold it back */
        struct sockaddr_storage where;
        struct ip_prefix address;
        struct err err = {0};
        socklen_t len;
        int fd;

        assert_ok(testbed_address(b->tb, to, slice, AF_INET, &address, &err));
        len = ip_prefix_sockaddr(&address, PORT, &where);
        fd = netns_socket(testbed_zone_netns(b->tb, from), AF_INET, SOCK_DGRAM, 0, &err);
        assert_true(fd >= 0);
        setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size_bytes, sizeof(size_bytes));
        assert_int_equal(connect(fd, (struct sockaddr *)&where, len), 0);
        return fd;
}

static uint64_t send_some(int fd, size_t n)
{
        static const uint8_t zeros[PACKET_BYTES - 20 - 8];
        uint64_t sent = 0;

        for (size_t i = 0; i < n; i++)
                sent += send(fd, zeros, sizeof(zeros), 0) == sizeof(zeros);
        return sent;
}

/* Counters when nothing waits in any queue any more. */
static void observe_settled(struct bed *b, struct scrape *ret)
{
        int64_t end = clock_now_ns(CLOCK_MONOTONIC) + LONG_NS;
        struct err err = {0};

        for (;;) {
                uint64_t backlog = 0;

                assert_ok(testbed_observe(b->tb, ret, &err));
                for (size_t i = 0; i < ret->n_classes; i++)
                        backlog += ret->classes[i].backlog_packets;
                scrape_done(ret);
                if (backlog == 0)
                        break;
                assert_true(clock_now_ns(CLOCK_MONOTONIC) < end);
                poll(NULL, 0, 1);
        }
        assert_ok(testbed_observe(b->tb, ret, &err));
}

/* Layer 2: with the tag, where there is one. */
static uint64_t frame_bytes(const struct bed *b)
{
        return PACKET_BYTES + 14 + (testbed_mechanism(b->tb).tagger == TESTBED_TAGGER_NONE ? 0 : 4);
}

/* Every packet that was offered was sunk, or is counted where it was dropped: by a class of the uplink, or by a link
 * whose receiver's CPU was too far behind. */
static void assert_conserved(struct bed *b, uint64_t offered, const struct scrape *s)
{
        uint64_t handed = 0, dropped = 0, sunk = 0, uplink_dropped = 0;
        struct err err = {0};

        for (size_t i = 0; i < s->n_classes; i++) {
                handed += s->classes[i].sent.packets;
                dropped += s->classes[i].dropped_packets;
        }
        for (size_t i = 0; i < s->n_links; i++)
                *(testbed_layout(b->tb)->links[i].is_uplink ? &uplink_dropped : &dropped) +=
                        s->links[i].up.dropped_packets;
        for (size_t i = 0; i < s->n_slices; i++) {
                struct scrape_count count;

                assert_ok(testbed_sink_read(b->tb, CENTRAL_HPC, i, PORT, &count, &err));
                assert_int_equal(count.bytes, count.packets * frame_bytes(b));
                sunk += count.packets;
        }
        assert_int_equal(handed + dropped, offered);
        assert_int_equal(sunk + uplink_dropped, handed);
}

/* A tenth of exp-001's rates, which every host exceeds, however busy it is. */
#define SLOW                                                                                                           \
        "rate: 500mbit", "rate: 50mbit", "guarantee: 100mbit, ceiling: 500mbit", "guarantee: 10mbit, ceiling: 50mbit", \
                "guarantee: 350mbit, ceiling: 500mbit", "guarantee: 35mbit, ceiling: 50mbit"
#define SLOW_PER_QUEUE                                                                                                 \
        SLOW, "scheduler: tree", "scheduler: tree-per-queue", "ceiling: 50mbit", "ceiling: 10mbit", "ceiling: 50mbit", \
                "ceiling: 40mbit"

/* As fast as this host sends, which is far above what the uplink carries: the queue drops, every packet is accounted
 * for, and the path proof holds nevertheless. Of the other slice's few packets none is lost. */
static void overload(const char *const *edits)
{
        _cleanup_scrape_ struct scrape before = {0}, after = {0};
        struct path_flow flows[] = {
                {.from = REAR_RIGHT, .to = CENTRAL_HPC, .slice = INFOTAINMENT},
                {.from = FRONT_LEFT, .to = CENTRAL_HPC, .slice = ADAS},
        };
        struct path_proof proof;
        struct err err = {0};
        struct bed b;
        bool has_tags;
        int load, probe;

        bed_up(&b, edits);
        has_tags = testbed_mechanism(b.tb).tagger != TESTBED_TAGGER_NONE;
        assert_ok(testbed_sink_add(b.tb, CENTRAL_HPC, PORT, &err));
        assert_ok(testbed_sink_add(b.tb, CENTRAL_HPC, PORT, &err)); /* again: it is there */
        assert_ok(testbed_observe(b.tb, &before, &err));
        load = sender(&b, "rear-right", "central-hpc", "infotainment");
        probe = sender(&b, "front-left", "central-hpc", "adas");
        for (size_t i = 0; i < N_LOAD / PROBE_EVERY; i++) {
                flows[0].sent_packets += send_some(load, PROBE_EVERY);
                flows[1].sent_packets += send_some(probe, 1);
        }
        observe_settled(&b, &after);
        assert_int_equal(flows[0].sent_packets, N_LOAD);

        assert_conserved(&b, flows[0].sent_packets + flows[1].sent_packets, &after);
        assert_true(after.classes[after.n_classes - 1].dropped_packets > 0);
        for (size_t i = 0; i < after.n_classes; i++)
                assert_int_equal(after.classes[i].sent.bytes, after.classes[i].sent.packets * frame_bytes(&b));
        if (b.topology->scheduler != TOPOLOGY_ONE_QUEUE)
                assert_int_equal(after.classes[ADAS].dropped_packets, 0);
        assert_ok(path_judge(testbed_layout(b.tb), has_tags, &before, &after, flows, ARRAY_SIZE(flows), &proof, &err));
        assert_string_equal(proof.reason, "");

        flows[0].sent_packets++; /* one that was never sent is missed */
        assert_ok(path_judge(testbed_layout(b.tb), has_tags, &before, &after, flows, ARRAY_SIZE(flows), &proof, &err));
        assert_false(proof.holds);

        close(load);
        close(probe);
        assert_path(&b, NULL);
        bed_down(&b);
}

static void tree_drops_and_counts(void **state)
{
        overload(EDITS(SLOW));
}

static void tree_per_queue_drops_and_counts(void **state)
{
        if (!has_bpf())
                skip();
        overload(EDITS(SLOW_PER_QUEUE));
}

static void one_queue_drops_and_counts(void **state)
{
        overload(EDITS(SLOW, ONE_QUEUE));
}

static void chain_drops_and_counts(void **state)
{
        overload(EDITS(SLOW, CHAIN_3));
}

/* Only root of the host may switch HTB's hysteresis on; whether it is, is said. What was there before comes back when
 * the last testbed of the host goes, which tests/unit/sys/test-hysteresis.c shows. */
static void queues_wake_for_a_burst(void **state)
{
        struct bed tree, direct;
        char value = '0';
        FILE *f;

        bed_up(&tree, EDITS(SLOW));
        f = fopen("/sys/module/sch_htb/parameters/htb_hysteresis", "re");
        if (f) {
                value = (char)fgetc(f);
                fclose(f);
        }
        if (testbed_mechanism(tree.tb).has_hysteresis)
                assert_int_equal(value, '1');
        else if (!in_user_namespace() && test_must_run("root"))
                fail_msg("root could not switch HTB's hysteresis on");
        bed_down(&tree);

        bed_up(&direct, EDITS(DIRECT));
        assert_false(testbed_mechanism(direct.tb).has_hysteresis);
        bed_down(&direct);
}

/* Ports are counted apart, and what goes to none of them passes. */
static void sinks_take_their_port_only(void **state)
{
        struct scrape_count counts[3];
        struct err err = {0};
        struct bed b;
        int fd;

        bed_up(&b, NULL);
        assert_ok(testbed_sink_add(b.tb, CENTRAL_HPC, PORT, &err));
        assert_ok(testbed_sink_add(b.tb, CENTRAL_HPC, PORT + 1, &err));
        fd = sender(&b, "rear-right", "central-hpc", "infotainment");
        assert_int_equal(send_some(fd, 5), 5);
        close(fd);
        assert_ok(testbed_sink_read(b.tb, CENTRAL_HPC, INFOTAINMENT, PORT, &counts[0], &err));
        assert_ok(testbed_sink_read(b.tb, CENTRAL_HPC, INFOTAINMENT, PORT + 1, &counts[1], &err));
        assert_ok(testbed_sink_read(b.tb, CENTRAL_HPC, ADAS, PORT, &counts[2], &err));
        assert_int_equal(counts[0].packets, 5);
        assert_int_equal(counts[1].packets, 0);
        assert_int_equal(counts[2].packets, 0);
        assert_int_equal(testbed_sink_read(b.tb, CENTRAL_HPC, ADAS, PORT + 2, &counts[2], &err), -ENOENT);
        assert_path(&b, NULL);
        bed_down(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(tree_drops_and_counts),      cmocka_unit_test(tree_per_queue_drops_and_counts),
                cmocka_unit_test(one_queue_drops_and_counts), cmocka_unit_test(chain_drops_and_counts),
                cmocka_unit_test(queues_wake_for_a_burst),    cmocka_unit_test(sinks_take_their_port_only),
        };
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        stay_on_one_cpu(); /* then what has left the queue has been counted behind it, too */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
