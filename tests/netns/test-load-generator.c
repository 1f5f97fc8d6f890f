/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <net/ethernet.h>

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

/* The way is found out with the first packets: nobody has asked for this neighbour's MAC before. */
static void test_framed_late(void **state)
{
        struct pair *p = *state;
        struct ip_prefix late = p->v6[1];
        struct err err = {0};

        late.bytes[15] = 3;
        assert_ok(ip_address_add(p->nl[1], p->index[1], &late, &err));
        assert_ok(ip_address_wait(p->nl[1], &late, LONG_NS, &err));
        {
                union address where = address_of(&late, LOAD_PORT);
                _cleanup_receiver_ struct receiver *receiver = make_receiver(&where, RECEIVER_SOCKET);
                _cleanup_generator_ struct generator *generator =
                        make_generator(&where,
                                       (struct generator_config){.rate_bps = BITS_OF(PACKETS_RATE), .is_framed = true});
                struct generator_counts sent;

                run_load(p, generator, receiver);
                generator_counts(generator, &sent);
                check_load(&sent, PACKETS_RATE * DURATION_NS / NSEC_PER_SEC);
                assert_true(sent.framed_packets > 0 && sent.framed_packets < sent.sent_packets);
        }
}

/* As whole frames. A receiving kernel drops a datagram whose headers or checksums are wrong, so what arrives was right.
 * One packet goes by the UDP socket after each look at where frames go. */
static void test_framed(void **state)
{
        struct pair *p = *state;

        for (size_t i = 0; i < 2; i++) {
                union address where = address_of(i % 2 ? &p->v6[1] : &p->v4[1], LOAD_PORT);
                _cleanup_receiver_ struct receiver *receiver = make_receiver(&where, RECEIVER_SOCKET);
                const struct receiver_counts *got = receiver_counts(receiver);
                _cleanup_generator_ struct generator *generator =
                        make_generator(&where, (struct generator_config){.rate_bps = BITS_OF(PACKETS_RATE),
                                                                         .dscp = 46,
                                                                         .is_framed = true});
                struct generator_counts sent;

                run_load(p, generator, receiver);
                generator_counts(generator, &sent);
                check_load(&sent, PACKETS_RATE * DURATION_NS / NSEC_PER_SEC);
                assert_true(sent.framed_packets > 0 && sent.framed_packets < sent.sent_packets);
                assert_int_equal(got->packets + got->overflow, sent.sent_packets);
                assert_int_equal(got->bytes, got->packets * PACKET_BYTES);
                assert_int_equal(got->streams, 1);
                assert_int_equal(got->lost, 0);
                assert_int_equal(got->duplicates, 0);
                assert_int_equal(got->reordered, 0);
                assert_int_equal(got->unmarked, 0);
        }
}

/* Frames of one's own and of the kernel are the same to the octet, but for the datagram's number and its checksum. */
static void test_frame_octets(void **state)
{
        enum { ETHERNET = 14, UDP = 8 };
        struct pair *p = *state;

        for (size_t i = 0; i < 2; i++) {
                size_t ip = i % 2 ? 40 : 20, mark = ETHERNET + ip + UDP;
                union address where = address_of(i % 2 ? &p->v6[1] : &p->v4[1], LOAD_PORT);
                uint8_t frames[2][2048];
                struct err err = {0};

                for (int framed = 0; framed < 2; framed++) {
                        _cleanup_generator_ struct generator *generator = make_generator(
                                &where, (struct generator_config){.rate_bps = BITS_OF(100),
                                                                  .dscp = 46,
                                                                  .local = address_of(i % 2 ? &p->v6[0] : &p->v4[0], 7),
                                                                  .is_framed = framed == 1});
                        struct child child = CHILD_INIT;
                        struct timeval patience = {.tv_sec = 20};
                        int tap = netns_socket(&p->ns[1], AF_PACKET, SOCK_RAW, htons(i % 2 ? ETH_P_IPV6 : ETH_P_IP),
                                               &err);

                        assert_true(tap >= 0);
                        assert_int_equal(setsockopt(tap, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
                        instrument_start(&p->ns[0], run_generator, generator, &child);
                        instrument_go(&child, soon_ns());
                        for (int n = 0; n < 2;) { /* the first goes by the UDP socket */
                                ssize_t len = recv(tap, frames[framed], sizeof(frames[0]), 0);

                                assert_true(len > 0);
                                n += len == ETHERNET + PACKET_BYTES;
                        }
                        instrument_wait(&child);
                        close(tap);
                }
                for (size_t k = 0; k < ETHERNET + PACKET_BYTES; k++) {
                        bool is_checksum = k == mark - 2 || k == mark - 1, is_stream = k >= mark && k < mark + 16;
                        bool is_number = i % 2 == 0 && (k == ETHERNET + 4 || k == ETHERNET + 5 || k == ETHERNET + 10 ||
                                                        k == ETHERNET + 11); /* identification, and its checksum */
                        bool is_label = i % 2 && k > ETHERNET && k < ETHERNET + 4;

                        if (!is_checksum && !is_stream && !is_number && !is_label)
                                assert_int_equal(frames[0][k], frames[1][k]);
                }
        }
}

/* An address of the host itself is behind no Ethernet link: that is said, not sent. */
static void test_no_frames(void **state)
{
        struct pair *p = *state;
        union address where = address_of(&p->v4[0], LOAD_PORT);
        const struct child_options options = {.name = "generator", .netns = &p->ns[0]};
        _cleanup_generator_ struct generator *generator =
                make_generator(&where, (struct generator_config){.rate_bps = BITS_OF(100), .is_framed = true});
        struct child child = CHILD_INIT;
        struct err err = {0};

        assert_ok(child_start(&options, run_generator, generator, &child, &err));
        assert_int_equal(child_wait_ready(&child, LONG_NS, &err), -EOPNOTSUPP);
        assert_int_equal(err.kind, ERR_UNSUPPORTED);
        assert_non_null(strstr(err.text, "Ethernet"));
        child_done(&child);
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
                cmocka_unit_test_setup_teardown(test_framed, pair_set_up, pair_tear_down),
                cmocka_unit_test_setup_teardown(test_framed_late, pair_set_up, pair_tear_down),
                cmocka_unit_test_setup_teardown(test_frame_octets, pair_set_up, pair_tear_down),
                cmocka_unit_test_setup_teardown(test_no_frames, pair_set_up, pair_tear_down),
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
