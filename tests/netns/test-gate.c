/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sys/gate.h"

/* Namespace 0 is the command's, without any check; the gate is at the other end, in namespace 1. */
struct wall {
        struct pair pair;
        struct gate *gate;
};

#define ENTRIES 8

static void wall_up(struct wall *w)
{
        _cleanup_netns_ struct netns self = NETNS_INIT;
        struct err err = {0};

        *w = (struct wall){0};
        pair_up(&w->pair, 1);
        assert_ok(netns_open_self(&self, &err));
        assert_ok(netns_enter(&w->pair.ns[1], &err)); /* where the index is one of its links' */
        assert_ok(gate_attach(w->pair.nl[1], w->pair.index[1], (struct ip_prefix[]){w->pair.v4[0], w->pair.v6[0]},
                              ENTRIES, &w->gate, &err));
        assert_ok(netns_enter(&self, &err));
}

static void wall_down(struct wall *w)
{
        gate_free(w->gate);
        pair_down(&w->pair);
}

static void open_for(struct wall *w, const struct ip_prefix *address, int protocol, uint16_t port, int64_t expires_ns)
{
        struct err err = {0};

        assert_ok(gate_open(w->gate, address, protocol, port, expires_ns, &err));
}

/* Whether a datagram between these ports arrives. On one CPU it has when the call is through, or never does. */
static bool arrives_from(struct wall *w, unsigned from, uint16_t from_port, const struct ip_prefix *to, uint16_t port)
{
        const struct ip_prefix *mine = to->family == AF_INET ? w->pair.v4 : w->pair.v6;
        int listener = udp_socket(&w->pair.ns[1 - from], to, port);
        int sender = udp_socket(&w->pair.ns[from], &mine[from], from_port);
        char buf[8];
        bool arrived;

        udp_send(sender, to, port, 1);
        arrived = recv(listener, buf, sizeof(buf), MSG_DONTWAIT) == 1;
        close(sender);
        close(listener);
        return arrived;
}

static bool leaves(struct wall *w, const struct ip_prefix *to, uint16_t port)
{
        return arrives_from(w, 0, 7, to, port);
}

/* Whether a listener gets a connection, whose first segment is sent when this returns. */
static bool connects(struct wall *w, unsigned from, const struct ip_prefix *to, uint16_t port)
{
        struct sockaddr_storage where;
        socklen_t len = ip_prefix_sockaddr(to, port, &where);
        struct err err = {0};
        int listener = netns_socket(&w->pair.ns[1 - from], to->family, SOCK_STREAM | SOCK_NONBLOCK, 0, &err);
        int fd = netns_socket(&w->pair.ns[from], to->family, SOCK_STREAM | SOCK_NONBLOCK, 0, &err), yes = 1, got;

        assert_true(listener >= 0 && fd >= 0);
        assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);
        assert_int_equal(bind(listener, (struct sockaddr *)&where, len), 0);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&where, len), -1);
        assert_int_equal(errno, EINPROGRESS);
        /* all three segments of the handshake go within the call; without them nothing waits here */
        got = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        close(fd);
        close(listener);
        if (got >= 0)
                close(got);
        return got >= 0;
}

static void nothing_leaves_that_is_not_open(void **state)
{
        struct gate_count counts[GATE_COUNTERS];
        struct err err = {0};
        struct wall w;

        wall_up(&w);
        assert_false(leaves(&w, &w.pair.v4[1], 1000));
        assert_false(leaves(&w, &w.pair.v6[1], 1000));
        open_for(&w, &w.pair.v4[1], IPPROTO_UDP, 1000, 0);
        open_for(&w, &w.pair.v6[1], IPPROTO_UDP, 1001, 0);
        assert_true(leaves(&w, &w.pair.v4[1], 1000));
        assert_true(leaves(&w, &w.pair.v6[1], 1001));
        assert_false(leaves(&w, &w.pair.v4[1], 1001));
        assert_false(leaves(&w, &w.pair.v6[1], 1000));
        assert_ok(gate_read(w.gate, counts, &err));
        assert_int_equal(counts[GATE_LEFT].packets, 2);
        assert_true(counts[GATE_STOPPED].packets >= 4); /* and what the kernel says for itself */
        assert_ok(gate_close(w.gate, &w.pair.v4[1], IPPROTO_UDP, 1000, &err));
        assert_false(leaves(&w, &w.pair.v4[1], 1000));
        wall_down(&w);
}

static void every_port_is_all_but_one(void **state)
{
        struct wall w;

        wall_up(&w);
        open_for(&w, &w.pair.v4[1], IPPROTO_UDP, 0, 0);
        assert_true(leaves(&w, &w.pair.v4[1], 1));
        assert_true(leaves(&w, &w.pair.v4[1], 65535));
        assert_false(leaves(&w, &w.pair.v4[1], 853)); /* DNS over TLS */
        wall_down(&w);
}

static void an_entry_is_open_until_its_time(void **state)
{
        struct wall w;

        wall_up(&w);
        open_for(&w, &w.pair.v4[1], IPPROTO_UDP, 1000, clock_now_ns(CLOCK_MONOTONIC) - 1);
        assert_false(leaves(&w, &w.pair.v4[1], 1000));
        open_for(&w, &w.pair.v4[1], IPPROTO_UDP, 1000, clock_now_ns(CLOCK_MONOTONIC) + 3600 * NSEC_PER_SEC);
        assert_true(leaves(&w, &w.pair.v4[1], 1000));
        open_for(&w, &w.pair.v4[1], IPPROTO_UDP, 1000, clock_now_ns(CLOCK_MONOTONIC) - 1);
        assert_false(leaves(&w, &w.pair.v4[1], 1000));
        wall_down(&w);
}

static void no_more_are_open_than_was_said(void **state)
{
        struct err err = {0};
        struct wall w;

        wall_up(&w);
        for (uint16_t port = 1; port <= ENTRIES; port++)
                open_for(&w, &w.pair.v4[1], IPPROTO_TCP, port, 0);
        assert_int_equal(gate_open(w.gate, &w.pair.v4[1], IPPROTO_TCP, ENTRIES + 1, 0, &err), -E2BIG);
        open_for(&w, &w.pair.v4[1], IPPROTO_TCP, ENTRIES, 0); /* is there */
        assert_ok(gate_close(w.gate, &w.pair.v4[1], IPPROTO_TCP, 1, &err));
        open_for(&w, &w.pair.v4[1], IPPROTO_TCP, ENTRIES + 1, 0);
        wall_down(&w);
}

static void nothing_enters_by_itself(void **state)
{
        struct wall w;

        wall_up(&w);
        open_for(&w, &w.pair.v4[1], IPPROTO_UDP, 1000, 0);
        assert_true(arrives_from(&w, 1, 1000, &w.pair.v4[0], 7)); /* as an answer does */
        assert_false(arrives_from(&w, 1, 1001, &w.pair.v4[0], 7));
        assert_false(arrives_from(&w, 1, 1000, &w.pair.v6[0], 7));
        wall_down(&w);
}

static void connections_are_opened_from_inside_alone(void **state)
{
        struct wall w;

        wall_up(&w);
        for (int i = 0; i < 2; i++) {
                const struct ip_prefix *far = i == 0 ? &w.pair.v4[1] : &w.pair.v6[1];

                assert_false(connects(&w, 0, far, 1000));
                open_for(&w, far, IPPROTO_TCP, 1000, 0);
                assert_true(connects(&w, 0, far, 1000));
                assert_false(connects(&w, 0, far, 1001));
                open_for(&w, far, IPPROTO_TCP, 0, 0); /* whatever port a stranger comes from */
                assert_false(connects(&w, 1, i == 0 ? &w.pair.v4[0] : &w.pair.v6[0], 1000));
        }
        wall_down(&w);
}

/* A supervisor that is killed closes all it has, and the command lives a moment longer. */
static void it_stays_when_nobody_holds_it(void **state)
{
        struct wall w;

        wall_up(&w);
        open_for(&w, &w.pair.v4[1], IPPROTO_UDP, 1000, 0);
        gate_free(w.gate);
        w.gate = NULL;
        assert_true(leaves(&w, &w.pair.v4[1], 1000));
        assert_false(leaves(&w, &w.pair.v4[1], 1001));
        wall_down(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_leaves_that_is_not_open),
                cmocka_unit_test(every_port_is_all_but_one),
                cmocka_unit_test(an_entry_is_open_until_its_time),
                cmocka_unit_test(no_more_are_open_than_was_said),
                cmocka_unit_test(nothing_enters_by_itself),
                cmocka_unit_test(connections_are_opened_from_inside_alone),
                cmocka_unit_test(it_stays_when_nobody_holds_it),
        };
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        if (can_load_bpf(&err) < 0)
                return test_skip("bpf", err.text);
        stay_on_one_cpu();
        return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
