/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

static void namespace_of_the_caller_stays(void **state)
{
        _cleanup_netns_ struct netns before = NETNS_INIT, after = NETNS_INIT, created = NETNS_INIT;
        uint64_t a, b, c;
        struct err err = {0};

        assert_ok(netns_open_self(&before, &err));
        assert_ok(netns_new(&created, &err));
        assert_ok(netns_open_self(&after, &err));
        assert_int_equal(netns_inode(&before, &a), 0);
        assert_int_equal(netns_inode(&after, &b), 0);
        assert_int_equal(netns_inode(&created, &c), 0);
        assert_int_equal(a, b);
        assert_int_not_equal(a, c);
}

struct visit {
        uint64_t inode;
        int result;
};

static int look_around(void *userdata, struct err *err)
{
        _cleanup_netns_ struct netns here = NETNS_INIT;
        struct visit *v = userdata;

        if (netns_open_self(&here, err) < 0 || netns_inode(&here, &v->inode) < 0)
                return -EIO;
        return v->result;
}

static void run_comes_back_after_failure_too(void **state)
{
        _cleanup_netns_ struct netns self = NETNS_INIT, other = NETNS_INIT, after = NETNS_INIT;
        struct visit visits[] = {{.result = 0}, {.result = 42}, {.result = -ENXIO}};
        uint64_t a, b, c;
        struct err err = {0};

        assert_ok(netns_open_self(&self, &err));
        assert_ok(netns_new(&other, &err));
        assert_int_equal(netns_inode(&self, &a), 0);
        assert_int_equal(netns_inode(&other, &b), 0);
        for (size_t i = 0; i < ARRAY_SIZE(visits); i++) {
                assert_int_equal(netns_run(&other, look_around, &visits[i], &err), visits[i].result);
                assert_int_equal(visits[i].inode, b);
                assert_ok(netns_open_self(&after, &err));
                assert_int_equal(netns_inode(&after, &c), 0);
                assert_int_equal(a, c);
                netns_done(&after);
        }
}

/* As one finds the namespaces of a process that holds them. */
static void descriptor_of_a_process_opens(void **state)
{
        _cleanup_netns_ struct netns ns = NETNS_INIT, again = NETNS_INIT;
        uint64_t a, b;
        char path[64];
        struct err err = {0};

        assert_ok(netns_new(&ns, &err));
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), ns.fd);
        assert_ok(netns_open(path, &again, &err));
        assert_int_equal(netns_inode(&ns, &a), 0);
        assert_int_equal(netns_inode(&again, &b), 0);
        assert_int_equal(a, b);
}

static void only_network_namespaces_open(void **state)
{
        const char *paths[] = {"/proc/self/ns/mnt", "/dev/null", "/proc/self/ns/none", "/"};
        struct netns ns = NETNS_INIT;
        struct err err = {0};

        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                assert_true(netns_open(paths[i], &ns, &err) < 0);
                assert_int_equal(ns.fd, -1);
                assert_non_null(strstr(err.text, paths[i]));
        }
}

static void sysctls_are_per_namespace(void **state)
{
        _cleanup_netns_ struct netns one = NETNS_INIT, two = NETNS_INIT;
        char value[16];
        struct err err = {0};

        assert_ok(netns_new(&one, &err));
        assert_ok(netns_new(&two, &err));
        assert_ok(netns_sysctl_write(&one, "ipv4/ip_forward", "1", &err));
        assert_ok(netns_sysctl_write(&two, "ipv4/ip_forward", "0", &err));
        assert_ok(netns_sysctl_read(&one, "ipv4/ip_forward", value, sizeof(value), &err));
        assert_string_equal(value, "1");
        assert_ok(netns_sysctl_read(&two, "ipv4/ip_forward", value, sizeof(value), &err));
        assert_string_equal(value, "0");

        assert_int_equal(netns_sysctl_write(&one, "ipv4/ip_backward", "1", &err), -ENOENT);
        assert_non_null(strstr(err.text, "ip_backward"));
        assert_int_equal(netns_sysctl_write(&one, "../kernel/hostname", "x", &err), -EINVAL);
        assert_int_equal(netns_sysctl_write(&one, "ipv4/ip_forward", "x", &err), -EINVAL);
}

static void passes_udp(struct pair *p, const struct ip_prefix *addresses)
{
        int fds[2];
        char buf[64];

        for (size_t i = 0; i < 2; i++)
                fds[i] = udp_socket(&p->ns[i], &addresses[i], 9);
        for (size_t i = 0; i < 2; i++) {
                udp_send(fds[i], &addresses[1 - i], 9, 32);
                assert_int_equal(recv(fds[1 - i], buf, sizeof(buf), 0), 32);
        }
        for (size_t i = 0; i < 2; i++)
                close(fds[i]);
}

static void veth_passes_udp_of_both_families(void **state)
{
        struct pair p;

        pair_up(&p, 0);
        passes_udp(&p, p.v4);
        passes_udp(&p, p.v6);
        pair_down(&p);
}

/* A datagram of 32 bytes is 60 bytes of IPv4, 74 on Ethernet; nothing else (no ARP) crosses the link. */
static void counters_say_what_was_sent(void **state)
{
        struct link_info before[2], after[2];
        struct err err = {0};
        struct pair p;
        char buf[64];
        int from, to;

        pair_up(&p, 0);
        for (size_t i = 0; i < 2; i++)
                assert_ok(netns_sysctl_write(&p.ns[i], "ipv6/conf/all/disable_ipv6", "1", &err));
        from = udp_socket(&p.ns[0], &p.v4[0], 9);
        to = udp_socket(&p.ns[1], &p.v4[1], 9);
        for (size_t i = 0; i < 2; i++)
                assert_ok(link_read(p.nl[i], p.index[i], &before[i], &err));
        for (size_t i = 0; i < 100; i++) {
                udp_send(from, &p.v4[1], 9, 32);
                assert_int_equal(recv(to, buf, sizeof(buf), 0), 32);
        }
        for (size_t i = 0; i < 2; i++)
                assert_ok(link_read(p.nl[i], p.index[i], &after[i], &err));
        assert_int_equal(after[0].counters.tx_packets - before[0].counters.tx_packets, 100);
        assert_int_equal(after[0].counters.tx_bytes - before[0].counters.tx_bytes, 7400);
        assert_int_equal(after[1].counters.rx_packets - before[1].counters.rx_packets, 100);
        assert_int_equal(after[1].counters.rx_bytes - before[1].counters.rx_bytes, 7400);
        assert_int_equal(after[0].counters.rx_packets, before[0].counters.rx_packets);
        close(from);
        close(to);
        pair_down(&p);
}

static void ends_are_as_ordered(void **state)
{
        _cleanup_netns_ struct netns one = NETNS_INIT, two = NETNS_INIT;
        _cleanup_netlink_ struct netlink *nl_one = NULL, *nl_two = NULL;
        struct link_end left = {.name = "left",
                                .index = 1234,
                                .has_mac = true,
                                .mac = {2, 1, 2, 3, 4, 5},
                                .mtu = 1400,
                                .n_tx_queues = 3,
                                .n_rx_queues = 2};
        struct link_end right = {.name = "right",
                                 .index = 4321,
                                 .has_mac = true,
                                 .mac = {2, 5, 4, 3, 2, 1},
                                 .mtu = 1300,
                                 .n_tx_queues = 1,
                                 .n_rx_queues = 4};
        struct link_info info;
        struct err err = {0};
        int index;

        assert_ok(netns_new(&one, &err));
        assert_ok(netns_new(&two, &err));
        assert_ok(netlink_open(&one, &nl_one, &err));
        assert_ok(netlink_open(&two, &nl_two, &err));
        assert_ok(link_add_veth(nl_one, &left, &right, &two, &err));

        assert_ok(link_read(nl_one, 1234, &info, &err));
        assert_string_equal(info.name, "left");
        assert_memory_equal(info.mac, left.mac, LINK_ALEN);
        assert_int_equal(info.mtu, 1400);
        assert_int_equal(info.n_tx_queues, 3);
        assert_int_equal(info.n_rx_queues, 2);
        assert_false(info.is_up);

        assert_ok(link_find(nl_two, "right", &index, &err));
        assert_int_equal(index, 4321);
        assert_ok(link_set_mtu(nl_two, index, 1350, &err));
        assert_ok(link_set_up(nl_two, index, true, &err));
        assert_ok(link_read(nl_two, index, &info, &err));
        assert_memory_equal(info.mac, right.mac, LINK_ALEN);
        assert_int_equal(info.mtu, 1350);
        assert_int_equal(info.n_rx_queues, 4);
        assert_true(info.is_up);
        assert_false(info.is_running); /* the other end is down */
        assert_int_equal(link_wait_running(nl_two, index, NSEC_PER_MSEC, &err), -ETIMEDOUT);
        assert_non_null(strstr(err.text, "the other end is down"));
        assert_ok(link_set_up(nl_one, 1234, true, &err));
        assert_ok(link_wait_running(nl_two, index, LONG_NS, &err));
        assert_ok(link_wait_running(nl_one, 1234, LONG_NS, &err));
        assert_ok(link_read(nl_two, index, &info, &err));
        assert_true(info.is_running);

        assert_ok(link_delete(nl_one, 1234, &err));
        assert_int_equal(link_read(nl_two, 4321, &info, &err), -ENODEV);
}

static void faults_have_reasons(void **state)
{
        struct link_end a = {.name = "a"}, c = {.name = "c"}, no_name = {.name = ""}, slash = {.name = "a/b"};
        struct err err = {0};
        struct pair p;
        int index;

        pair_up(&p, 0);
        assert_int_equal(link_add_veth(p.nl[0], &a, &c, NULL, &err), -EEXIST);
        assert_int_equal(err.kind, ERR_ENVIRONMENT);
        assert_non_null(strstr(err.text, "cannot create the links a and c"));
        assert_int_equal(link_find(p.nl[0], "c", &index, &err), -ENODEV);
        assert_int_equal(link_add_veth(p.nl[0], &no_name, &c, NULL, &err), -EINVAL);
        assert_int_equal(link_add_veth(p.nl[0], &c, &slash, NULL, &err), -EINVAL);
        assert_int_equal(link_find(p.nl[0], "sixteen-letters-", &index, &err), -EINVAL);
        assert_int_equal(ip_address_add(p.nl[0], p.index[0], &p.v4[0], &err), -EEXIST);
        assert_non_null(strstr(err.text, "198.18.0.1/30"));
        assert_int_equal(ip_address_add(p.nl[0], 999, &p.v4[0], &err), -ENODEV);
        assert_int_equal(link_delete(p.nl[0], 999, &err), -ENODEV);
        assert_int_equal(link_set_mtu(p.nl[0], p.index[0], 1000000, &err), -EINVAL);
        assert_non_null(strstr(err.text, "mtu greater than device maximum")); /* the kernel's own words */
        pair_down(&p);
}

static void routes_lead_through_a_gateway(void **state)
{
        struct ip_prefix far, everything6, far6, gateway, gateway6;
        struct err err = {0};
        struct pair p;
        char buf[64];
        int from, to;

        pair_up(&p, 0);
        assert_int_equal(ip_prefix_parse("198.18.9.9/32", &far), 0);
        assert_int_equal(ip_prefix_parse("2001:2:9::9", &far6), 0);
        assert_int_equal(ip_prefix_parse("::/0", &everything6), 0);
        gateway = p.v4[1];
        gateway6 = p.v6[1];
        assert_ok(ip_address_add(p.nl[1], p.index[1], &far, &err));
        assert_ok(ip_address_add(p.nl[1], p.index[1], &far6, &err));
        assert_ok(ip_address_wait(p.nl[1], &far6, LONG_NS, &err));
        assert_int_equal(ip_address_wait(p.nl[0], &far6, NSEC_PER_MSEC, &err), -ETIMEDOUT);
        assert_non_null(strstr(err.text, "2001:2:9::9"));
        assert_ok(ip_route_add(p.nl[0], p.index[0], &far, &gateway, &p.v4[0], &err));
        assert_ok(ip_route_add(p.nl[0], p.index[0], &everything6, &gateway6, NULL, &err));
        assert_int_equal(ip_route_add(p.nl[0], p.index[0], &far, &gateway, NULL, &err), -EEXIST);

        from = udp_socket(&p.ns[0], &p.v4[0], 9);
        to = udp_socket(&p.ns[1], &far, 9);
        udp_send(from, &far, 9, 8);
        assert_int_equal(recv(to, buf, sizeof(buf), 0), 8);
        close(from);
        close(to);
        from = udp_socket(&p.ns[0], &p.v6[0], 9);
        to = udp_socket(&p.ns[1], &far6, 9);
        udp_send(from, &far6, 9, 8);
        assert_int_equal(recv(to, buf, sizeof(buf), 0), 8);
        close(from);
        close(to);
        pair_down(&p);
}

/* The kernel has 8021q, or says by name that it has not. */
static void vlan_devices_or_a_reason(void **state)
{
        struct link_info info;
        struct err err = {0};
        struct pair p;
        int r, index;

        pair_up(&p, 0);
        r = link_add_vlan(p.nl[0], p.index[0], "a.10", 10, &err);
        if (r == 0) {
                assert_ok(link_find(p.nl[0], "a.10", &index, &err));
                assert_ok(link_read(p.nl[0], index, &info, &err));
                assert_memory_equal(info.mac, pair_mac[0], LINK_ALEN);
        } else {
                assert_int_equal(r, -EOPNOTSUPP);
                assert_int_equal(err.kind, ERR_UNSUPPORTED);
                assert_non_null(strstr(err.text, "802.1Q link a.10"));
        }
        pair_down(&p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(namespace_of_the_caller_stays), cmocka_unit_test(run_comes_back_after_failure_too),
                cmocka_unit_test(descriptor_of_a_process_opens), cmocka_unit_test(only_network_namespaces_open),
                cmocka_unit_test(sysctls_are_per_namespace),     cmocka_unit_test(veth_passes_udp_of_both_families),
                cmocka_unit_test(counters_say_what_was_sent),    cmocka_unit_test(ends_are_as_ordered),
                cmocka_unit_test(faults_have_reasons),           cmocka_unit_test(routes_lead_through_a_gateway),
                cmocka_unit_test(vlan_devices_or_a_reason),
        };
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
