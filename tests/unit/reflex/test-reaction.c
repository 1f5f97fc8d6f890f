/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <errno.h>

#include "base/clock.h"
#include "base/macro.h"
#include "reflex/reaction.h"

#define ANY_CPU                                                                                                        \
        {                                                                                                              \
                .cpu = SCHED_CPU_ANY                                                                                   \
        }

static struct reaction *open_reaction(uint64_t n_events, uint32_t n_instructions)
{
        const struct reaction_options options = {.rate_hz = 2000,
                                                 .n_events = n_events,
                                                 .n_instructions = n_instructions,
                                                 .sched = ANY_CPU,
                                                 .trigger_sched = ANY_CPU};
        struct reaction *reaction = NULL;
        struct err err = {0};

        assert_int_equal(reaction_new(&options, &reaction, &err), 0);
        if (reaction_open(reaction, &err) < 0)
                fail_msg("%s", err.text);
        return reaction;
}

static int64_t cost_ps(const struct reaction *reaction)
{
        _cleanup_json_ json_t *notes = reaction_notes_json(reaction);

        assert_non_null(notes);
        return json_integer_value(json_object_get(notes, "program_cost_ps"));
}

static void test_every_event_becomes_an_actuation(void **state)
{
        _cleanup_reaction_ struct reaction *reaction = open_reaction(200, 0);
        struct err err = {0};
        int64_t last_ns = 0;

        assert_int_equal(reaction_run(reaction, clock_now_ns(CLOCK_MONOTONIC) + NSEC_PER_MSEC, NULL, &err), 0);
        for (uint64_t i = 0; i < 200; i++) {
                struct reaction_event e = reaction_event(reaction, i);

                assert_true(e.due_ns > 0 && e.due_ns <= e.made_ns);
                assert_true(e.made_ns <= e.woke_ns && e.woke_ns <= e.entered_ns && e.entered_ns <= e.output_ns);
                assert_true(e.made_ns >= last_ns);
                last_ns = e.made_ns;
        }
        assert_int_equal(reaction_event(reaction, 200).made_ns, 0);
}

static void test_stopped_early(void **state)
{
        _cleanup_reaction_ struct reaction *reaction = open_reaction(10000, 0);
        const volatile int stop = 1;
        struct err err = {0};

        assert_int_equal(reaction_run(reaction, clock_now_ns(CLOCK_MONOTONIC), &stop, &err), -EINTR);
        assert_int_equal(reaction_event(reaction, 9999).output_ns, 0);
}

static void test_more_instructions_cost_more(void **state)
{
        _cleanup_reaction_ struct reaction *lean = open_reaction(1, 0), *long_one = open_reaction(1, 5000);

        assert_int_equal(cost_ps(long_one) - cost_ps(lean), INT64_C(5000) * 6000); /* 6 ns an addition */
}

static void test_options_out_of_range(void **state)
{
        static const struct reaction_options bad[] = {
                {.rate_hz = 0, .n_events = 1},
                {.rate_hz = 100001, .n_events = 1},
                {.rate_hz = 1, .n_events = 0},
                {.rate_hz = 1, .n_events = REACTION_EVENTS_MAX + 1},
                {.rate_hz = 1, .n_events = 1, .n_instructions = REACTION_INSTRUCTIONS_MAX + 1},
        };
        const struct reaction_options too_dear = {
                .rate_hz = 100000, .n_events = 1, .n_instructions = 5000, .sched = ANY_CPU, .trigger_sched = ANY_CPU};
        _cleanup_reaction_ struct reaction *reaction = NULL;
        struct err err = {0};

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                assert_int_equal(reaction_new(&bad[i], &reaction, &err), -EINVAL);
                assert_null(reaction);
        }
        assert_int_equal(reaction_new(&too_dear, &reaction, &err), 0);
        assert_int_equal(reaction_open(reaction, &err), -EINVAL);
        assert_int_equal(err.kind, ERR_USAGE);
        assert_non_null(strstr(err.text, "the cap is"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_event_becomes_an_actuation),
                cmocka_unit_test(test_stopped_early),
                cmocka_unit_test(test_more_instructions_cost_more),
                cmocka_unit_test(test_options_out_of_range),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
