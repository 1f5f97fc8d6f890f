/* SPDX-License-Identifier: Apache-2.0 */
#include "load/slots.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/macro.h"

#define N_SLOTS   16
#define PERIOD_NS NSEC_PER_MSEC
#define RTT_NS    (40 * NSEC_PER_USEC)
#define START_NS  (INT64_C(5000) * NSEC_PER_SEC)
#define START_RT  (INT64_C(1795000000) * NSEC_PER_SEC) /* what CLOCK_REALTIME reads then */

/* A probe's books and the events of its life, made up. The peer takes 3 us and keeps packets for 4 us. */
struct books {
        struct slots slots;
        int64_t peer_ahead_ns; /* its clock against ours */
        uint32_t peer_sequence;
        enum stamp_format peer_format;
        uint64_t memory[N_SLOTS * 10];
};

static void books_init(struct books *b, uint64_t first_sequence)
{
        const struct schedule schedule = schedule_at_rate(START_NS, NSEC_PER_SEC / PERIOD_NS);
        const struct clocksync_anchor anchor = {.monotonic_ns = START_NS, .realtime_ns = START_RT};

        memset(b, 0, sizeof(*b));
        assert_true(slots_size(N_SLOTS) <= sizeof(b->memory));
        slots_init(&b->slots, b->memory, N_SLOTS, first_sequence);
        slots_begin(&b->slots, &schedule, &anchor);
}

static int64_t sent_ns(size_t slot)
{
        return START_NS + (int64_t)slot * PERIOD_NS + 100; /* 100 ns late */
}

static int64_t realtime(int64_t monotonic_ns)
{
        return monotonic_ns - START_NS + START_RT;
}

static struct stamp_request send_slot(struct books *b, size_t slot)
{
        struct stamp_request request = {0};

        slots_request(&b->slots, sent_ns(slot), &request);
        slots_sent(&b->slots, slot, sent_ns(slot));
        return request;
}

static struct slots_reply reply_to(struct books *b, const struct stamp_request *request, size_t slot)
{
        int64_t arrived_ns = realtime(sent_ns(slot)) + 3000 + b->peer_ahead_ns;

        return (struct slots_reply){
                .packet = {.sequence = b->peer_sequence++,
                           .timestamp = stamp_time_encode(b->peer_format, arrived_ns + 4000),
                           .error = {.format = b->peer_format, .multiplier = 1},
                           .receive_timestamp = stamp_time_encode(b->peer_format, arrived_ns),
                           .sender_sequence = request->sequence,
                           .sender_timestamp = request->timestamp,
                           .sender_ttl = 254},
                .kernel_received_ns = realtime(sent_ns(slot)) + RTT_NS - 2000,
                .received_ns = sent_ns(slot) + RTT_NS,
                .ttl = 253,
        };
}

static enum slots_outcome receive(struct books *b, const struct stamp_request *request, size_t slot)
{
        struct slots_reply reply = reply_to(b, request, slot);

        return slots_receive(&b->slots, &reply);
}

static struct slots_counts count(const struct books *b)
{
        struct slots_counts c;

        slots_count(&b->slots, 0, N_SLOTS, &c);
        return c;
}

static void test_one_round_trip(void **state)
{
        struct stamp_request request;
        struct slots_counts c;
        struct books b;

        books_init(&b, 0);
        request = send_slot(&b, 0);
        assert_int_equal(request.sequence, 0);
        assert_int_equal(slots_stamp(&b.slots, 0, realtime(sent_ns(0)) + 1500), 0);
        assert_int_equal(receive(&b, &request, 0), SLOTS_FIRST);

        assert_int_equal(slots_lateness_ns(&b.slots, 0), 100);
        assert_int_equal(slot_rtt_user_ns(&b.slots.slot[0]), RTT_NS);
        assert_int_equal(slot_rtt_ns(&b.slots.slot[0]), RTT_NS - 2000 - 1500 - 4000);
        c = count(&b);
        assert_int_equal(c.slots, 1);
        assert_int_equal(c.sent, 1);
        assert_int_equal(c.received, 1);
        assert_int_equal(c.lost, 0);
        assert_int_equal(c.negative, 0);
        assert_int_equal(c.unstamped_send, 0);
        assert_int_equal(c.forward_ttl_min, 254);
        assert_int_equal(c.return_ttl_max, 253);
}

/* Replies 1, 3, 2, 4: all four counted, one marked reordered, its stamps kept. */
static void test_reordered(void **state)
{
        static const size_t order[] = {0, 2, 1, 3};
        struct stamp_request requests[4];
        struct slots_counts c;
        struct books b;

        books_init(&b, 0);
        for (size_t i = 0; i < 4; i++)
                requests[i] = send_slot(&b, i);
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(receive(&b, &requests[order[i]], order[i]), SLOTS_FIRST);

        c = count(&b);
        assert_int_equal(c.received, 4);
        assert_int_equal(c.lost, 0);
        assert_int_equal(c.reordered, 1);
        assert_true(b.slots.slot[1].is_reordered);
        assert_int_equal(slot_rtt_user_ns(&b.slots.slot[1]), RTT_NS);
}

/* More packets received than sent: nothing is lost, and duplicates are counted apart. */
static void test_duplicates(void **state)
{
        struct stamp_request request;
        struct slots_counts c;
        struct books b;

        books_init(&b, 0);
        for (size_t i = 0; i < 8; i++) {
                request = send_slot(&b, i);
                assert_int_equal(receive(&b, &request, i), SLOTS_FIRST);
        }
        for (int i = 0; i < 3; i++) {
                struct slots_reply late = reply_to(&b, &request, 7);

                late.received_ns += NSEC_PER_SEC; /* the first one's stamps stay */
                assert_int_equal(slots_receive(&b.slots, &late), SLOTS_DUPLICATE);
        }
        c = count(&b);
        assert_int_equal(c.sent, 8);
        assert_int_equal(c.received, 8);
        assert_int_equal(c.lost, 0);
        assert_int_equal(c.duplicates, 3);
        assert_int_equal(c.reordered, 0);
        assert_int_equal(slot_rtt_user_ns(&b.slots.slot[7]), RTT_NS);
}

/* A sender that was stalled for nine slots: nine missed, nothing shifted, the sequence of packets without a gap. */
static void test_stalled_sender(void **state)
{
        struct stamp_request request;
        struct slots_counts c;
        struct books b;

        books_init(&b, 0);
        for (size_t i = 0; i < 3; i++)
                send_slot(&b, i);
        for (size_t i = 3; i < 12; i++)
                slots_miss(&b.slots, i);
        request = send_slot(&b, 12);
        assert_int_equal(request.sequence, 3);
        assert_int_equal(receive(&b, &request, 12), SLOTS_FIRST);

        assert_int_equal(slots_lateness_ns(&b.slots, 12), 100); /* against its own time */
        assert_int_equal(slots_lateness_ns(&b.slots, 5), SAMPLE_MISSING);
        assert_int_equal(slot_rtt_user_ns(&b.slots.slot[12]), RTT_NS);
        c = count(&b);
        assert_int_equal(c.slots, 13);
        assert_int_equal(c.missed, 9);
        assert_int_equal(c.sent, 4);
        assert_int_equal(c.received, 1);
        assert_int_equal(c.lost, 3);
}

/* The stamp of packet 0 comes after that of packet 1: each goes to its own packet. That of packet 2 never comes: it is
 * missing, and the packet is not lost. */
static void test_late_and_missing_stamps(void **state)
{
        struct stamp_request requests[3];
        struct slots_counts c;
        struct books b;

        books_init(&b, 0);
        for (size_t i = 0; i < 3; i++)
                requests[i] = send_slot(&b, i);
        assert_int_equal(slots_stamp(&b.slots, 1, realtime(sent_ns(1)) + 700), 0);
        assert_int_equal(slots_stamp(&b.slots, 0, realtime(sent_ns(0)) + 900), 0);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(receive(&b, &requests[i], i), SLOTS_FIRST);

        assert_int_equal(b.slots.slot[0].kernel_sent_ns, realtime(sent_ns(0)) + 900);
        assert_int_equal(b.slots.slot[1].kernel_sent_ns, realtime(sent_ns(1)) + 700);
        assert_int_equal(b.slots.slot[2].kernel_sent_ns, SAMPLE_MISSING);
        assert_int_equal(slot_rtt_ns(&b.slots.slot[2]), SAMPLE_MISSING);
        c = count(&b);
        assert_int_equal(c.unstamped_send, 1);
        assert_int_equal(c.lost, 0);
        assert_int_equal(c.negative, 0);
}

/* After a refused packet the kernel counts anew. A stamp from before the refusal that comes late must not be taken for
 * the new packet with the same number. */
static void test_stamps_after_a_refusal(void **state)
{
        struct slots_counts c;
        struct books b;

        books_init(&b, 0);
        send_slot(&b, 0);
        slots_refuse(&b.slots, 1, sent_ns(1));
        slots_restart_stamps(&b.slots);
        send_slot(&b, 2);
        assert_int_equal(slots_stamp(&b.slots, 0, realtime(sent_ns(0)) + 900), 1);
        assert_int_equal(b.slots.slot[2].kernel_sent_ns, SAMPLE_MISSING);
        assert_int_equal(slots_stamp(&b.slots, 0, realtime(sent_ns(2)) + 900), 0);
        assert_int_equal(b.slots.slot[2].kernel_sent_ns, realtime(sent_ns(2)) + 900);
        assert_int_equal(b.slots.n_stray_stamps, 1);

        c = count(&b);
        assert_int_equal(c.refused, 1);
        assert_int_equal(c.sent, 3);
        assert_int_equal(c.lost, 3);
}

static void test_stray_stamps(void **state)
{
        struct books b;

        books_init(&b, 0);
        assert_int_equal(slots_stamp(&b.slots, 0, START_RT), 1); /* nothing sent yet */
        send_slot(&b, 0);
        assert_int_equal(slots_stamp(&b.slots, 1, realtime(sent_ns(0)) + 900), 1);
        assert_int_equal(slots_stamp(&b.slots, UINT32_MAX, realtime(sent_ns(0)) + 900), 1);
        assert_int_equal(slots_stamp(&b.slots, 0, realtime(sent_ns(0)) + 900), 0);
        assert_int_equal(slots_stamp(&b.slots, 0, realtime(sent_ns(0)) + 950), 1); /* twice */
        assert_int_equal(b.slots.slot[0].kernel_sent_ns, realtime(sent_ns(0)) + 900);
        assert_int_equal(b.slots.n_stray_stamps, 4);
}

/* A receive stamp before the send stamp: an error that is counted, and a value that is kept as it is. */
static void test_negative_is_an_error(void **state)
{
        struct stamp_request request;
        struct slots_reply reply;
        struct books b;

        books_init(&b, 0);
        request = send_slot(&b, 0);
        reply = reply_to(&b, &request, 0);
        reply.received_ns = sent_ns(0) - 5000;
        assert_int_equal(slots_receive(&b.slots, &reply), SLOTS_FIRST);
        assert_int_equal(slot_rtt_user_ns(&b.slots.slot[0]), -5000);
        assert_int_equal(count(&b).negative, 1);

        request = send_slot(&b, 1); /* by the kernel's stamps */
        slots_stamp(&b.slots, 1, realtime(sent_ns(1)) + RTT_NS);
        receive(&b, &request, 1);
        assert_int_equal(count(&b).negative, 2);

        request = send_slot(&b, 2); /* by the peer's */
        reply = reply_to(&b, &request, 2);
        reply.packet.timestamp = stamp_time_encode(STAMP_FORMAT_NTP, realtime(sent_ns(2)));
        slots_receive(&b.slots, &reply);
        assert_int_equal(count(&b).negative, 3);
}

/* The sequence number passes 2^32 in the middle: it continues. */
static void test_sequence_wraps(void **state)
{
        struct slots_counts c;
        struct books b;

        books_init(&b, UINT32_MAX - 3);
        for (size_t i = 0; i < 8; i++) {
                struct stamp_request request = send_slot(&b, i);

                assert_int_equal(request.sequence, (uint32_t)(UINT32_MAX - 3 + i));
                assert_int_equal(slots_stamp(&b.slots, (uint32_t)i, realtime(sent_ns(i)) + 900), 0);
                assert_int_equal(receive(&b, &request, i), SLOTS_FIRST);
        }
        c = count(&b);
        assert_int_equal(c.received, 8);
        assert_int_equal(c.lost, 0);
        assert_int_equal(c.duplicates, 0);
        assert_int_equal(c.reordered, 0);
        assert_int_equal(b.slots.n_unmatched, 0);
}

static void test_unmatched(void **state)
{
        struct stamp_request request, other;
        struct slots_reply reply;
        struct books b;

        books_init(&b, 100);
        request = send_slot(&b, 0);
        other = request;
        other.sequence = 101; /* not sent yet */
        assert_int_equal(receive(&b, &other, 0), SLOTS_UNMATCHED);
        other.sequence = 99; /* before the first */
        assert_int_equal(receive(&b, &other, 0), SLOTS_UNMATCHED);
        reply = reply_to(&b, &request, 0); /* of another run, or made up */
        reply.packet.sender_timestamp++;
        assert_int_equal(slots_receive(&b.slots, &reply), SLOTS_UNMATCHED);
        assert_int_equal(b.slots.n_unmatched, 3);
        assert_int_equal(count(&b).received, 0);
        assert_int_equal(count(&b).lost, 1);
}

/* Rows as they were written. */
struct rows {
        struct sample_writer base;
        size_t n;
        int64_t values[N_SLOTS][SLOTS_N_COLUMNS];
};

static int keep_row(struct sample_writer *w, const int64_t *values, struct err *err)
{
        struct rows *rows = (struct rows *)w;

        memcpy(rows->values[rows->n++], values, sizeof(rows->values[0]));
        return 0;
}

static void write_rows(const struct books *b, struct rows *ret)
{
        static const struct sample_writer_ops ops = {.row = keep_row};

        *ret = (struct rows){.base = {.ops = &ops, .columns = slots_columns, .n_columns = SLOTS_N_COLUMNS}};
        assert_int_equal(slots_write(&b->slots, &ret->base, NULL), 0);
}

static void assert_row(const int64_t *row, const int64_t expected[SLOTS_N_COLUMNS])
{
        for (size_t i = 0; i < SLOTS_N_COLUMNS; i++)
                assert_int_equal(row[i], expected[i]);
}

/* A row for every closed slot, empty where nothing was observed. */
static void test_rows(void **state)
{
        static const int64_t none = SAMPLE_MISSING;
        struct stamp_request request;
        struct rows rows;
        struct books b;

        books_init(&b, 0);
        request = send_slot(&b, 0);
        slots_stamp(&b.slots, 0, realtime(sent_ns(0)) + 1500);
        receive(&b, &request, 0);
        slots_miss(&b.slots, 1);
        slots_refuse(&b.slots, 2, sent_ns(2));
        send_slot(&b, 3); /* lost */
        slots_stamp(&b.slots, 1, realtime(sent_ns(3)) + 1600);
        request = send_slot(&b, 4); /* answered, not stamped */
        receive(&b, &request, 4);

        write_rows(&b, &rows);
        assert_int_equal(rows.n, 5);
        assert_row(rows.values[0], (int64_t[]){0, 100, 1600, 3100, 4000, RTT_NS - 3500, RTT_NS});
        assert_row(rows.values[1], (int64_t[]){1, none, none, none, none, none, none});
        assert_row(rows.values[2], (int64_t[]){2, 100, none, none, none, none, none});
        assert_row(rows.values[3], (int64_t[]){3, 100, 1700, none, none, none, none});
        assert_row(rows.values[4], (int64_t[]){4, 100, none, 3100, 4000, none, RTT_NS});
}

/* A peer whose clock is hours off: deviations start small, with the first pair of packets. */
static void test_peer_clock_off(void **state)
{
        static const int64_t ahead[] = {3 * 3600 * NSEC_PER_SEC, -5 * 3600 * NSEC_PER_SEC, 37 * NSEC_PER_SEC};

        for (size_t i = 0; i < ARRAY_SIZE(ahead); i++) {
                struct rows rows;
                struct books b;

                books_init(&b, 0);
                b.peer_ahead_ns = ahead[i];
                b.peer_format = STAMP_FORMAT_PTP;
                for (size_t slot = 0; slot < 4; slot++) {
                        struct stamp_request request = send_slot(&b, slot);

                        assert_int_equal(receive(&b, &request, slot), SLOTS_FIRST);
                }
                write_rows(&b, &rows);
                for (size_t slot = 0; slot < 4; slot++)
                        assert_int_equal(rows.values[slot][3],
                                         100); /* as late as it was sent; the way is in the offset */
                assert_int_equal(b.slots.peer_offset_ns, ahead[i] + 3000);
                assert_int_equal(rows.values[0][4], 4000);
        }
}

/* Without stamps of the peer there is no residence; the user's round trip is there all the same. */
static void test_peer_without_stamps(void **state)
{
        struct stamp_request request;
        struct slots_reply reply;
        struct books b;

        books_init(&b, 0);
        request = send_slot(&b, 0);
        reply = reply_to(&b, &request, 0);
        reply.packet.receive_timestamp = 0;
        reply.packet.sender_ttl = 0; /* it does not copy that either */
        assert_int_equal(slots_receive(&b.slots, &reply), SLOTS_FIRST);
        assert_int_equal(slot_rtt_user_ns(&b.slots.slot[0]), RTT_NS);
        assert_int_equal(slot_rtt_ns(&b.slots.slot[0]), SAMPLE_MISSING);
        assert_int_equal(count(&b).unstamped_peer, 1);
        assert_int_equal(count(&b).forward_ttl_min, 0);
        assert_int_equal(count(&b).negative, 0);
}

/* Six packets: the second is lost on the way there, the fourth on the way back. */
static void test_direction_of_loss(void **state)
{
        uint64_t lost_forward;
        struct books b;

        books_init(&b, 0);
        for (size_t i = 0; i < 6; i++) {
                struct stamp_request request = send_slot(&b, i);

                if (i == 3)
                        b.peer_sequence++;
                else if (i != 1)
                        assert_int_equal(receive(&b, &request, i), SLOTS_FIRST);
        }
        assert_int_equal(count(&b).lost, 2);
        assert_int_equal(slots_lost_forward(&b.slots, &lost_forward), 0);
        assert_int_equal(lost_forward, 1);
}

/* A stateless peer copies the sequence: it cannot be said where a packet was lost. */
static void test_direction_of_loss_unknown(void **state)
{
        uint64_t lost_forward;
        struct books b;

        books_init(&b, 0);
        for (size_t i = 0; i < 6; i++) {
                struct stamp_request request = send_slot(&b, i);

                b.peer_sequence = request.sequence;
                if (i != 1)
                        assert_int_equal(receive(&b, &request, i), SLOTS_FIRST);
        }
        assert_int_equal(count(&b).lost, 1);
        assert_int_equal(slots_lost_forward(&b.slots, &lost_forward), -ENODATA);
}

/* Warm-up and measurement are counted apart, from the same books. */
static void test_count_of_a_part(void **state)
{
        struct slots_counts warmup, rest;
        struct books b;

        books_init(&b, 0);
        for (size_t i = 0; i < 6; i++) {
                struct stamp_request request = send_slot(&b, i);

                if (i >= 2)
                        receive(&b, &request, i);
        }
        slots_count(&b.slots, 0, 4, &warmup);
        slots_count(&b.slots, 4, N_SLOTS, &rest);
        assert_int_equal(warmup.slots, 4);
        assert_int_equal(warmup.lost, 2);
        assert_int_equal(rest.slots, 2);
        assert_int_equal(rest.lost, 0);
}

static void test_json(void **state)
{
        struct slots_counts c = {
                .slots = 3, .sent = 2, .missed = 1, .received = 2, .forward_ttl_min = 252, .forward_ttl_max = 254};
        _cleanup_json_ json_t *json = slots_counts_json(&c);

        assert_non_null(json);
        assert_int_equal(json_integer_value(json_object_get(json, "sent")), 2);
        assert_int_equal(json_integer_value(json_object_get(json, "forward_hops_min")), 1);
        assert_int_equal(json_integer_value(json_object_get(json, "forward_hops_max")), 3);
        assert_null(json_object_get(json, "return_hops_min"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_round_trip),
                cmocka_unit_test(test_reordered),
                cmocka_unit_test(test_duplicates),
                cmocka_unit_test(test_stalled_sender),
                cmocka_unit_test(test_late_and_missing_stamps),
                cmocka_unit_test(test_stamps_after_a_refusal),
                cmocka_unit_test(test_stray_stamps),
                cmocka_unit_test(test_negative_is_an_error),
                cmocka_unit_test(test_sequence_wraps),
                cmocka_unit_test(test_unmatched),
                cmocka_unit_test(test_rows),
                cmocka_unit_test(test_peer_clock_off),
                cmocka_unit_test(test_peer_without_stamps),
                cmocka_unit_test(test_direction_of_loss),
                cmocka_unit_test(test_direction_of_loss_unknown),
                cmocka_unit_test(test_count_of_a_part),
                cmocka_unit_test(test_json),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
