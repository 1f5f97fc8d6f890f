/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <netinet/ip.h>

#include "sys/qdisc.h"

/* A zone, a gateway and another zone, two slices between them: what the gateway does with a slice's packets. */

#define PORT    9
#define PAYLOAD 32
#define FRAME   (14 + 4 + 20 + 8 + PAYLOAD) /* with the tag */

enum { ZONE, GATEWAY_DOWN, GATEWAY_UP, HPC, N_ENDS };
enum { RED, BLUE, N_SLICES };

static const uint16_t vlans[N_SLICES] = {10, 20};
static const uint8_t macs[N_ENDS][LINK_ALEN] = {{2, 0, 0, 0, 0, 1},
                                                {2, 0, 0, 0, 0, 2},
                                                {2, 0, 0, 0, 0, 3},
                                                {2, 0, 0, 0, 0, 4}};
static const char *const addresses[N_ENDS][N_SLICES] = {
        {"198.18.0.1/30", "198.18.16.1/30"},
        {"198.18.0.2/30", "198.18.16.2/30"},
        {"198.18.0.5/30", "198.18.16.5/30"},
        {"198.18.0.6/30", "198.18.16.6/30"},
};

struct path {
        struct netns ns[3]; /* zone, gateway, hpc */
        struct netlink *nl[N_ENDS];
        int index[N_ENDS];
        struct slice_filter *filter[N_ENDS];
        struct ip_prefix address[N_ENDS][N_SLICES];
};

static size_t ns_of(size_t end)
{
        return end == ZONE ? 0 : end == HPC ? 2 : 1;
}

static void add_links(struct path *p)
{
        struct link_end ends[N_ENDS] = {{.name = "up"}, {.name = "down"}, {.name = "up"}, {.name = "down"}};
        struct err err = {0};

        for (size_t i = 0; i < N_ENDS; i++) {
                memcpy(ends[i].mac, macs[i], LINK_ALEN);
                ends[i].has_mac = true;
                ends[i].is_quiet = true;
        }
        ends[GATEWAY_UP].n_tx_queues = ends[GATEWAY_UP].n_rx_queues = N_SLICES;
        ends[HPC].n_tx_queues = ends[HPC].n_rx_queues = N_SLICES;
        for (size_t i = 0; i < N_ENDS; i++)
                assert_ok(netlink_open(&p->ns[ns_of(i)], &p->nl[i], &err));
        for (size_t i = 0; i < N_ENDS; i += 2)
                assert_ok(link_add_veth(p->nl[i], &ends[i], &ends[i + 1], &p->ns[ns_of(i + 1)], &err));
        for (size_t i = 0; i < N_ENDS; i++) {
                assert_ok(link_find(p->nl[i], ends[i].name, &p->index[i], &err));
                assert_ok(link_set_gso_max_segs(p->nl[i], p->index[i], 1, &err));
                assert_ok(link_set_up(p->nl[i], p->index[i], true, &err));
        }
        for (size_t i = 0; i < N_ENDS; i++)
                assert_ok(link_wait_running(p->nl[i], p->index[i], LONG_NS, &err));
}

static void add_addresses(struct path *p)
{
        struct ip_prefix everything[N_SLICES];
        struct err err = {0};

        for (size_t i = 0; i < N_ENDS; i++)
                for (size_t s = 0; s < N_SLICES; s++) {
                        assert_int_equal(ip_prefix_parse(addresses[i][s], &p->address[i][s]), 0);
                        assert_ok(ip_address_add(p->nl[i], p->index[i], &p->address[i][s], &err));
                }
        assert_int_equal(ip_prefix_parse("198.18.0.0/20", &everything[RED]), 0);
        assert_int_equal(ip_prefix_parse("198.18.16.0/20", &everything[BLUE]), 0);
        for (size_t i = 0; i < N_ENDS; i++)
                for (size_t s = 0; s < N_SLICES; s++)
                        assert_ok(ip_neighbour_add(p->nl[i], p->index[i], &p->address[i ^ 1][s], macs[i ^ 1], &err));
        for (size_t s = 0; s < N_SLICES; s++) {
                assert_ok(ip_route_add(p->nl[ZONE], p->index[ZONE], &everything[s], &p->address[GATEWAY_DOWN][s], NULL,
                                       &err));
                assert_ok(ip_route_add(p->nl[HPC], p->index[HPC], &everything[s], &p->address[GATEWAY_UP][s], NULL,
                                       &err));
        }
        assert_ok(netns_sysctl_write(&p->ns[1], "ipv4/ip_forward", "1", &err));
}

/* Slice i leaves the gateway by transmit queue i + 1 and class (0x11 + i):1. */
static void add_filters(struct path *p)
{
        static const char *const networks[N_SLICES] = {"198.18.0.0/20", "198.18.16.0/20"};
        struct err err = {0};

        for (size_t i = 0; i < N_ENDS; i++) {
                struct slice_config config = {.n_leaving = N_SLICES, .n_entering = N_SLICES};

                for (size_t s = 0; s < N_SLICES; s++) {
                        struct ip_prefix network;

                        assert_int_equal(ip_prefix_parse(networks[s], &network), 0);
                        slice_rule_init(&config.leaving[s], vlans[s]);
                        assert_int_equal(slice_rule_allow(&config.leaving[s], &network, &network), 0);
                        config.entering[s] = config.leaving[s];
                        if (i != GATEWAY_UP)
                                continue;
                        config.leaving[s].queue = (uint16_t)(s + 1);
                        config.leaving[s].classid = QDISC_HANDLE(0x11 + s, 1);
                }
                assert_ok(slice_filter_attach(p->nl[i], p->index[i], &config, &p->filter[i], &err));
        }
}

/* mq, a tree under each queue, the slice's class and its leaf; what names no class of the tree goes to class 2. */
static void add_trees(struct path *p)
{
        struct netlink *nl = p->nl[GATEWAY_UP];
        int index = p->index[GATEWAY_UP];
        struct err err = {0};

        assert_ok(qdisc_add_mq(nl, index, QDISC_HANDLE(1, 0), &err));
        for (uint32_t s = 0; s < N_SLICES; s++) {
                struct qdisc_htb htb = {.parent = QDISC_HANDLE(1, s + 1),
                                        .handle = QDISC_HANDLE(0x11 + s, 0),
                                        .default_minor = 2,
                                        .overhead_bytes = QDISC_TAG_BYTES};
                struct qdisc_htb_class class = {.parent = htb.handle,
                                                .classid = QDISC_HANDLE(0x11 + s, 1),
                                                .rate_bps = 400000000};

                assert_ok(qdisc_add_htb(nl, index, &htb, &err));
                assert_ok(qdisc_add_htb_class(nl, index, &class, &err));
                assert_ok(
                        qdisc_add_fifo(nl, index, class.classid, QDISC_HANDLE(0x21 + s, 0), QDISC_PACKETS, 100, &err));
                class.classid = QDISC_HANDLE(0x11 + s, 2);
                assert_ok(qdisc_add_htb_class(nl, index, &class, &err));
        }
}

static void path_up(struct path *p)
{
        struct err err = {0};

        *p = (struct path){.ns = {NETNS_INIT, NETNS_INIT, NETNS_INIT}};
        for (size_t i = 0; i < ARRAY_SIZE(p->ns); i++)
                assert_ok(netns_new(&p->ns[i], &err));
        add_links(p);
        add_addresses(p);
        add_filters(p);
        add_trees(p);
}

static void path_down(struct path *p)
{
        for (size_t i = 0; i < N_ENDS; i++) {
                slice_filter_free(p->filter[i]);
                netlink_free(p->nl[i]);
        }
        for (size_t i = 0; i < ARRAY_SIZE(p->ns); i++)
                netns_done(&p->ns[i]);
}

/* Sends @n datagrams of slice @s, and sees each arrive, with a TTL that shows one hop. */
static void send_across(struct path *p, size_t s, size_t n)
{
        int from = udp_socket(&p->ns[0], &p->address[ZONE][s], PORT), yes = 1;
        int to = udp_socket(&p->ns[2], &p->address[HPC][s], PORT);

        assert_int_equal(setsockopt(to, IPPROTO_IP, IP_RECVTTL, &yes, sizeof(yes)), 0);
        for (size_t i = 0; i < n; i++) {
                char buf[64], control[64];
                struct iovec iov = {.iov_base = buf, .iov_len = sizeof(buf)};
                struct msghdr msg = {.msg_iov = &iov,
                                     .msg_iovlen = 1,
                                     .msg_control = control,
                                     .msg_controllen = sizeof(control)};
                struct cmsghdr *cmsg;

                udp_send(from, &p->address[HPC][s], PORT, PAYLOAD);
                assert_int_equal(recvmsg(to, &msg, 0), PAYLOAD);
                cmsg = CMSG_FIRSTHDR(&msg);
                if (!cmsg || cmsg->cmsg_type != IP_TTL)
                        fail_msg("the kernel says nothing about the TTL");
                assert_int_equal(*(int *)CMSG_DATA(cmsg), 63);
        }
        close(from);
        close(to);
}

static void read_uplink(struct path *p, struct qdisc_list *list)
{
        struct err err = {0};

        qdisc_list_done(list);
        assert_ok(qdisc_read(p->nl[GATEWAY_UP], p->index[GATEWAY_UP], list, &err));
}

static void assert_passed(const struct qdisc_list *list, uint32_t handle, bool is_class, uint64_t packets)
{
        const struct qdisc_counters *c = qdisc_list_find(list, handle, is_class);

        if (!c)
                fail_msg("there is no %x", handle);
        assert_int_equal(c->packets, packets);
        assert_int_equal(c->bytes, packets * FRAME);
        assert_int_equal(c->drops, 0);
}

static void slices_land_in_their_queue_and_class(void **state)
{
        _cleanup_qdisc_list_ struct qdisc_list list = {0};
        struct slice_counters c;
        struct err err = {0};
        struct path p;

        path_up(&p);
        send_across(&p, RED, 11);
        send_across(&p, BLUE, 23);
        read_uplink(&p, &list);
        assert_passed(&list, QDISC_HANDLE(1, 1), true, 11); /* transmit queue 1 */
        assert_passed(&list, QDISC_HANDLE(1, 2), true, 23);
        assert_passed(&list, QDISC_HANDLE(0x11, 0), false, 11);
        assert_passed(&list, QDISC_HANDLE(0x12, 0), false, 23);
        assert_passed(&list, QDISC_HANDLE(0x11, 1), true, 11);
        assert_passed(&list, QDISC_HANDLE(0x12, 1), true, 23);
        assert_passed(&list, QDISC_HANDLE(0x11, 2), true, 0);
        assert_passed(&list, QDISC_HANDLE(0x12, 2), true, 0);
        assert_int_equal(qdisc_list_find(&list, QDISC_HANDLE(0x11, 0), false)->direct_packets, 0);
        assert_int_equal(qdisc_list_find(&list, QDISC_HANDLE(0x12, 0), false)->direct_packets, 0);

        assert_ok(slice_filter_read(p.filter[GATEWAY_UP], &c, &err));
        assert_int_equal(c.leaving[RED].packets, 11);
        assert_int_equal(c.leaving[RED].bytes, 11 * FRAME);
        assert_int_equal(c.leaving[BLUE].packets, 23);
        assert_ok(slice_filter_read(p.filter[GATEWAY_DOWN], &c, &err));
        assert_int_equal(c.entering[RED].packets, 11);
        assert_int_equal(c.entering[BLUE].packets, 23);
        path_down(&p);
}

/* The measurement behind QDISC_TAG_BYTES: a tag travels beside the packet, and a tree does not see it by itself. */
static void tag_is_not_counted_without_overhead(void **state)
{
        struct qdisc_htb htb = {.parent = QDISC_ROOT, .handle = QDISC_HANDLE(0x11, 0), .default_minor = 1};
        struct qdisc_htb_class class = {.parent = htb.handle, .classid = QDISC_HANDLE(0x11, 1), .rate_bps = 400000000};
        _cleanup_qdisc_list_ struct qdisc_list list = {0};
        const struct qdisc_counters *c;
        struct link_info before, after;
        struct err err = {0};
        struct path p;

        path_up(&p);
        assert_ok(qdisc_delete(p.nl[GATEWAY_UP], p.index[GATEWAY_UP], QDISC_ROOT, &err));
        assert_ok(qdisc_add_htb(p.nl[GATEWAY_UP], p.index[GATEWAY_UP], &htb, &err));
        assert_ok(qdisc_add_htb_class(p.nl[GATEWAY_UP], p.index[GATEWAY_UP], &class, &err));
        assert_ok(link_read(p.nl[HPC], p.index[HPC], &before, &err));
        send_across(&p, RED, 9);
        read_uplink(&p, &list);
        c = qdisc_list_find(&list, class.classid, true);
        if (!c)
                fail_msg("the class is not there");
        assert_int_equal(c->packets, 9);
        assert_int_equal(c->bytes, 9 * (FRAME - QDISC_TAG_BYTES));
        assert_ok(link_read(p.nl[HPC], p.index[HPC], &after, &err));
        assert_int_equal(after.counters.rx_bytes - before.counters.rx_bytes, 9 * (FRAME - QDISC_TAG_BYTES));
        path_down(&p);
}

/* The way back crosses the gateway, too, but not its uplink's queues. */
static void replies_take_the_other_queue(void **state)
{
        _cleanup_qdisc_list_ struct qdisc_list list = {0};
        struct slice_counters c;
        struct err err = {0};
        struct path p;
        char buf[64];
        int from, to;

        path_up(&p);
        from = udp_socket(&p.ns[2], &p.address[HPC][BLUE], PORT);
        to = udp_socket(&p.ns[0], &p.address[ZONE][BLUE], PORT);
        for (size_t i = 0; i < 5; i++) {
                udp_send(from, &p.address[ZONE][BLUE], PORT, PAYLOAD);
                assert_int_equal(recv(to, buf, sizeof(buf), 0), PAYLOAD);
        }
        read_uplink(&p, &list);
        assert_passed(&list, QDISC_HANDLE(1, 0), false, 0);
        assert_ok(slice_filter_read(p.filter[GATEWAY_DOWN], &c, &err));
        assert_int_equal(c.leaving[BLUE].packets, 5);
        close(from);
        close(to);
        path_down(&p);
}

/* A queue without its class: the tree's default takes it, and the counters give that away. */
static void wrong_class_shows_in_the_counters(void **state)
{
        _cleanup_qdisc_list_ struct qdisc_list list = {0};
        struct slice_config config = {.n_leaving = 1};
        struct slice_filter *broken;
        struct ip_prefix network;
        struct err err = {0};
        struct path p;

        path_up(&p);
        assert_int_equal(ip_prefix_parse("198.18.0.0/20", &network), 0);
        slice_rule_init(&config.leaving[0], vlans[RED]);
        assert_int_equal(slice_rule_allow(&config.leaving[0], &network, &network), 0);
        config.leaving[0].queue = 2;
        config.leaving[0].classid = QDISC_HANDLE(0x11, 1); /* of the tree of queue 1 */
        assert_ok(qdisc_delete(p.nl[GATEWAY_UP], p.index[GATEWAY_UP], TC_H_CLSACT, &err));
        assert_ok(slice_filter_attach(p.nl[GATEWAY_UP], p.index[GATEWAY_UP], &config, &broken, &err));
        send_across(&p, RED, 4);
        read_uplink(&p, &list);
        assert_passed(&list, QDISC_HANDLE(0x11, 1), true, 0);
        assert_passed(&list, QDISC_HANDLE(0x12, 1), true, 0);
        assert_passed(&list, QDISC_HANDLE(0x12, 2), true, 4);
        slice_filter_free(broken);
        path_down(&p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(slices_land_in_their_queue_and_class),
                cmocka_unit_test(tag_is_not_counted_without_overhead),
                cmocka_unit_test(replies_take_the_other_queue),
                cmocka_unit_test(wrong_class_shows_in_the_counters),
        };
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        if (can_load_bpf(&err) < 0)
                return test_skip("bpf", err.text);
        stay_on_one_cpu();
        return cmocka_run_group_tests_name("gateway", tests, NULL, NULL);
}
