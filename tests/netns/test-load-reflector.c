/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "tests/netns/load-support.h"

/* What a reflector must not do: answer what is malformed, what was sent to a group, or what another reflector says. */

#define PORT 862

struct bed {
        struct pair pair;
        struct reflector *reflector; /* in the second namespace, on all addresses */
        struct child child;
        int fd; /* in the first */
};

static int set_up(void **state)
{
        struct bed *bed = calloc(1, sizeof(*bed));
        const struct reflector_config config = {.local = {.v4 = {.sin_family = AF_INET, .sin_port = htons(PORT)}},
                                                .sched = {.cpu = SCHED_CPU_ANY}};
        struct err err = {0};
        int on = 1;

        pair_up(&bed->pair, 1);
        bed->child = (struct child)CHILD_INIT;
        assert_ok(reflector_new(&config, &bed->reflector, &err));
        instrument_start(&bed->pair.ns[1], run_reflector, bed->reflector, &bed->child);
        instrument_go(&bed->child, 0);
        bed->fd = udp_socket(&bed->pair.ns[0], &bed->pair.v4[0], 0);
        assert_int_equal(setsockopt(bed->fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)), 0);
        assert_int_equal(setsockopt(bed->fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on)), 0);
        *state = bed;
        return 0;
}

static int tear_down(void **state)
{
        struct bed *bed = *state;

        instrument_end(&bed->child);
        reflector_free(bed->reflector);
        close(bed->fd);
        pair_down(&bed->pair);
        free(bed);
        return 0;
}

static void make_request(uint8_t packet[static STAMP_LEN], uint32_t sequence)
{
        const struct stamp_request request = {
                .sequence = sequence,
                .timestamp = stamp_time_encode(STAMP_FORMAT_NTP, clock_now_ns(CLOCK_REALTIME)),
                .error = {.multiplier = 1},
        };

        stamp_request_put(&request, packet);
}

static void send_to(struct bed *bed, const char *to, const uint8_t *packet, size_t len)
{
        union address address;

        assert_int_equal(address_parse(to, PORT, &address, NULL), 0);
        assert_int_equal(sendto(bed->fd, packet, len, 0, &address.any, address_len(&address)), len);
}

/* Sends a good request and takes the next packet, which has to be its reply: so nothing sent before was answered. */
static struct stamp_reply assert_next_is_answer(struct bed *bed, uint32_t sequence)
{
        uint8_t packet[STAMP_LEN], answer[STAMP_LEN + 1];
        struct stamp_reply reply;

        make_request(packet, sequence);
        send_to(bed, "198.18.0.2", packet, STAMP_LEN);
        assert_int_equal(recv(bed->fd, answer, sizeof(answer), 0), STAMP_LEN);
        assert_int_equal(stamp_reply_parse(span_of(answer, STAMP_LEN), &reply), STAMP_FAULT_NONE);
        assert_int_equal(reply.sender_sequence, sequence);
        assert_memory_equal(answer + 28, packet + 4, 10); /* the sender's timestamp and error estimate */
        assert_int_equal(reply.sender_ttl, 64);
        return reply;
}

static void test_malformed(void **state)
{
        struct bed *bed = *state;
        const struct reflector_counts *counts = reflector_counts(bed->reflector);
        uint8_t packet[STAMP_LEN];
        struct stamp_reply reply;

        make_request(packet, 1);
        send_to(bed, "198.18.0.2", packet, 0);
        send_to(bed, "198.18.0.2", packet, 14);
        send_to(bed, "198.18.0.2", packet, STAMP_LEN - 1);
        packet[13] = 0;
        send_to(bed, "198.18.0.2", packet, STAMP_LEN);
        packet[12] = 0x40; /* PTP, with a fraction that is no number of nanoseconds */
        packet[13] = 1;
        put_be32(packet + 8, UINT32_MAX);
        send_to(bed, "198.18.0.2", packet, STAMP_LEN);

        reply = assert_next_is_answer(bed, 77);
        assert_int_equal(reply.sequence, 0); /* the first one that counts */
        assert_int_equal(counts->received, 6);
        await_count(&counts->reflected, 1);
        assert_int_equal(counts->faults[STAMP_FAULT_SHORT], 3);
        assert_int_equal(counts->faults[STAMP_FAULT_MULTIPLIER], 1);
        assert_int_equal(counts->faults[STAMP_FAULT_TIMESTAMP], 1);
}

static void test_groups(void **state)
{
        struct bed *bed = *state;
        uint8_t packet[STAMP_LEN];

        make_request(packet, 1);
        send_to(bed, "198.18.0.3", packet, STAMP_LEN); /* the network's broadcast address */
        assert_next_is_answer(bed, 77);
        assert_int_equal(reflector_counts(bed->reflector)->not_unicast, 1);
        await_count(&reflector_counts(bed->reflector)->reflected, 1);
}

/* The answer to a reply would be answered in turn, for ever. */
static void test_reply_is_not_answered(void **state)
{
        struct bed *bed = *state;
        struct stamp_reply reply = assert_next_is_answer(bed, 1);
        uint8_t packet[STAMP_LEN];

        stamp_reply_put(&reply, packet);
        send_to(bed, "198.18.0.2", packet, STAMP_LEN);
        reply = assert_next_is_answer(bed, 2);
        assert_int_equal(reply.sequence, 1);
        assert_int_equal(reflector_counts(bed->reflector)->faults[STAMP_FAULT_REPLY], 1);
        await_count(&reflector_counts(bed->reflector)->reflected, 2);
}

/* A request with the address of a second reflector for its source: that one gets a reply, and stays silent. */
static void test_two_reflectors(void **state)
{
        struct bed *bed = *state;
        union address where = address_of(&bed->pair.v4[0], PORT);
        const struct reflector_config config = {.local = where, .sched = {.cpu = SCHED_CPU_ANY}};
        _cleanup_reflector_ struct reflector *second = NULL;
        struct child child = CHILD_INIT;
        struct err err = {0};
        struct {
                struct iphdr ip;
                struct udphdr udp;
                uint8_t payload[STAMP_LEN];
        } packet = {
                .ip = {.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP},
                .udp = {.source = htons(PORT), .dest = htons(PORT), .len = htons(sizeof(struct udphdr) + STAMP_LEN)},
        };
        union address to = address_of(&bed->pair.v4[1], 0);
        const struct reflector_counts *counts;
        int raw = netns_socket(&bed->pair.ns[0], AF_INET, SOCK_RAW, IPPROTO_RAW, &err);

        assert_true(raw >= 0);
        assert_ok(reflector_new(&config, &second, &err));
        instrument_start(&bed->pair.ns[0], run_reflector, second, &child);
        instrument_go(&child, 0);
        make_request(packet.payload, 1);
        packet.ip.saddr = where.v4.sin_addr.s_addr;
        packet.ip.daddr = to.v4.sin_addr.s_addr;
        assert_int_equal(sendto(raw, &packet, sizeof(packet), 0, &to.any, address_len(&to)), sizeof(packet));
        close(raw);

        counts = reflector_counts(second);
        await_count(&counts->received, 1);
        instrument_end(&child); /* ends between two packets */
        assert_int_equal(counts->received, 1);
        assert_int_equal(counts->faults[STAMP_FAULT_REPLY], 1);
        assert_int_equal(counts->reflected, 0);
        assert_next_is_answer(bed, 77);
        await_count(&reflector_counts(bed->reflector)->reflected, 2);
}

/* As long as the request, its padding unchanged, with its DSCP, and from the address that it was sent to. */
static void test_same_length_and_class(void **state)
{
        struct bed *bed = *state;
        struct err err = {0};
        struct ip_prefix second;
        union address from, expected;
        uint8_t packet[1000], answer[1001], control[64];
        struct iovec iov = {.iov_base = answer, .iov_len = sizeof(answer)};
        struct msghdr message = {.msg_name = &from,
                                 .msg_namelen = sizeof(from),
                                 .msg_iov = &iov,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof(control)};
        int tos = 46 << 2;
        struct cmsghdr *c;

        assert_int_equal(ip_prefix_parse("198.18.0.9/32", &second), 0);
        assert_ok(ip_address_add(bed->pair.nl[1], bed->pair.index[1], &second, &err));
        assert_ok(ip_route_add(bed->pair.nl[0], bed->pair.index[0], &second, &bed->pair.v4[1], NULL, &err));
        make_request(packet, 5);
        for (size_t i = STAMP_LEN; i < sizeof(packet); i++)
                packet[i] = (uint8_t)i;
        assert_int_equal(setsockopt(bed->fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)), 0);
        send_to(bed, "198.18.0.9", packet, sizeof(packet));

        assert_int_equal(recvmsg(bed->fd, &message, 0), sizeof(packet));
        assert_memory_equal(answer + STAMP_LEN, packet + STAMP_LEN, sizeof(packet) - STAMP_LEN);
        assert_int_equal(address_parse("198.18.0.9", PORT, &expected, NULL), 0);
        assert_true(address_equal(&from, &expected));
        c = CMSG_FIRSTHDR(&message);
        assert_true(c && c->cmsg_type == IP_TOS && *CMSG_DATA(c) == tos);
}

/* Each sender has a sequence of its own. */
static void test_stateful(void **state)
{
        struct bed *bed = *state;
        int first = bed->fd, second = udp_socket(&bed->pair.ns[0], &bed->pair.v4[0], 0);

        for (uint32_t i = 0; i < 3; i++) {
                bed->fd = first;
                assert_int_equal(assert_next_is_answer(bed, 100 + i).sequence, i);
                bed->fd = second;
                assert_int_equal(assert_next_is_answer(bed, 200 + i).sequence, i);
        }
        bed->fd = first;
        close(second);
}

/* ---- one peer sends more than can be answered, while another one goes on as usual ---- */

#define FLOOD_FIRST     3000 /* wait when the reflector goes on, so that it cannot keep up */
#define FLOOD_AT_ONCE   4000 /* fit in the buffers of both */
#define FLOOD_PER_OTHER 1000
#define FLOOD_BUFFER    (4 << 20)

struct flood {
        const union address *to;
        int fd, other_fd;
        uint32_t sent, received, other_sent;
};

static void flood_send(struct flood *f)
{
        uint8_t packet[STAMP_LEN];

        make_request(packet, f->sent++);
        assert_int_equal(sendto(f->fd, packet, STAMP_LEN, 0, &f->to->any, address_len(f->to)), STAMP_LEN);
        if (f->sent % FLOOD_PER_OTHER != 0)
                return;
        make_request(packet, f->other_sent++);
        assert_int_equal(sendto(f->other_fd, packet, STAMP_LEN, 0, &f->to->any, address_len(f->to)), STAMP_LEN);
}

/* The next reply is that to the request @sequence, the reflector's own number is the same, and the right one sent it.
 */
static void expect_reply(int fd, const union address *from, uint32_t sequence)
{
        socklen_t len = sizeof(union address);
        union address where = {0};
        struct stamp_reply reply;
        uint8_t packet[100];

        if (recvfrom(fd, packet, sizeof(packet), 0, &where.any, &len) != STAMP_LEN)
                fail_msg("no reply to request %u: %s", sequence, strerror(errno));
        assert_true(address_equal(&where, from));
        assert_int_equal(stamp_reply_parse(span_of(packet, STAMP_LEN), &reply), STAMP_FAULT_NONE);
        assert_int_equal(reply.sender_sequence, sequence);
        assert_int_equal(reply.sequence, sequence);
}

/* Whichever socket serves it, each packet is answered once, in its order, and the other peer notices nothing. */
static void test_flood(void **state)
{
        struct pair *p = *state;
        const union address where = address_of(&p->v4[1], PORT);
        const struct reflector_config config = {.local = where, .sched = {.cpu = SCHED_CPU_ANY}};
        int64_t deadline_ns = clock_now_ns(CLOCK_MONOTONIC) + LONG_NS;
        _cleanup_reflector_ struct reflector *reflector = NULL;
        struct flood f = {.to = &where,
                          .fd = udp_socket(&p->ns[0], &p->v4[0], 0),
                          .other_fd = udp_socket(&p->ns[0], &p->v4[0], 0)};
        const struct reflector_counts *counts;
        struct child child = CHILD_INIT;
        int bytes = 8 << 20;
        struct err err = {0};

        if (setsockopt(f.fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0) {
                /* Root of a user namespace may not: then it depends on the host's most. As root of the host it runs. */
                assert_int_equal(errno, EPERM);
                assert_int_equal(setsockopt(f.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
                assert_int_equal(getsockopt(f.fd, SOL_SOCKET, SO_RCVBUF, &bytes, &(socklen_t){sizeof(bytes)}), 0);
                if (bytes < FLOOD_BUFFER) {
                        print_message("net.core.rmem_max is too small for a flood\n");
                        skip();
                }
        }
        assert_ok(reflector_new(&config, &reflector, &err));
        counts = reflector_counts(reflector);
        instrument_start(&p->ns[1], run_reflector, reflector, &child);
        instrument_go(&child, 0);
        flood_send(&f); /* makes the two ends known to each other */
        expect_reply(f.fd, &where, f.received++);
        assert_int_equal(kill(child.pid, SIGSTOP), 0);
        while (f.sent < FLOOD_FIRST)
                flood_send(&f);
        assert_int_equal(kill(child.pid, SIGCONT), 0);
        while (counts->by_session == 0 && clock_now_ns(CLOCK_MONOTONIC) < deadline_ns) {
                flood_send(&f);
                while (f.sent - f.received >= FLOOD_AT_ONCE)
                        expect_reply(f.fd, &where, f.received++);
        }
        while (f.received < f.sent)
                expect_reply(f.fd, &where, f.received++);
        flood_send(&f);
        expect_reply(f.fd, &where, f.received++);
        for (uint32_t i = 0; i < f.other_sent; i++)
                expect_reply(f.other_fd, &where, i);
        instrument_end(&child);
        assert_true(counts->by_session > 0);
        assert_int_equal(counts->reflected, f.sent + f.other_sent);
        assert_int_equal(counts->receive_overflow, 0);
        close(f.fd);
        close(f.other_fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_malformed, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_groups, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_reply_is_not_answered, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_two_reflectors, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_same_length_and_class, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_stateful, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_flood, pair_set_up, pair_tear_down),
        };
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
