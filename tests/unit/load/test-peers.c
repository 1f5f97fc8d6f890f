/* SPDX-License-Identifier: Apache-2.0 */
#include "load/peers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define N_PLACES (PEERS_SETS * PEERS_WAYS)

static int set_up(void **state)
{
        struct peers *peers = malloc(sizeof(*peers));

        if (!peers)
                return -1;
        peers_init(peers, 0x1234567890abcdef);
        *state = peers;
        return 0;
}

static int tear_down(void **state)
{
        free(*state);
        return 0;
}

static union address peer_at(uint32_t host, uint16_t port)
{
        union address a = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)}};

        address_set_port(&a, port);
        return a;
}

/* Each address, each port and each session has a sequence of its own. */
static void test_sequences_are_apart(void **state)
{
        union address a = peer_at(0x0a000001, 1000), port = peer_at(0x0a000001, 1001), host = peer_at(0x0a000002, 1000);
        union address v6 = {.v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT}};

        for (uint32_t i = 0; i < 5; i++) {
                assert_int_equal(peers_count(*state, &a, 0, 1 + i), i);
                assert_int_equal(peers_count(*state, &a, 7, 1 + i), i);
                assert_int_equal(peers_count(*state, &port, 0, 1 + i), i);
                assert_int_equal(peers_count(*state, &host, 0, 1 + i), i);
                assert_int_equal(peers_count(*state, &v6, 0, 1 + i), i);
        }
}

static void test_silence_restarts(void **state)
{
        union address a = peer_at(0x0a000001, 1000);

        assert_int_equal(peers_count(*state, &a, 0, 1), 0);
        assert_int_equal(peers_count(*state, &a, 0, 1 + PEERS_IDLE_NS), 1);
        assert_int_equal(peers_count(*state, &a, 0, 2 + 2 * PEERS_IDLE_NS), 0);
}

/* A flood of a million senders: memory is what it was, and one that keeps talking through it is never put out. */
static void test_flood(void **state)
{
        struct peers *peers = *state;
        union address honest = peer_at(0x0a000001, 1000);

        for (uint32_t i = 0; i < 1000000; i++) {
                union address made_up = peer_at(0xc0000000 + i, 1);

                assert_int_equal(peers_count(peers, &made_up, 0, 1 + i), 0);
                if (i % 100 == 0)
                        assert_int_equal(peers_count(peers, &honest, 0, 1 + i), i / 100);
        }
        assert_true(peers->n_evicted >= 1000000 - N_PLACES);
}

/* As many peers as a quarter of the places hardly ever collide so much that one is put out. */
static void test_room(void **state)
{
        struct peers *peers = *state;

        for (uint32_t round = 0; round < 3; round++)
                for (uint32_t i = 0; i < N_PLACES / 4; i++) {
                        union address a = peer_at(0x0a000000 + i, 862);

                        peers_count(peers, &a, 0, 1 + round);
                }
        assert_true(peers->n_evicted < N_PLACES / 100);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_sequences_are_apart, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_silence_restarts, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_flood, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_room, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
