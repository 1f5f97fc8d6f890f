/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/netns/load-support.h"

/* The probe and the reflector between two namespaces, across a relay that loses, repeats and holds back known packets,
 * and against reflectors that are not ours. */

#define PORT        862
#define RELAY_PORT  1862
#define N_SLOTS     60
#define RATE_HZ     200
#define PATIENCE_NS NSEC_PER_SEC

static struct probe *make_probe(const union address *peer, struct probe_config config)
{
        struct probe *probe;
        struct err err = {0};

        config.peer = *peer;
        config.size_bytes = config.size_bytes ? config.size_bytes : STAMP_LEN;
        config.rate_hz = config.rate_hz ? config.rate_hz : RATE_HZ;
        config.n_slots = config.n_slots ? config.n_slots : N_SLOTS;
        config.linger_ns = PATIENCE_NS;
        config.sched.cpu = SCHED_CPU_ANY;
        assert_ok(probe_new(&config, &probe, &err));
        return probe;
}

static struct reflector *make_reflector(const union address *local, bool is_stateless)
{
        const struct reflector_config config = {.local = *local,
                                                .is_stateless = is_stateless,
                                                .sched = {.cpu = SCHED_CPU_ANY}};
        struct reflector *reflector;
        struct err err = {0};

        assert_ok(reflector_new(&config, &reflector, &err));
        return reflector;
}

/* Runs @probe in the first namespace against @reflector in the second. */
static void run_pair(struct pair *p, struct probe *probe, struct reflector *reflector)
{
        struct child probe_child = CHILD_INIT, reflector_child = CHILD_INIT;

        instrument_start(&p->ns[1], run_reflector, reflector, &reflector_child);
        instrument_go(&reflector_child, 0);
        instrument_start(&p->ns[0], run_probe, probe, &probe_child);
        instrument_go(&probe_child, soon_ns());
        instrument_wait(&probe_child);
        instrument_end(&reflector_child);
}

static void check_clean_run(const struct probe *probe, const struct reflector *reflector, uint64_t n_slots)
{
        struct slots_counts all, second_half;

        slots_count(probe_slots(probe), 0, n_slots, &all);
        assert_accounted(&all, n_slots);
        assert_int_equal(all.lost, 0);
        assert_int_equal(all.duplicates, 0);
        assert_int_equal(all.reordered, 0);
        assert_int_equal(all.unstamped_send, 0);
        assert_int_equal(all.unstamped_peer, 0);
        assert_int_equal(all.forward_ttl_min, 255); /* no hop between */
        assert_int_equal(all.return_ttl_min, 255);
        assert_int_equal(reflector_counts(reflector)->reflected, all.sent);
        assert_true(probe_notes(probe)->is_complete);
        assert_false(probe_notes(probe)->is_realtime_stepped);

        /* The kernel begins to stamp arrivals shortly after the first socket asks for it. */
        slots_count(probe_slots(probe), n_slots / 2, n_slots, &second_half);
        assert_int_equal(second_half.unstamped_receive, 0);
}

static void test_clean(void **state)
{
        static const struct {
                bool is_v6, is_stateless;
                uint32_t size_bytes;
                uint64_t rate_hz, n_slots;
        } cases[] = {
                {false, false, 44, 200, 60},   {true, false, 44, 200, 60},    {false, true, 44, 200, 60},
                {false, false, 1472, 200, 60}, {false, false, 44, 1000, 200}, {true, true, 100, 10000, 2000},
        };
        struct pair *p = *state;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                union address where = address_of(cases[i].is_v6 ? &p->v6[1] : &p->v4[1], PORT);
                _cleanup_reflector_ struct reflector *reflector = make_reflector(&where, cases[i].is_stateless);
                _cleanup_probe_ struct probe *probe = make_probe(&where, (struct probe_config){
                                                                                 .size_bytes = cases[i].size_bytes,
                                                                                 .rate_hz = cases[i].rate_hz,
                                                                                 .n_slots = cases[i].n_slots,
                                                                         });

                run_pair(p, probe, reflector);
                check_clean_run(probe, reflector, cases[i].n_slots);
        }
}

/* The sequence number passes 2^32 in mid-run. */
static void test_wrap(void **state)
{
        struct pair *p = *state;
        union address where = address_of(&p->v4[1], PORT);
        _cleanup_reflector_ struct reflector *reflector = make_reflector(&where, true);
        _cleanup_probe_ struct probe *probe =
                make_probe(&where, (struct probe_config){.first_sequence = (UINT64_C(1) << 32) - N_SLOTS / 2});

        run_pair(p, probe, reflector);
        check_clean_run(probe, reflector, N_SLOTS);
        assert_int_equal(probe_slots(probe)->n_unmatched, 0);
}

/* A packet that the link cannot carry whole is refused by the kernel: each slot says so, and no stamp is lost or
 * taken for another's. */
static void test_refused(void **state)
{
        struct pair *p = *state;
        union address where = address_of(&p->v4[1], PORT);
        _cleanup_reflector_ struct reflector *reflector = make_reflector(&where, false);
        _cleanup_probe_ struct probe *probe = make_probe(&where, (struct probe_config){.size_bytes = 1473});
        struct slots_counts c;

        run_pair(p, probe, reflector);
        slots_count(probe_slots(probe), 0, N_SLOTS, &c);
        assert_accounted(&c, N_SLOTS);
        assert_int_equal(c.refused, c.sent);
        assert_int_equal(c.lost, c.sent);
        assert_int_equal(probe_notes(probe)->last_refusal, EMSGSIZE);
        assert_int_equal(probe_slots(probe)->n_stray_stamps, 0);
}

/* Nobody listens: every packet is lost, and ICMP says why. An error that waits on the socket makes the kernel drop the
 * packet of the next call, which is sent again. */
static void test_unreachable(void **state)
{
        struct pair *p = *state;
        union address where = address_of(&p->v4[1], PORT);
        _cleanup_probe_ struct probe *probe = make_probe(&where, (struct probe_config){.n_slots = 5});
        struct child child = CHILD_INIT;
        struct slots_counts c;

        instrument_start(&p->ns[0], run_probe, probe, &child);
        instrument_go(&child, soon_ns());
        instrument_wait(&child);
        slots_count(probe_slots(probe), 0, 5, &c);
        assert_accounted(&c, 5);
        assert_int_equal(c.refused, 0);
        assert_int_equal(c.lost, c.sent);
        assert_true(probe_notes(probe)->n_unreachable > 0);
}

/* A run that is stopped accounts for the slots so far. */
static void test_stopped(void **state)
{
        struct pair *p = *state;
        union address where = address_of(&p->v4[1], PORT);
        _cleanup_probe_ struct probe *probe =
                make_probe(&where, (struct probe_config){.rate_hz = 1, .n_slots = 1000000});
        struct child child = CHILD_INIT;
        struct slots_counts c;

        instrument_start(&p->ns[0], run_probe, probe, &child);
        instrument_go(&child, clock_now_ns(CLOCK_MONOTONIC));
        while (__atomic_load_n(&probe_slots(probe)->n_closed, __ATOMIC_ACQUIRE) == 0)
                sched_yield();
        instrument_end(&child);
        slots_count(probe_slots(probe), 0, 1000000, &c);
        assert_true(c.slots >= 1 && c.slots < 1000000);
        assert_accounted(&c, c.slots);
        assert_true(probe_notes(probe)->is_complete);
}

/* ---- the relay: it sits in the second namespace between the probe and the reflector ---- */

/* What happens to the packet of a sequence number. */
enum fate {
        PASS,
        LOSE_REQUEST,
        LOSE_REPLY,
        REPEAT_REQUEST, /* the reflector answers both */
        REPEAT_REPLY,   /* three times in all */
        HOLD_REPLY,     /* until the reply after the next one has passed */
};

static const enum fate fates[N_SLOTS] = {
        [3] = LOSE_REQUEST,  [7] = LOSE_REPLY,  [8] = LOSE_REPLY,    [12] = REPEAT_REQUEST,
        [17] = REPEAT_REPLY, [23] = HOLD_REPLY, [30] = LOSE_REQUEST, [35] = HOLD_REPLY,
};

struct relay {
        int front, back; /* towards the probe, towards the reflector */
        struct sockaddr_storage probe;
        socklen_t probe_len;
        uint8_t held[STAMP_LEN];
        bool is_holding;
        uint32_t held_sequence;
};

static void relay_request(struct relay *relay)
{
        uint8_t packet[STAMP_LEN];
        ssize_t len;
        uint32_t sequence;

        relay->probe_len = sizeof(relay->probe);
        len = recvfrom(relay->front, packet, sizeof(packet), 0, (struct sockaddr *)&relay->probe, &relay->probe_len);
        assert_int_equal(len, STAMP_LEN);
        sequence = get_be32(packet);
        assert_true(sequence < N_SLOTS);
        for (int copies = fates[sequence] == LOSE_REQUEST     ? 0
                          : fates[sequence] == REPEAT_REQUEST ? 2
                                                              : 1;
             copies > 0; copies--)
                assert_int_equal(send(relay->back, packet, STAMP_LEN, 0), STAMP_LEN);
}

static void relay_pass(struct relay *relay, const uint8_t *packet, int copies)
{
        for (; copies > 0; copies--)
                assert_int_equal(sendto(relay->front, packet, STAMP_LEN, 0, (struct sockaddr *)&relay->probe,
                                        relay->probe_len),
                                 STAMP_LEN);
}

static void relay_reply(struct relay *relay)
{
        uint8_t packet[STAMP_LEN];
        uint32_t sequence;

        assert_int_equal(recv(relay->back, packet, sizeof(packet), 0), STAMP_LEN);
        sequence = get_be32(packet + 24); /* the sender's */
        assert_true(sequence < N_SLOTS);
        if (fates[sequence] == HOLD_REPLY) {
                memcpy(relay->held, packet, STAMP_LEN);
                relay->is_holding = true;
                relay->held_sequence = sequence;
                return;
        }
        relay_pass(relay, packet, fates[sequence] == LOSE_REPLY ? 0 : fates[sequence] == REPEAT_REPLY ? 3 : 1);
        if (relay->is_holding && sequence >= relay->held_sequence + 2) {
                relay_pass(relay, relay->held, 1);
                relay->is_holding = false;
        }
}

static void relay_until_end(struct relay *relay, const struct child *probe)
{
        for (;;) {
                struct pollfd fds[] = {{.fd = relay->front, .events = POLLIN},
                                       {.fd = relay->back, .events = POLLIN},
                                       {.fd = probe->pidfd, .events = POLLIN}};

                assert_true(poll(fds, ARRAY_SIZE(fds), (int)(LONG_NS / NSEC_PER_MSEC)) > 0);
                if (fds[0].revents)
                        relay_request(relay);
                if (fds[1].revents)
                        relay_reply(relay);
                if (fds[2].revents && !fds[0].revents && !fds[1].revents)
                        return;
        }
}

static void test_relay(void **state)
{
        struct pair *p = *state;
        union address front = address_of(&p->v4[1], RELAY_PORT), back = address_of(&p->v4[1], PORT);
        _cleanup_reflector_ struct reflector *reflector = make_reflector(&back, false);
        _cleanup_probe_ struct probe *probe = make_probe(&front, (struct probe_config){0});
        struct child probe_child = CHILD_INIT, reflector_child = CHILD_INIT;
        struct relay relay = {0};
        uint64_t lost_forward;
        struct slots_counts c;

        instrument_start(&p->ns[1], run_reflector, reflector, &reflector_child);
        instrument_go(&reflector_child, 0);
        relay.front = udp_socket(&p->ns[1], &p->v4[1], RELAY_PORT);
        relay.back = udp_socket(&p->ns[1], &p->v4[1], 0);
        assert_int_equal(connect(relay.back, &back.any, address_len(&back)), 0);
        instrument_start(&p->ns[0], run_probe, probe, &probe_child);
        instrument_go(&probe_child, soon_ns());
        relay_until_end(&relay, &probe_child);
        instrument_wait(&probe_child);
        instrument_end(&reflector_child);
        close(relay.front);
        close(relay.back);

        slots_count(probe_slots(probe), 0, N_SLOTS, &c);
        assert_accounted(&c, N_SLOTS);
        assert_true(c.sent > 40); /* every fate came true, whatever stalls there were */
        assert_int_equal(c.lost, 4);
        assert_int_equal(c.duplicates, 1 + 2);
        assert_int_equal(c.reordered, 2);
        assert_int_equal(c.unstamped_send, 0);
        assert_int_equal(probe_slots(probe)->n_unmatched, 0);
        /* Two requests were lost and one came twice: the reflector's own count says one less than were sent. */
        assert_int_equal(slots_lost_forward(probe_slots(probe), &lost_forward), 0);
        assert_int_equal(lost_forward, 1);
        assert_int_equal(reflector_counts(reflector)->reflected, c.sent - 2 + 1);
        assert_int_equal(reflector_counts(reflector)->evicted, 0);
}

/* Answers packets that arrive at @fd until the probe ends. */
static void serve(int fd, const struct child *probe, void (*answer)(int fd, void *userdata), void *userdata)
{
        for (;;) {
                struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = probe->pidfd, .events = POLLIN}};

                assert_true(poll(fds, ARRAY_SIZE(fds), (int)(LONG_NS / NSEC_PER_MSEC)) > 0);
                if (fds[0].revents)
                        answer(fd, userdata);
                else if (fds[1].revents)
                        return;
        }
}

/* ---- a reflector as others write them: stateless, PTP timestamps on TAI, TTL not copied, and some noise ---- */

static void answer_like_another(int fd, void *userdata)
{
        struct stamp_request request;
        struct stamp_reply reply = {.error = {.format = STAMP_FORMAT_PTP, .multiplier = 1}};
        int64_t now_ns = clock_now_ns(CLOCK_REALTIME) + 37 * NSEC_PER_SEC;
        struct sockaddr_storage from;
        socklen_t from_len = sizeof(from);
        uint8_t packet[STAMP_LEN];
        ssize_t len;

        len = recvfrom(fd, packet, sizeof(packet), 0, (struct sockaddr *)&from, &from_len);
        assert_int_equal(len, STAMP_LEN);
        assert_int_equal(stamp_request_parse(span_of(packet, STAMP_LEN), &request), STAMP_FAULT_NONE);
        reply.sequence = reply.sender_sequence = request.sequence;
        reply.receive_timestamp = stamp_time_encode(STAMP_FORMAT_PTP, now_ns);
        reply.timestamp = stamp_time_encode(STAMP_FORMAT_PTP, now_ns + 1000);
        reply.sender_timestamp = request.timestamp;
        reply.sender_error = request.error;
        stamp_reply_put(&reply, packet);

        /* A cut one, one of a session that is none of ours, then the reply itself. */
        assert_int_equal(sendto(fd, packet, STAMP_LEN - 1, 0, (struct sockaddr *)&from, from_len), STAMP_LEN - 1);
        packet[31] ^= 1;
        assert_int_equal(sendto(fd, packet, STAMP_LEN, 0, (struct sockaddr *)&from, from_len), STAMP_LEN);
        packet[31] ^= 1;
        assert_int_equal(sendto(fd, packet, STAMP_LEN, 0, (struct sockaddr *)&from, from_len), STAMP_LEN);
}

static void test_foreign_reflector(void **state)
{
        struct pair *p = *state;
        union address where = address_of(&p->v4[1], PORT);
        _cleanup_probe_ struct probe *probe = make_probe(&where, (struct probe_config){0});
        int fd = udp_socket(&p->ns[1], &p->v4[1], PORT);
        const struct slots *slots = probe_slots(probe);
        struct child child = CHILD_INIT;
        uint64_t lost_forward;
        struct slots_counts c;

        instrument_start(&p->ns[0], run_probe, probe, &child);
        instrument_go(&child, soon_ns());
        serve(fd, &child, answer_like_another, NULL);
        instrument_wait(&child);
        close(fd);

        slots_count(slots, 0, N_SLOTS, &c);
        assert_accounted(&c, N_SLOTS);
        assert_int_equal(c.lost, 0);
        assert_int_equal(c.unstamped_peer, 0);
        assert_int_equal(c.forward_ttl_max, 0); /* not known, and not taken for 255 hops */
        assert_int_equal(c.return_ttl_min, 64);
        assert_int_equal(slots->n_unmatched, c.sent);
        assert_int_equal(slots->n_faults[STAMP_FAULT_SHORT], c.sent);
        assert_int_equal(slots->peer_error.format, STAMP_FORMAT_PTP);
        assert_false(slots->peer_error.is_synchronised);
        assert_int_equal(slots_lost_forward(slots, &lost_forward), -ENODATA);
        /* Its clock is 37 s ahead: taken off the samples, so that they start near 0. */
        assert_true(slots->peer_offset_ns > 36 * NSEC_PER_SEC && slots->peer_offset_ns < 57 * NSEC_PER_SEC);
        for (size_t i = 0; i < N_SLOTS; i++)
                if (slots->slot[i].state == SLOT_ANSWERED)
                        assert_int_equal(slots->slot[i].peer_sent_ns - slots->slot[i].peer_received_ns, 1000);
}

/* ---- a path so long that each reply arrives after the next packet has left ---- */

struct held {
        uint8_t reply[STAMP_LEN];
        bool is_set;
};

/* Keeps the reply to each request until the next one comes. */
static void answer_one_behind(int fd, void *userdata)
{
        struct held *held = userdata;
        struct stamp_reply reply = {.error = {.multiplier = 1}};
        struct stamp_request request;
        struct sockaddr_storage from;
        socklen_t from_len = sizeof(from);
        uint8_t packet[STAMP_LEN];

        assert_int_equal(recvfrom(fd, packet, STAMP_LEN, 0, (struct sockaddr *)&from, &from_len), STAMP_LEN);
        assert_int_equal(stamp_request_parse(span_of(packet, STAMP_LEN), &request), STAMP_FAULT_NONE);
        if (held->is_set)
                assert_int_equal(sendto(fd, held->reply, STAMP_LEN, 0, (struct sockaddr *)&from, from_len), STAMP_LEN);
        reply.receive_timestamp = reply.timestamp = stamp_time_encode(STAMP_FORMAT_NTP, clock_now_ns(CLOCK_REALTIME));
        reply.sequence = reply.sender_sequence = request.sequence;
        reply.sender_timestamp = request.timestamp;
        stamp_reply_put(&reply, held->reply);
        held->is_set = true;
}

/* Asking for a reply again and again is no use there, and would keep a reflector on the same processor from it. */
static void test_gives_up_polling(void **state)
{
        struct pair *p = *state;
        union address where = address_of(&p->v4[1], PORT);
        _cleanup_probe_ struct probe *probe =
                make_probe(&where,
                           (struct probe_config){.rate_hz = 1000, .n_slots = 200, .sched = {.fifo_priority = 1}});
        int fd = udp_socket(&p->ns[1], &p->v4[1], PORT);
        struct child child = CHILD_INIT;
        struct held held = {0};
        struct slots_counts c;

        instrument_start(&p->ns[0], run_probe, probe, &child);
        instrument_go(&child, soon_ns());
        serve(fd, &child, answer_one_behind, &held);
        instrument_wait(&child);
        close(fd);
        slots_count(probe_slots(probe), 0, 200, &c);
        assert_accounted(&c, 200);
        assert_true(c.sent > 2 * 16);
        assert_int_equal(c.lost, 1); /* the last one, whose reply is still held */
        assert_false(probe_notes(probe)->is_spinning);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_clean, pair_set_up, pair_tear_down),
                cmocka_unit_test_setup_teardown(test_wrap, pair_set_up, pair_tear_down),
                cmocka_unit_test_setup_teardown(test_refused, pair_set_up, pair_tear_down),
                cmocka_unit_test_setup_teardown(test_unreachable, pair_set_up, pair_tear_down),
                cmocka_unit_test_setup_teardown(test_stopped, pair_set_up, pair_tear_down),
                cmocka_unit_test_setup_teardown(test_relay, pair_set_up, pair_tear_down),
                cmocka_unit_test_setup_teardown(test_foreign_reflector, pair_set_up, pair_tear_down),
                cmocka_unit_test_setup_teardown(test_gives_up_polling, pair_set_up, pair_tear_down),
        };
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
