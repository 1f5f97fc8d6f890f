/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the tests with real namespaces share. Every test builds its own namespaces and leaves none. */

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/macro.h"
#include "sys/ip.h"
#include "sys/link.h"
#include "sys/netlink.h"
#include "sys/netns.h"
#include "sys/slice.h"
#include "tests/skip.h"

#define LONG_NS (20 * NSEC_PER_SEC)

/* The reason is shown where an assertion on a result fails. */
#define assert_ok(call)                                                                                                \
        do {                                                                                                           \
                int _r = (call);                                                                                       \
                if (_r < 0)                                                                                            \
                        print_error("%s: %s\n", #call, err.text);                                                      \
                assert_true(_r >= 0);                                                                                  \
        } while (0)

/* Two namespaces joined by a pair of links "a" and "b", each with one address of either family, and each other's MAC
 * known. */
struct pair {
        struct netns ns[2];
        struct netlink *nl[2];
        int index[2];
        struct ip_prefix v4[2], v6[2];
};

static const uint8_t pair_mac[2][LINK_ALEN] = {{2, 0, 0, 0, 0, 0xa}, {2, 0, 0, 0, 0, 0xb}};

static inline void pair_up(struct pair *p, uint32_t n_queues)
{
        const char *v4[] = {"198.18.0.1/30", "198.18.0.2/30"}, *v6[] = {"2001:2::1/112", "2001:2::2/112"};
        struct link_end ends[] = {
                {.name = "a", .has_mac = true, .n_tx_queues = n_queues, .n_rx_queues = n_queues},
                {.name = "b", .has_mac = true, .n_tx_queues = n_queues, .n_rx_queues = n_queues},
        };
        struct err err = {0};

        *p = (struct pair){.ns = {NETNS_INIT, NETNS_INIT}};
        for (size_t i = 0; i < 2; i++) {
                memcpy(ends[i].mac, pair_mac[i], LINK_ALEN);
                assert_int_equal(ip_prefix_parse(v4[i], &p->v4[i]), 0);
                assert_int_equal(ip_prefix_parse(v6[i], &p->v6[i]), 0);
                assert_ok(netns_new(&p->ns[i], &err));
                assert_ok(netlink_open(&p->ns[i], &p->nl[i], &err));
                assert_ok(link_set_up_loopback(p->nl[i], &err));
        }
        assert_ok(link_add_veth(p->nl[0], &ends[0], &ends[1], &p->ns[1], &err));
        for (size_t i = 0; i < 2; i++) {
                assert_ok(link_find(p->nl[i], ends[i].name, &p->index[i], &err));
                assert_ok(link_set_gso_max_segs(p->nl[i], p->index[i], 1, &err));
                assert_ok(link_set_up(p->nl[i], p->index[i], true, &err));
        }
        for (size_t i = 0; i < 2; i++) {
                assert_ok(link_wait_running(p->nl[i], p->index[i], LONG_NS, &err));
                assert_ok(ip_address_add(p->nl[i], p->index[i], &p->v4[i], &err));
                assert_ok(ip_address_add(p->nl[i], p->index[i], &p->v6[i], &err));
                assert_ok(ip_address_wait(p->nl[i], &p->v4[i], LONG_NS, &err));
                assert_ok(ip_address_wait(p->nl[i], &p->v6[i], LONG_NS, &err));
                assert_ok(ip_neighbour_add(p->nl[i], p->index[i], &p->v4[1 - i], pair_mac[1 - i], &err));
                assert_ok(ip_neighbour_add(p->nl[i], p->index[i], &p->v6[1 - i], pair_mac[1 - i], &err));
        }
}

static inline void pair_down(struct pair *p)
{
        for (size_t i = 0; i < 2; i++) {
                netlink_free(p->nl[i]);
                netns_done(&p->ns[i]);
        }
        *p = (struct pair){.ns = {NETNS_INIT, NETNS_INIT}};
}

/* A UDP socket in a namespace, bound to an address, that gives up a receive after a while. */
static inline int udp_socket(const struct netns *ns, const struct ip_prefix *address, uint16_t port)
{
        struct timeval patience = {.tv_sec = 20};
        struct sockaddr_storage where;
        socklen_t len = ip_prefix_sockaddr(address, port, &where);
        struct err err = {0};
        int fd = netns_socket(ns, address->family, SOCK_DGRAM, 0, &err);

        assert_true(fd >= 0);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&where, len), 0);
        return fd;
}

static inline void udp_send(int fd, const struct ip_prefix *to, uint16_t port, size_t payload_bytes)
{
        static const uint8_t zeros[65536];
        struct sockaddr_storage where;
        socklen_t len = ip_prefix_sockaddr(to, port, &where);

        assert_int_equal(sendto(fd, zeros, payload_bytes, 0, (struct sockaddr *)&where, len), payload_bytes);
}

/* A link's receiver works on the CPU that sent, in the order sent: on one CPU, what was sent before a packet that has
 * arrived has been decided too. */
static inline void stay_on_one_cpu(void)
{
        cpu_set_t one;
        int cpu = sched_getcpu();

        assert_true(cpu >= 0);
        CPU_ZERO(&one);
        CPU_SET((size_t)cpu, &one);
        assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* Whether this process may make namespaces: the capability "netns". */
static inline int can_make_netns(struct err *err)
{
        _cleanup_netns_ struct netns ns = NETNS_INIT;

        return netns_new(&ns, err);
}

/* Whether BPF may be loaded here: the capability "bpf". */
static inline int can_load_bpf(struct err *err)
{
        static const struct slice_config empty = {0};
        _cleanup_slice_filter_ struct slice_filter *filter = NULL;
        _cleanup_netlink_ struct netlink *nl = NULL;
        _cleanup_netns_ struct netns ns = NETNS_INIT;
        int r;

        r = netns_new(&ns, err);
        if (r == 0)
                r = netlink_open(&ns, &nl, err);
        return r < 0 ? r : slice_filter_attach(nl, 1, &empty, &filter, err);
}
