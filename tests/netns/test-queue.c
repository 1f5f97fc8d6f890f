/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "base/json.h"
#include "sys/qdisc.h"
#include "sys/slice.h"

#define PORT    9
#define PAYLOAD 32
#define FRAME   (14 + 20 + 8 + PAYLOAD) /* untagged */
#define TAG     4

/* What a tool says inside a namespace; another reader of the same counters. */
struct tool {
        const char *command;
        char output[16384];
};

static int run_tool(void *userdata, struct err *err)
{
        struct tool *tool = userdata;
        FILE *f = popen(tool->command, "r");
        size_t n;

        if (!f)
                return -errno;
        n = fread(tool->output, 1, sizeof(tool->output) - 1, f);
        tool->output[n] = '\0';
        return pclose(f) == 0 ? 0 : -EIO;
}

static void ask_tool(const struct netns *ns, const char *command, struct tool *tool)
{
        struct err err = {0};

        *tool = (struct tool){.command = command};
        assert_ok(netns_run(ns, run_tool, tool, &err));
}

/* Counters of a class as `tc -s class` prints them. */
static void read_class_with_tc(const struct netns *ns, const char *class, struct qdisc_counters *ret)
{
        char start[64];
        struct tool tool;
        const char *at;

        ask_tool(ns, "tc -s class show dev a", &tool);
        snprintf(start, sizeof(start), "class htb %s ", class);
        at = strstr(tool.output, start);
        at = at ? strstr(at, "Sent ") : NULL;
        *ret = (struct qdisc_counters){0};
        if (!at || sscanf(at,
                          "Sent %" SCNu64 " bytes %" SCNu64 " pkt (dropped %" SCNu64 ", overlimits %" SCNu64
                          " requeues %" SCNu64 ")",
                          &ret->bytes, &ret->packets, &ret->drops, &ret->overlimits, &ret->requeues) != 5)
                fail_msg("tc does not tell of class %s: %s", class, tool.output);
}

static struct qdisc_counters read_one(struct pair *p, uint32_t handle, bool is_class)
{
        _cleanup_qdisc_list_ struct qdisc_list list = {0};
        const struct qdisc_counters *found;
        struct err err = {0};

        assert_ok(qdisc_read(p->nl[0], p->index[0], &list, &err));
        found = qdisc_list_find(&list, handle, is_class);
        if (!found)
                fail_msg("there is no %x", handle);
        return *found;
}

/* A tree at end 0 with one class, which everything goes to. */
static void add_tree(struct pair *p, uint32_t parent, uint16_t major, uint64_t rate_bps, uint32_t limit,
                     uint16_t overhead_bytes)
{
        struct qdisc_htb htb = {.parent = parent,
                                .handle = QDISC_HANDLE(major, 0),
                                .default_minor = 1,
                                .overhead_bytes = overhead_bytes};
        struct qdisc_htb_class class = {.parent = htb.handle, .classid = QDISC_HANDLE(major, 1), .rate_bps = rate_bps};
        struct err err = {0};

        assert_ok(qdisc_add_htb(p->nl[0], p->index[0], &htb, &err));
        assert_ok(qdisc_add_htb_class(p->nl[0], p->index[0], &class, &err));
        assert_ok(qdisc_add_fifo(p->nl[0], p->index[0], class.classid, QDISC_HANDLE(major + 0x100, 0), QDISC_PACKETS,
                                 limit, &err));
}

static void silence(struct pair *p)
{
        struct err err = {0};

        for (size_t i = 0; i < 2; i++)
                assert_ok(netns_sysctl_write(&p->ns[i], "ipv6/conf/all/disable_ipv6", "1", &err));
}

/* Sends one by one and sees each arrive, so that nothing is waiting anywhere afterwards. */
static void send_and_receive(struct pair *p, size_t n)
{
        int from = udp_socket(&p->ns[0], &p->v4[0], PORT), to = udp_socket(&p->ns[1], &p->v4[1], PORT);
        char buf[2 * PAYLOAD];

        for (size_t i = 0; i < n; i++) {
                udp_send(from, &p->v4[1], PORT, PAYLOAD);
                assert_int_equal(recv(to, buf, sizeof(buf), 0), PAYLOAD);
        }
        close(from);
        close(to);
}

static void class_counts_the_frame(void **state)
{
        struct qdisc_counters before, after;
        struct pair p;

        pair_up(&p, 1);
        silence(&p);
        add_tree(&p, QDISC_ROOT, 1, 1000000000, 100, 0);
        before = read_one(&p, QDISC_HANDLE(1, 1), true);
        assert_string_equal(before.kind, "htb");
        assert_int_equal(before.leaf, QDISC_HANDLE(0x101, 0));
        send_and_receive(&p, 50);
        after = read_one(&p, QDISC_HANDLE(1, 1), true);
        assert_int_equal(after.packets - before.packets, 50);
        assert_int_equal(after.bytes - before.bytes, 50 * FRAME);
        assert_int_equal(after.drops, 0);
        assert_int_equal(after.backlog_packets, 0);
        assert_int_equal(read_one(&p, QDISC_HANDLE(1, 0), false).direct_packets, 0);
        assert_int_equal(read_one(&p, QDISC_HANDLE(0x101, 0), false).packets, after.packets);
        pair_down(&p);
}

static void overhead_is_charged(void **state)
{
        struct qdisc_counters before, after;
        struct pair p;

        pair_up(&p, 1);
        silence(&p);
        add_tree(&p, QDISC_ROOT, 1, 1000000000, 100, 24);
        before = read_one(&p, QDISC_HANDLE(1, 1), true);
        send_and_receive(&p, 50);
        after = read_one(&p, QDISC_HANDLE(1, 1), true);
        assert_int_equal(after.bytes - before.bytes, 50 * (FRAME + 24));
        pair_down(&p);
}

/* Above the ceiling the bounded leaf drops; every packet is accounted for; and tc reads the same numbers. */
static void overload_drops_and_everything_is_accounted_for(void **state)
{
        enum { N = 2000, LIMIT = 20 };
        struct qdisc_counters before, after, leaf, other;
        size_t received = 0;
        struct pair p;
        char buf[1500];
        int from, to;

        pair_up(&p, 1);
        silence(&p);
        add_tree(&p, QDISC_ROOT, 1, 8000000, LIMIT, 0);
        before = read_one(&p, QDISC_HANDLE(1, 1), true);
        from = udp_socket(&p.ns[0], &p.v4[0], PORT);
        to = udp_socket(&p.ns[1], &p.v4[1], PORT);
        for (size_t i = 0; i < N; i++)
                udp_send(from, &p.v4[1], PORT, 1000);
        udp_send(from, &p.v4[1], PORT, 0); /* counted as well, whether it passes or not */
        do {                               /* until the leaf is empty: what it held takes 20 ms at this rate */
                assert_int_equal(recv(to, buf, sizeof(buf), 0), 1000);
                received++;
                while (recv(to, buf, sizeof(buf), MSG_DONTWAIT) == 1000)
                        received++;
                after = read_one(&p, QDISC_HANDLE(1, 1), true);
        } while (after.backlog_packets > 0);
        while (recv(to, buf, sizeof(buf), MSG_DONTWAIT) == 1000)
                received++;
        leaf = read_one(&p, QDISC_HANDLE(0x101, 0), false);

        assert_true(leaf.drops > 0);
        assert_int_equal(after.drops, leaf.drops);
        assert_true(after.overlimits > 0);
        assert_int_equal(after.packets - before.packets + after.drops, N + 1);
        assert_in_range(received, after.packets - before.packets - 1, after.packets - before.packets);
        assert_int_equal(read_one(&p, QDISC_HANDLE(1, 0), false).direct_packets, 0);

        read_class_with_tc(&p.ns[0], "1:1", &other);
        assert_int_equal(other.packets, after.packets);
        assert_int_equal(other.bytes, after.bytes);
        assert_int_equal(other.drops, after.drops);
        assert_int_equal(other.overlimits, after.overlimits);
        assert_int_equal(other.requeues, after.requeues);
        close(from);
        close(to);
        pair_down(&p);
}

static void bytes_leaf_holds_bytes(void **state)
{
        struct qdisc_htb htb = {.parent = QDISC_ROOT, .handle = QDISC_HANDLE(1, 0), .default_minor = 1};
        struct qdisc_htb_class class = {.parent = htb.handle, .classid = QDISC_HANDLE(1, 1), .rate_bps = 8000};
        struct err err = {0};
        struct pair p;
        int from;

        pair_up(&p, 1);
        silence(&p);
        assert_ok(qdisc_add_htb(p.nl[0], p.index[0], &htb, &err));
        assert_ok(qdisc_add_htb_class(p.nl[0], p.index[0], &class, &err));
        assert_ok(qdisc_add_fifo(p.nl[0], p.index[0], class.classid, QDISC_HANDLE(2, 0), QDISC_BYTES, 3 * 1042, &err));
        from = udp_socket(&p.ns[0], &p.v4[0], PORT);
        for (size_t i = 0; i < 100; i++)
                udp_send(from, &p.v4[1], PORT, 1000);
        assert_int_equal(read_one(&p, QDISC_HANDLE(2, 0), false).backlog_packets, 3);
        assert_int_equal(read_one(&p, QDISC_HANDLE(2, 0), false).backlog_bytes, 3 * 1042);
        close(from);
        pair_down(&p);
}

static void link_counters_agree_with_ip(void **state)
{
        _cleanup_json_ json_t *links = NULL;
        json_t *link, *stats, *rx, *tx;
        struct link_info info;
        struct err err = {0};
        struct tool tool;
        struct pair p;

        pair_up(&p, 1);
        silence(&p);
        send_and_receive(&p, 30);
        assert_ok(link_read(p.nl[0], p.index[0], &info, &err));
        ask_tool(&p.ns[0], "ip -s -j link show dev a", &tool);
        assert_ok(json_parse(span_of_text(tool.output), "ip", &links, &err));
        link = json_array_get(links, 0);
        stats = json_object_get(link, "stats64");
        rx = json_object_get(stats, "rx");
        tx = json_object_get(stats, "tx");
        assert_int_equal(json_integer_value(json_object_get(tx, "packets")), info.counters.tx_packets);
        assert_int_equal(json_integer_value(json_object_get(tx, "bytes")), info.counters.tx_bytes);
        assert_int_equal(json_integer_value(json_object_get(rx, "packets")), info.counters.rx_packets);
        assert_int_equal(json_integer_value(json_object_get(rx, "dropped")), info.counters.rx_dropped);
        assert_int_equal(json_integer_value(json_object_get(link, "ifindex")), info.index);
        assert_true(info.counters.tx_packets >= 30);
        pair_down(&p);
}

/* 10 Gbit/s in bytes does not fit 32 bits of bits; a rate over 34 Gbit/s does not fit 32 bits of bytes. */
static void rates_of_64_bits_arrive(void **state)
{
        struct qdisc_htb htb = {.parent = QDISC_ROOT, .handle = QDISC_HANDLE(1, 0), .default_minor = 1};
        struct qdisc_htb_class class = {.parent = htb.handle,
                                        .classid = QDISC_HANDLE(1, 1),
                                        .rate_bps = UINT64_C(10000000000),
                                        .ceiling_bps = UINT64_C(40000000000),
                                        .burst_bytes = 80000, /* 64 us: whole in the kernel's ticks of 64 ns, too */
                                        .ceiling_burst_bytes = 320000,
                                        .quantum_bytes = 3000,
                                        .priority = 3};
        struct err err = {0};
        struct tool tool;
        struct pair p;

        pair_up(&p, 1);
        assert_ok(qdisc_add_htb(p.nl[0], p.index[0], &htb, &err));
        assert_ok(qdisc_add_htb_class(p.nl[0], p.index[0], &class, &err));
        ask_tool(&p.ns[0], "tc -d class show dev a", &tool);
        assert_non_null(strstr(tool.output, "class htb 1:1 root prio 3 quantum 3000 rate 10Gbit ceil 40Gbit"));
        assert_non_null(strstr(tool.output, " burst 80000b"));
        assert_non_null(strstr(tool.output, " cburst 320000b"));
        pair_down(&p);
}

static void faults_have_reasons(void **state)
{
        struct qdisc_htb htb = {.parent = QDISC_ROOT, .handle = QDISC_HANDLE(1, 0)};
        struct qdisc_htb_class class = {.parent = htb.handle, .classid = QDISC_HANDLE(1, 1), .rate_bps = 1000000};
        struct qdisc_htb_class steep = class, slow = class, unknown = class;
        struct err err = {0};
        struct pair p;

        pair_up(&p, 1);
        assert_int_equal(qdisc_add_mq(p.nl[0], p.index[0], QDISC_HANDLE(9, 0), &err), -EOPNOTSUPP); /* one queue only */
        assert_ok(qdisc_add_htb(p.nl[0], p.index[0], &htb, &err));
        assert_int_equal(qdisc_add_htb(p.nl[0], p.index[0], &htb, &err), -EEXIST);
        assert_non_null(strstr(err.text, "cannot add the htb 1:0 to link"));
        steep.ceiling_bps = 999999;
        assert_int_equal(qdisc_add_htb_class(p.nl[0], p.index[0], &steep, &err), -EINVAL);
        slow.rate_bps = 0;
        assert_int_equal(qdisc_add_htb_class(p.nl[0], p.index[0], &slow, &err), -EINVAL);
        unknown.priority = 8;
        assert_int_equal(qdisc_add_htb_class(p.nl[0], p.index[0], &unknown, &err), -EINVAL);
        assert_ok(qdisc_add_htb_class(p.nl[0], p.index[0], &class, &err));
        assert_ok(qdisc_add_clsact(p.nl[0], p.index[0], &err));
        assert_ok(qdisc_add_clsact(p.nl[0], p.index[0], &err));
        assert_ok(qdisc_delete(p.nl[0], p.index[0], QDISC_ROOT, &err));
        assert_int_equal(qdisc_delete(p.nl[0], p.index[0], QDISC_ROOT, &err), -ENOENT);
        assert_ok(qdisc_add_htb(p.nl[0], p.index[0], &htb, &err));
        pair_down(&p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(class_counts_the_frame),
                cmocka_unit_test(overhead_is_charged),
                cmocka_unit_test(overload_drops_and_everything_is_accounted_for),
                cmocka_unit_test(bytes_leaf_holds_bytes),
                cmocka_unit_test(link_counters_agree_with_ip),
                cmocka_unit_test(rates_of_64_bits_arrive),
                cmocka_unit_test(faults_have_reasons),
        };
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        stay_on_one_cpu();
        return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
