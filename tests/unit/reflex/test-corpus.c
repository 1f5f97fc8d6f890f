/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "base/macro.h"
#include "reflex/corpus.h"

#define SEED 20261130

static void test_public_corpus_reproduces(void **state)
{
        struct corpus_counts c;

        corpus_public(monitor_decide, &c);
        assert_int_equal(c.draws, 1000);
        assert_int_equal(c.escapes, 0);
        assert_int_equal(c.answers[ANSWER_REJECT], 450);
        assert_int_equal(c.answers[ANSWER_CLAMP], 317);
        assert_int_equal(c.answers[ANSWER_SAFE], 0);
        assert_int_equal(c.answers[ANSWER_ALLOW], 1000 - 450 - 317);
}

static void test_nothing_escapes(void **state)
{
        struct corpus_counts c;

        corpus_run(monitor_decide, SEED, CORPUS_DRAWS, &c);
        assert_int_equal(c.draws, CORPUS_DRAWS);
        assert_int_equal(c.escapes, 0);
        assert_true(c.interventions > CORPUS_DRAWS / 100);
        for (size_t i = 0; i < ANSWERS; i++) /* and the draws reach every rule often enough to mean something */
                assert_true(c.answers[i] > CORPUS_DRAWS / 50);
}

static void test_same_seed_same_draws(void **state)
{
        struct corpus_counts a, b, other;

        corpus_run(monitor_decide, SEED, 20000, &a);
        corpus_run(monitor_decide, SEED, 20000, &b);
        corpus_run(monitor_decide, SEED + 1, 20000, &other);
        assert_memory_equal(&a, &b, sizeof(a));
        assert_memory_not_equal(&a, &other, sizeof(a));
}

/* Monitors with one rule missing each. */

static struct decision no_unknown(struct monitor *m, uint32_t channel, int64_t value, enum authority authority,
                                  uint32_t source, int64_t now_ns)
{
        return monitor_decide(m, channel % CHANNELS, value, authority, source, now_ns);
}

static struct decision no_authority(struct monitor *m, uint32_t channel, int64_t value, enum authority authority,
                                    uint32_t source, int64_t now_ns)
{
        return monitor_decide(m, channel, value, AUTHORITY_SAFETY, source, now_ns);
}

static struct decision no_estop(struct monitor *m, uint32_t channel, int64_t value, enum authority authority,
                                uint32_t source, int64_t now_ns)
{
        bool is_stopped = m->is_stopped;
        struct decision d;

        m->is_stopped = false;
        d = monitor_decide(m, channel, value, authority, source, now_ns);
        m->is_stopped = is_stopped;
        return d;
}

static struct decision no_hold(struct monitor *m, uint32_t channel, int64_t value, enum authority authority,
                               uint32_t source, int64_t now_ns)
{
        if (channel < CHANNELS)
                m->channels[channel].is_held = false;
        return monitor_decide(m, channel, value, authority, source, now_ns);
}

static struct decision no_range(struct monitor *m, uint32_t channel, int64_t value, enum authority authority,
                                uint32_t source, int64_t now_ns)
{
        if (channel < CHANNELS)
                m->channels[channel].max = INT32_MAX;
        return monitor_decide(m, channel, value, authority, source, now_ns);
}

static struct decision no_slew(struct monitor *m, uint32_t channel, int64_t value, enum authority authority,
                               uint32_t source, int64_t now_ns)
{
        if (channel < CHANNELS)
                m->channels[channel].slew = SLEW_NONE;
        return monitor_decide(m, channel, value, authority, source, now_ns);
}

/* Believes every time that it is told: going back and forth opens the slew's window. */
static struct decision no_order_of_time(struct monitor *m, uint32_t channel, int64_t value, enum authority authority,
                                        uint32_t source, int64_t now_ns)
{
        m->now_ns = now_ns;
        return monitor_decide(m, channel, value, authority, source, now_ns);
}

static void test_a_missing_rule_is_caught(void **state)
{
        static const struct {
                corpus_decide_fn decide;
                enum cause cause;
        } broken[] = {
                {no_unknown, CAUSE_UNKNOWN},    {no_authority, CAUSE_AUTHORITY}, {no_estop, CAUSE_ESTOP},
                {no_hold, CAUSE_HOLD},          {no_range, CAUSE_RANGE},         {no_slew, CAUSE_SLEW},
                {no_order_of_time, CAUSE_SLEW},
        };

        for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
                struct corpus_counts c;

                corpus_run(broken[i].decide, SEED, CORPUS_DRAWS / 10, &c);
                assert_true(c.escapes > 0);
                assert_int_equal(c.first_escape, broken[i].cause);
                assert_in_range(c.first_escape_draw, 1, c.draws);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_public_corpus_reproduces),
                cmocka_unit_test(test_nothing_escapes),
                cmocka_unit_test(test_same_seed_same_draws),
                cmocka_unit_test(test_a_missing_rule_is_caught),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
