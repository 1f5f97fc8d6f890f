/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "sys/capability.h"
#include "sys/classifier.h"
#include "sys/qdisc.h"

#define PORT    9
#define PAYLOAD 32
#define PACKET4 (20 + 8 + PAYLOAD)
#define PACKET6 (40 + 8 + PAYLOAD)

static int try_send(int fd, const struct ip_prefix *to, uint16_t port)
{
        struct sockaddr_storage where;
        socklen_t len = ip_prefix_sockaddr(to, port, &where);

        return sendto(fd, "x", 1, 0, (struct sockaddr *)&where, len) < 0 ? -errno : 0;
}

static void add_class(struct pair *p, uint16_t minor)
{
        struct qdisc_htb_class class = {.parent = QDISC_HANDLE(1, 0),
                                        .classid = QDISC_HANDLE(1, minor),
                                        .rate_bps = 1000000000};
        struct err err = {0};

        assert_ok(qdisc_add_htb_class(p->nl[0], p->index[0], &class, &err));
}

static void send_some(struct pair *p, const struct ip_prefix *addresses, size_t n)
{
        int from = udp_socket(&p->ns[0], &addresses[0], PORT), to = udp_socket(&p->ns[1], &addresses[1], PORT);
        char buf[64];

        for (size_t i = 0; i < n; i++) {
                udp_send(from, &addresses[1], PORT, PAYLOAD);
                assert_int_equal(recv(to, buf, sizeof(buf), 0), PAYLOAD);
        }
        close(from);
        close(to);
}

static void networks_get_their_class(void **state)
{
        struct qdisc_htb htb = {.parent = QDISC_ROOT, .handle = QDISC_HANDLE(1, 0), .default_minor = 0xff};
        static const char *const networks[] = {"198.18.0.0/30", "198.18.1.0/30", "2001:2::/112"};
        static const char *const blue_texts[] = {"198.18.1.1/30", "198.18.1.2/30"};
        _cleanup_qdisc_list_ struct qdisc_list list = {0};
        struct classifier_rule rules[ARRAY_SIZE(networks)];
        struct classifier_count counts[ARRAY_SIZE(networks)];
        struct ip_prefix blue[2];
        struct err err = {0};
        struct pair p;

        pair_up(&p, 1);
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(ip_prefix_parse(blue_texts[i], &blue[i]), 0);
                assert_ok(ip_address_add(p.nl[i], p.index[i], &blue[i], &err));
        }
        for (size_t i = 0; i < 2; i++)
                assert_ok(ip_neighbour_add(p.nl[i], p.index[i], &blue[1 - i], pair_mac[1 - i], &err));
        assert_ok(qdisc_add_htb(p.nl[0], p.index[0], &htb, &err));
        add_class(&p, 0xff);
        for (uint16_t i = 0; i < ARRAY_SIZE(networks); i++) {
                assert_int_equal(ip_prefix_parse(networks[i], &rules[i].network), 0);
                rules[i].classid = QDISC_HANDLE(1, 0x10 + i);
                add_class(&p, (uint16_t)(0x10 + i));
        }
        assert_ok(classifier_add(&p.ns[0], rules, ARRAY_SIZE(rules), &err));

        send_some(&p, p.v4, 3);
        send_some(&p, blue, 5);
        send_some(&p, p.v6, 7);
        assert_ok(qdisc_read(p.nl[0], p.index[0], &list, &err));
        assert_int_equal(qdisc_list_find(&list, QDISC_HANDLE(1, 0x10), true)->packets, 3);
        assert_int_equal(qdisc_list_find(&list, QDISC_HANDLE(1, 0x11), true)->packets, 5);
        assert_int_equal(qdisc_list_find(&list, QDISC_HANDLE(1, 0x12), true)->packets, 7);
        assert_int_equal(qdisc_list_find(&list, QDISC_HANDLE(1, 0x10), true)->bytes, 3 * (14 + PACKET4));

        assert_ok(classifier_read(&p.ns[0], counts, ARRAY_SIZE(counts), &err));
        assert_int_equal(counts[0].packets, 3);
        assert_int_equal(counts[0].bytes, 3 * PACKET4);
        assert_int_equal(counts[1].packets, 5);
        assert_int_equal(counts[2].packets, 7);
        assert_int_equal(counts[2].bytes, 7 * PACKET6);
        pair_down(&p);
}

/* What belongs to no network does not leave; loopback does not count. */
static void others_are_dropped(void **state)
{
        struct classifier_rule rule = {.classid = QDISC_HANDLE(1, 1)};
        struct classifier_count count;
        struct err err = {0};
        struct ip_prefix home;
        struct pair p;
        int from, to;
        char buf[64];

        pair_up(&p, 1);
        assert_int_equal(ip_prefix_parse("2001:2::/112", &rule.network), 0);
        assert_int_equal(ip_prefix_parse("127.0.0.1", &home), 0);
        assert_ok(classifier_add(&p.ns[0], &rule, 1, &err));
        from = udp_socket(&p.ns[0], &p.v4[0], PORT);
        to = udp_socket(&p.ns[1], &p.v4[1], PORT);
        assert_int_equal(try_send(from, &p.v4[1], PORT), -EPERM);
        close(from);
        send_some(&p, p.v6, 1);
        assert_int_equal(recv(to, buf, sizeof(buf), MSG_DONTWAIT), -1);
        close(to);
        from = udp_socket(&p.ns[0], &home, PORT);
        to = udp_socket(&p.ns[0], &home, PORT + 1);
        udp_send(from, &home, PORT + 1, PAYLOAD);
        assert_int_equal(recv(to, buf, sizeof(buf), 0), PAYLOAD);
        close(from);
        close(to);
        assert_ok(classifier_read(&p.ns[0], &count, 1, &err));
        assert_int_equal(count.packets, 1);
        pair_down(&p);
}

/* A sink takes its port and networks, whatever listens there. */
static void sink_counts_and_drops(void **state)
{
        struct classifier_count counts[2];
        struct ip_prefix networks[2];
        struct err err = {0};
        struct pair p;
        int from, to, kept;
        char buf[64];

        pair_up(&p, 1);
        assert_int_equal(ip_prefix_parse("198.18.1.0/30", &networks[0]), 0);
        assert_int_equal(ip_prefix_parse("198.18.0.0/30", &networks[1]), 0);
        assert_ok(classifier_sink_add(&p.ns[1], PORT, networks, 2, &err));
        assert_ok(classifier_sink_add(&p.ns[1], PORT + 2, networks, 2, &err));
        from = udp_socket(&p.ns[0], &p.v4[0], PORT);
        to = udp_socket(&p.ns[1], &p.v4[1], PORT);
        kept = udp_socket(&p.ns[1], &p.v4[1], PORT + 1);
        for (size_t i = 0; i < 3; i++)
                udp_send(from, &p.v4[1], PORT, PAYLOAD);
        udp_send(from, &p.v4[1], PORT + 1, PAYLOAD);
        assert_int_equal(recv(kept, buf, sizeof(buf), 0), PAYLOAD);
        assert_int_equal(recv(to, buf, sizeof(buf), MSG_DONTWAIT), -1);
        assert_ok(classifier_sink_read(&p.ns[1], PORT, counts, 2, &err));
        assert_int_equal(counts[0].packets, 0);
        assert_int_equal(counts[1].packets, 3);
        assert_int_equal(counts[1].bytes, 3 * PACKET4);
        assert_ok(classifier_sink_read(&p.ns[1], PORT + 2, counts, 2, &err));
        assert_int_equal(counts[1].packets, 0);
        close(from);
        close(to);
        close(kept);
        pair_down(&p);
}

static void absent_rules_are_an_error(void **state)
{
        struct classifier_count counts[2] = {0};
        struct classifier_rule rule = {.network = {.family = AF_INET}, .classid = QDISC_HANDLE(1, 1)};
        _cleanup_netns_ struct netns ns = NETNS_INIT;
        struct err err = {0};

        assert_ok(netns_new(&ns, &err));
        assert_int_equal(classifier_read(&ns, counts, 1, &err), -EOPNOTSUPP);
        assert_non_null(strstr(err.text, "nftables refuses"));
        assert_ok(classifier_add(&ns, &rule, 1, &err));
        assert_ok(classifier_read(&ns, counts, 1, &err));
        assert_int_equal(classifier_read(&ns, counts, 2, &err), -ENOENT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(networks_get_their_class),
                cmocka_unit_test(others_are_dropped),
                cmocka_unit_test(sink_counts_and_drops),
                cmocka_unit_test(absent_rules_are_an_error),
        };
        struct capability nft;
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        assert_int_equal(capability_detect("nft", &nft), 0);
        if (!nft.is_present)
                return test_skip("nft", nft.detail);
        return cmocka_run_group_tests_name("classifier", tests, NULL, NULL);
}
