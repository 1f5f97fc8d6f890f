/* SPDX-License-Identifier: Apache-2.0 */
#include "load/figures.h"

#include <errno.h>

#include "base/macro.h"
#include "tests/test.h"

#define N_SLOTS  300
#define START_NS (INT64_C(5000) * NSEC_PER_SEC)
#define START_RT (INT64_C(1795000000) * NSEC_PER_SEC)

/* Books of packets that were sent on time and answered after 40 us, 10 there, 5 at the peer and 20 back, the rest
 * within the hosts. */
struct books {
        struct slots slots;
        int64_t peer_ahead_ns;
        int64_t scratch[N_SLOTS];
        uint64_t memory[N_SLOTS * 8];
};

static int set_up(void **state)
{
        const struct schedule schedule = schedule_at_rate(START_NS, 1000);
        const struct clocksync_anchor anchor = {.monotonic_ns = START_NS, .realtime_ns = START_RT};
        struct books *b = calloc(1, sizeof(*b));

        if (!b || slots_size(N_SLOTS) > sizeof(b->memory))
                return -1;
        slots_init(&b->slots, b->memory, N_SLOTS, 0);
        slots_begin(&b->slots, &schedule, &anchor);
        *state = b;
        return 0;
}

static int tear_down(void **state)
{
        free(*state);
        return 0;
}

/* Packet @i, sent @late_ns after its due time and delayed by @queue_ns more on its way there. */
static void exchange(struct books *b, size_t i, int64_t late_ns, int64_t queue_ns)
{
        int64_t sent_ns = schedule_due_ns(&b->slots.schedule, i) + late_ns;
        int64_t kernel_sent_ns = sent_ns - START_NS + START_RT + 2000, arrived_ns = kernel_sent_ns + 10000 + queue_ns;
        struct stamp_request request = {0};
        struct slots_reply reply = {
                .packet = {.sequence = (uint32_t)i,
                           .timestamp = stamp_time_encode(STAMP_FORMAT_NTP, arrived_ns + 5000 + b->peer_ahead_ns),
                           .error = {.multiplier = 1},
                           .receive_timestamp = stamp_time_encode(STAMP_FORMAT_NTP, arrived_ns + b->peer_ahead_ns)},
                .kernel_received_ns = arrived_ns + 25000,
                .received_ns = sent_ns + 40000 + queue_ns,
        };

        slots_request(&b->slots, sent_ns, &request);
        slots_sent(&b->slots, i, sent_ns);
        slots_stamp(&b->slots, (uint32_t)b->slots.n_sent - 1, kernel_sent_ns);
        reply.packet.sender_sequence = request.sequence;
        reply.packet.sender_timestamp = request.timestamp;
        assert_int_equal(slots_receive(&b->slots, &reply), SLOTS_FIRST);
}

static void lose(struct books *b, size_t i)
{
        slots_sent(&b->slots, i, schedule_due_ns(&b->slots.schedule, i));
}

static struct figure_values take(struct books *b, enum figure figure)
{
        struct figure_values v;

        assert_int_equal(figure_take(&b->slots, 0, N_SLOTS, figure, b->scratch, &v), 0);
        return v;
}

static void test_each_figure(void **state)
{
        static const struct {
                enum figure figure;
                int64_t p50;
        } cases[] = {
                {FIGURE_RTT, 30000},      {FIGURE_RTT_USER, 40000}, {FIGURE_RESPONSE, 40700}, {FIGURE_LATENESS, 700},
                {FIGURE_RESIDENCE, 5000}, {FIGURE_THERE, 10000},    {FIGURE_BACK, 20000},
        };
        struct books *b = *state;

        for (size_t i = 0; i < 10; i++)
                exchange(b, i, 700, 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct figure_values v = take(b, cases[i].figure);

                assert_int_equal(v.n, 10);
                assert_int_equal(v.p50, cases[i].p50);
                assert_int_equal(v.min, cases[i].p50);
                assert_int_equal(v.max, cases[i].p50);
                assert_int_equal(v.negative, 0);
        }
}

/* Of 300 packets four were lost: p99 is the 297th, and only 296 are not lost. Of lateness all 300 are values. */
static void test_lost_rank_above_all(void **state)
{
        struct books *b = *state;

        for (size_t i = 0; i < N_SLOTS; i++)
                if (i % 75 == 10)
                        lose(b, i);
                else
                        exchange(b, i, 0, 0);
        assert_int_equal(take(b, FIGURE_RTT_USER).lost, 4);
        assert_int_equal(take(b, FIGURE_RTT_USER).p95, 40000);
        assert_true(take(b, FIGURE_RTT_USER).p99 == FIGURE_LOST);
        assert_true(take(b, FIGURE_RTT).max == FIGURE_LOST);
        assert_int_equal(take(b, FIGURE_LATENESS).n, N_SLOTS);
        assert_int_equal(take(b, FIGURE_LATENESS).p99, 0);
}

/* 298 values say nothing of p99, 58 nothing of p95. */
static void test_too_few(void **state)
{
        struct books *b = *state;

        for (size_t i = 0; i < 58; i++)
                exchange(b, i, 0, 0);
        assert_int_equal(take(b, FIGURE_RTT).p50, 30000);
        assert_true(take(b, FIGURE_RTT).p95 == SAMPLE_MISSING);
        exchange(b, 58, 0, 0);
        assert_int_equal(take(b, FIGURE_RTT).p95, 30000);
        for (size_t i = 59; i < 298; i++)
                exchange(b, i, 0, 0);
        assert_true(take(b, FIGURE_RTT).p99 == SAMPLE_MISSING);
        exchange(b, 298, 0, 0);
        assert_int_equal(take(b, FIGURE_RTT).p99, 30000);
}

static void test_no_data(void **state)
{
        struct books *b = *state;
        struct figure_values v;

        assert_int_equal(figure_take(&b->slots, 0, N_SLOTS, FIGURE_RTT, b->scratch, &v), -ENODATA);
        slots_miss(&b->slots, 0);
        assert_int_equal(figure_take(&b->slots, 0, N_SLOTS, FIGURE_LATENESS, b->scratch, &v), -ENODATA);
        lose(b, 1);
        assert_int_equal(figure_take(&b->slots, 0, N_SLOTS, FIGURE_RTT_USER, b->scratch, &v), -ENODATA);
        assert_int_equal(figure_take(&b->slots, 0, N_SLOTS, FIGURE_LATENESS, b->scratch, &v), 0);
}

/* The peer's clock differs by hours: the variation of the delay starts small, with the first pair of packets. */
static void test_variation_with_a_clock_that_is_off(void **state)
{
        static const int64_t queue_ns[] = {0, 300, 100, 100};
        struct books *b = *state;

        b->peer_ahead_ns = -13 * INT64_C(3600) * NSEC_PER_SEC;
        for (size_t i = 0; i < ARRAY_SIZE(queue_ns); i++)
                exchange(b, i, 0, queue_ns[i]);
        assert_int_equal(take(b, FIGURE_VARIATION_THERE).n, 3);
        assert_int_equal(take(b, FIGURE_VARIATION_THERE).min, 0);
        assert_int_equal(take(b, FIGURE_VARIATION_THERE).max, 300);
        assert_int_equal(take(b, FIGURE_VARIATION_BACK).max, 0);
}

/* Between two packets of which one was lost there is no variation. */
static void test_variation_across_a_loss(void **state)
{
        struct books *b = *state;
        struct figure_values v;

        exchange(b, 0, 0, 0);
        lose(b, 1);
        exchange(b, 2, 0, 500);
        assert_int_equal(figure_take(&b->slots, 0, N_SLOTS, FIGURE_VARIATION_THERE, b->scratch, &v), -ENODATA);
        exchange(b, 3, 0, 900);
        assert_int_equal(take(b, FIGURE_VARIATION_THERE).max, 400);
}

static void test_part(void **state)
{
        struct books *b = *state;
        struct figure_values v;

        for (size_t i = 0; i < 20; i++)
                exchange(b, i, 0, i < 10 ? 7000 : 0);
        assert_int_equal(figure_take(&b->slots, 10, 20, FIGURE_RTT, b->scratch, &v), 0);
        assert_int_equal(v.n, 10);
        assert_int_equal(v.max, 30000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_each_figure, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_lost_rank_above_all, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_too_few, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_no_data, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_variation_with_a_clock_that_is_off, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_variation_across_a_loss, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_part, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
