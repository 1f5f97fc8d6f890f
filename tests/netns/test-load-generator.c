/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "tests/netns/load-support.h"

/* Load between two namespaces: what was offered, what the kernel took and what arrived agree to the packet. */

static void test_paced(void **state)
{
        static const uint32_t bursts[] = {1, 10};
        struct pair *p = *state;

        for (size_t i = 0; i < 2 * ARRAY_SIZE(bursts); i++) {
                union address where = address_of(i % 2 ? &p->v6[1] : &p->v4[1], LOAD_PORT);
                _cleanup_receiver_ struct receiver *receiver = make_receiver(&where, RECEIVER_SOCKET);
                const struct receiver_counts *got = receiver_counts(receiver);
                _cleanup_generator_ struct generator *generator =
                        make_generator(&where, (struct generator_config){.rate_bps = BITS_OF(PACKETS_RATE),
                                                                         .burst = bursts[i / 2]});
                struct generator_counts sent;

                run_load(p, generator, receiver);
                generator_counts(generator, &sent);
                check_load(&sent, PACKETS_RATE * DURATION_NS / NSEC_PER_SEC);
                assert_int_equal(got->packets + got->overflow, sent.sent_packets);
                assert_int_equal(got->bytes, got->packets * PACKET_BYTES);
                assert_int_equal(got->streams, 1);
                assert_int_equal(got->duplicates, 0);
                assert_int_equal(got->reordered, 0);
                assert_int_equal(got->unmarked, 0);
        }
}

/* At rate 0 the time passes and nothing is sent. */
static void test_rate_zero(void **state)
{
        struct pair *p = *state;
        union address where = address_of(&p->v4[1], LOAD_PORT);
        _cleanup_receiver_ struct receiver *receiver = make_receiver(&where, RECEIVER_SOCKET);
        _cleanup_generator_ struct generator *generator = make_generator(&where, (struct generator_config){0});
        struct generator_counts sent;

        run_load(p, generator, receiver);
        generator_counts(generator, &sent);
        assert_int_equal(sent.offered_packets, 0);
        assert_int_equal(sent.sent_packets, 0);
        assert_int_equal(sent.duration_ns, DURATION_NS);
        assert_int_equal(receiver_counts(receiver)->packets, 0);
}

/* As fast as it goes: each packet that was due is accounted for. What the kernel drops on the way (its backlog, and a
 * full receive buffer, which is told with the next packet only) is not to be seen from here. */
static void test_unlimited(void **state)
{
        struct pair *p = *state;
        union address where = address_of(&p->v4[1], LOAD_PORT);
        _cleanup_receiver_ struct receiver *receiver = make_receiver(&where, RECEIVER_SOCKET);
        const struct receiver_counts *got = receiver_counts(receiver);
        _cleanup_generator_ struct generator *generator =
                make_generator(&where, (struct generator_config){.rate_bps = GENERATOR_UNLIMITED});
        struct generator_counts sent;

        run_load(p, generator, receiver);
        generator_counts(generator, &sent);
        assert_int_equal(sent.offered_packets, sent.sent_packets + sent.refused_packets);
        assert_true(got->packets > 0 && got->packets + got->overflow <= sent.sent_packets);
}

/* The link carries 1500 octets: each longer packet is refused, with its errno, and counts as offered. */
static void test_refused(void **state)
{
        struct pair *p = *state;
        union address where = address_of(&p->v4[1], LOAD_PORT);
        _cleanup_receiver_ struct receiver *receiver = make_receiver(&where, RECEIVER_SOCKET);
        _cleanup_generator_ struct generator *generator =
                make_generator(&where, (struct generator_config){.packet_bytes = 1501, .rate_bps = 10000000});
        struct generator_counts sent;
        _cleanup_json_ json_t *json = NULL;

        run_load(p, generator, receiver);
        generator_counts(generator, &sent);
        assert_int_equal(sent.sent_packets, 0);
        assert_true(sent.refused_packets > 0 && sent.refused_packets <= sent.offered_packets);
        assert_int_equal(sent.refusals[0].errnum, EMSGSIZE);
        assert_int_equal(sent.refusals[0].n, sent.refused_packets);
        json = generator_counts_json(&sent);
        assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "refusals"), "EMSGSIZE")),
                         sent.refused_packets);
}

/* Packets that are none of ours are counted, and apart. */
static void test_unmarked(void **state)
{
        struct pair *p = *state;
        union address where = address_of(&p->v4[1], LOAD_PORT);
        _cleanup_receiver_ struct receiver *receiver = make_receiver(&where, RECEIVER_SOCKET);
        const struct receiver_counts *got = receiver_counts(receiver);
        struct child child = CHILD_INIT;
        int fd = udp_socket(&p->ns[0], &p->v4[0], 0);

        instrument_start(&p->ns[1], run_receiver, receiver, &child);
        instrument_go(&child, 0);
        udp_send(fd, &p->v4[1], LOAD_PORT, 0);
        udp_send(fd, &p->v4[1], LOAD_PORT, 15);
        udp_send(fd, &p->v4[1], LOAD_PORT, 1000);
        close(fd);
        await_count(&got->packets, 3);
        instrument_end(&child);
        assert_int_equal(got->packets, 3);
        assert_int_equal(got->unmarked, 3);
        assert_int_equal(got->streams, 0);
        assert_int_equal(got->bytes, 15 + 1000 + 3 * 28);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_paced, pair_set_up, pair_tear_down),
                cmocka_unit_test_setup_teardown(test_rate_zero, pair_set_up, pair_tear_down),
                cmocka_unit_test_setup_teardown(test_unlimited, pair_set_up, pair_tear_down),
                cmocka_unit_test_setup_teardown(test_refused, pair_set_up, pair_tear_down),
                cmocka_unit_test_setup_teardown(test_unmarked, pair_set_up, pair_tear_down),
        };
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
