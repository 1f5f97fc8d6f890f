/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/macro.h"
#include "bpfvm/assemble.h"
#include "reflex/pipeline.h"
#include "reflex/sim.h"

#define PATIENCE_NS (60 * NSEC_PER_SEC) /* no test takes it; one that hangs ends by it, and fails */

/* Asks for ten times the sequence number on PWM channel 1 and returns what came of it. */
#define SEQUENCE_TO_PWM "r2 = *(u64 *)(r1 + 0)\nr2 *= 10\nr1 = 1\ncall pwm_write\nexit\n"

static struct object *load(const char *text)
{
        _cleanup_free_ uint8_t *slots = NULL;
        struct object *object = NULL;
        struct fault fault;
        struct err err = {0};
        size_t len;

        if (assemble_text(span_of_text(text), "test", &slots, &len, &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(object_of_slots(span_of(slots, len), "test", NULL, 0, &object, &fault, &err), 0);
        return object;
}

static struct routine *accept(const char *text)
{
        const struct routine_options options = {.may_actuate = true};
        _cleanup_object_ struct object *object = load(text);
        _cleanup_verdict_ struct verdict verdict = {0};
        struct routine *routine = NULL;
        struct err err = {0};

        if (routine_new(&object, object->programs[0], &options, &routine, &verdict, &err) != 0)
                fail_msg("%s %s", verdict.fault.text, err.text);
        assert_null(object);
        return routine;
}

static enum fault_kind refuse(const char *text, bool may_actuate)
{
        const struct routine_options options = {.may_actuate = may_actuate};
        _cleanup_object_ struct object *object = load(text);
        _cleanup_verdict_ struct verdict verdict = {0};
        struct routine *routine = NULL;
        struct err err = {0};

        assert_int_equal(routine_new(&object, object->programs[0], &options, &routine, &verdict, &err), 1);
        assert_null(routine);
        assert_non_null(object); /* left to the caller */
        return verdict.fault.kind;
}

/* A pipeline into the simulation, its time in the test's hands, and what it told the observer. */
struct bench {
        struct output *output;
        struct pipeline *pipeline;
        int64_t now_ns;
        volatile int quit;
        uint64_t quit_after; /* events */
        uint64_t n;
        struct pipeline_trace last;
        uint64_t disordered; /* sequence numbers that did not follow the one before */
        uint64_t results[3]; /* how often each was returned */
};

static int64_t bench_now(void *userdata)
{
        return ((struct bench *)userdata)->now_ns;
}

static void bench_observe(void *userdata, const struct pipeline_trace *trace)
{
        struct bench *b = userdata;

        b->disordered += trace->sequence != b->n;
        if (trace->result < ARRAY_SIZE(b->results))
                b->results[trace->result]++;
        b->last = *trace;
        if (++b->n == b->quit_after)
                b->quit = 1;
}

static void bench_open(struct bench *b, const struct envelope *envelopes)
{
        struct pipeline_options options = {.envelopes = envelopes,
                                           .now_ns = bench_now,
                                           .observe = bench_observe,
                                           .userdata = b};
        struct err err = {0};

        *b = (struct bench){.now_ns = 1};
        assert_int_equal(output_find("sim")->open(&b->output, &err), 0);
        options.output = b->output;
        assert_int_equal(pipeline_new(&options, &b->pipeline, &err), 0);
}

static void bench_done(struct bench *b)
{
        pipeline_free(b->pipeline);
        b->output->ops->close(b->output);
}

static uint32_t attach(struct bench *b, enum attach_kind kind, uint64_t rate_hz, const char *text)
{
        const struct attachment attachment = {.kind = kind, .rate_hz = rate_hz, .authority = AUTHORITY_MISSION};
        struct routine *routine = accept(text);
        struct fault fault = {0};
        struct err err = {0};
        uint32_t number;

        if (pipeline_attach(b->pipeline, &attachment, &routine, &number, &fault, &err) != 0)
                fail_msg("%s %s", fault.text, err.text);
        assert_null(routine);
        return number;
}

/* Lets @n events happen and handles them. */
static void events(struct bench *b, uint32_t number, uint64_t n)
{
        int fd = pipeline_event_fd(b->pipeline, number);
        struct err err = {0};

        assert_true(fd >= 0);
        assert_int_equal(write(fd, &n, sizeof(n)), sizeof(n));
        b->quit = 0;
        b->quit_after = b->n + n;
        assert_int_equal(pipeline_run(b->pipeline, clock_now_ns(CLOCK_MONOTONIC) + PATIENCE_NS, &b->quit, &err),
                         -EINTR);
}

static struct pipeline_counts counts(const struct bench *b, uint32_t number)
{
        struct pipeline_counts c;

        assert_int_equal(pipeline_counts(b->pipeline, number, &c), 0);
        return c;
}

static void test_only_verified_programs(void **state)
{
        assert_int_equal(refuse("r0 = r3\nexit\n", true), FAULT_UNINIT_REGISTER);
        assert_int_equal(refuse("r0 = *(u64 *)(r1 + 24)\nexit\n", true), FAULT_BOUNDS);
        assert_int_equal(refuse("*(u64 *)(r1 + 0) = 1\nr0 = 0\nexit\n", true), FAULT_READ_ONLY);
        assert_int_equal(refuse("again:\nr0 = 0\ngoto again\nexit\n", true), FAULT_UNREACHABLE);
        assert_int_equal(refuse("r0 = *(u64 *)(r1 + 0)\nagain:\nr0 -= 1\nif r0 != 0 goto again\nexit\n", true),
                         FAULT_LOOP);
        assert_int_equal(refuse(SEQUENCE_TO_PWM, false), FAULT_HELPER_FORBIDDEN);
}

static void test_from_event_to_actuation(void **state)
{
        struct sim_write write;
        uint64_t before;
        uint32_t number;
        struct bench b;

        bench_open(&b, NULL);
        number = attach(&b, ATTACH_EVENT, PIPELINE_RATE_MAX / 10, SEQUENCE_TO_PWM);
        before = sim_n_writes(b.output);
        assert_int_equal(before, 30); /* the safe set: two PWM channels and 28 lines */
        events(&b, number, 5);
        assert_int_equal(sim_n_writes(b.output), before + 5);
        for (uint64_t i = 0; i < 5; i++) {
                assert_int_equal(sim_write_at(b.output, before + i, &write), 1);
                assert_int_equal(write.channel, channel_pwm(1));
                assert_int_equal(write.value, MIN(i * 10, 20)); /* time stands still, so one step of 20 is all */
        }
        assert_int_equal(sim_write_at(b.output, before + 5, &write), 0);
        assert_int_equal(b.last.result, ANSWER_CLAMP);
        assert_int_equal(counts(&b, number).answers[ANSWER_ALLOW], 3);
        assert_int_equal(counts(&b, number).answers[ANSWER_CLAMP], 2);

        b.now_ns += NSEC_PER_MSEC;
        events(&b, number, 1);
        assert_int_equal(sim_value(b.output, channel_pwm(1)), 40);
        assert_int_equal(b.last.entered_ns, b.now_ns);
        assert_int_equal(b.last.output_ns, b.now_ns);
        assert_int_equal(b.disordered, 0);
        pipeline_free(TAKE_PTR(b.pipeline));
        assert_int_equal(sim_value(b.output, channel_pwm(1)), 0); /* left safe */
        bench_done(&b);
}

static void test_what_programs_are_told(void **state)
{
        static const struct {
                const char *program;
                int64_t result;
        } cases[] = {
                {"r1 = 1\nr2 = 7\ncall pwm_write\nexit\n", ANSWER_ALLOW},
                {"r1 = 1\nr2 = -1\ncall pwm_write\nexit\n", ANSWER_CLAMP},
                {"r1 = 3\nr2 = 7\ncall pwm_write\nexit\n", -ENODEV},
                {"r1 = 0x100000001 ll\nr2 = 7\ncall pwm_write\nexit\n", -ENODEV},
                {"r1 = 28\nr2 = 1\ncall gpio_set\nexit\n", -ENODEV},
                {"r1 = 27\nr2 = 1\ncall gpio_set\nexit\n", ANSWER_ALLOW},
                {"r1 = 27\nr2 = 2\ncall gpio_set\nexit\n", ANSWER_CLAMP},
                {"r1 = 26\nr2 = 1\ncall gpio_set\nexit\n", -EPERM},
                {"r1 = 25\ncall gpio_get\nexit\n", 1},
                {"r1 = 24\ncall gpio_get\nexit\n", 0},
                {"r1 = 28\ncall gpio_get\nexit\n", -ENODEV},
                {"r1 = 3\nr2 = 4\ncall motor_pair\nexit\n", ANSWER_ALLOW},
                {"r1 = 3\nr2 = 21\ncall motor_pair\nexit\n", ANSWER_CLAMP},
                {"r1 = 21\nr2 = 3\ncall motor_pair\nexit\n", ANSWER_CLAMP},
                {"r0 = *(u64 *)(r1 + 16)\nexit\n", 0},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct envelope envelopes[CHANNELS];
                struct bench b;

                envelopes_default(SLEW_WINDOW, envelopes);
                envelopes[channel_gpio(26)].floor = AUTHORITY_OPERATOR;
                bench_open(&b, envelopes);
                sim_set_level(b.output, channel_gpio(25), 1);
                events(&b, attach(&b, ATTACH_EVENT, 1000, cases[i].program), 1);
                if ((int64_t)b.last.result != cases[i].result)
                        fail_msg("%s returned %lld, expected %lld", cases[i].program, (long long)b.last.result,
                                 (long long)cases[i].result);
                bench_done(&b);
        }
}

static void test_both_motors_or_none(void **state)
{
        for (uint32_t forbidden = 1; forbidden <= 2; forbidden++) {
                struct envelope envelopes[CHANNELS];
                uint64_t before;
                struct bench b;

                envelopes_default(SLEW_WINDOW, envelopes);
                envelopes[channel_pwm(forbidden)].floor = AUTHORITY_SAFETY;
                bench_open(&b, envelopes);
                before = sim_n_writes(b.output);
                events(&b, attach(&b, ATTACH_EVENT, 1000, "r1 = 9\nr2 = 9\ncall motor_pair\nexit\n"), 1);
                assert_int_equal((int64_t)b.last.result, -EPERM);
                assert_int_equal(sim_n_writes(b.output), before);
                assert_int_equal(b.last.output_ns, 0);
                bench_done(&b);
        }
}

static void test_stop_and_release(void **state)
{
        struct bench b;
        uint32_t number;

        bench_open(&b, NULL);
        number = attach(&b, ATTACH_EVENT, 1000, "r1 = 1\nr2 = 15\ncall pwm_write\nexit\n");
        events(&b, number, 1);
        assert_int_equal(sim_value(b.output, channel_pwm(1)), 15);

        pipeline_stop(b.pipeline);
        events(&b, number, 1);
        assert_int_equal(sim_value(b.output, channel_pwm(1)), 0);
        assert_int_equal(b.last.result, ANSWER_SAFE);
        assert_int_equal(pipeline_release(b.pipeline, 0), -ESTALE);
        assert_int_equal(pipeline_release(b.pipeline, 1), 0);
        events(&b, number, 1);
        assert_int_equal(sim_value(b.output, channel_pwm(1)), 15);

        /* a stop that was asked for and not yet carried out is not overtaken by the release of the one before */
        pipeline_stop(b.pipeline);
        assert_int_equal(pipeline_release(b.pipeline, 1), -ESTALE);
        assert_int_equal(sim_value(b.output, channel_pwm(1)), 0);
        bench_done(&b);
}

/* A driver whose line 5 is broken. */
static int broken_write(struct output *output, uint32_t channel, int32_t value, int64_t now_ns)
{
        return channel == channel_gpio(5) ? -EIO : sim_ops.write(output, channel, value, now_ns);
}

static void test_a_broken_output_stops(void **state)
{
        struct output_ops broken = sim_ops;
        struct bench b;

        broken.write = broken_write;
        bench_open(&b, NULL);
        b.output->ops = &broken;
        events(&b,
               attach(&b, ATTACH_EVENT, 1000, "r1 = 1\nr2 = 15\ncall pwm_write\nr1 = 5\nr2 = 1\ncall gpio_set\nexit\n"),
               1);
        assert_int_equal((int64_t)b.last.result, -EIO);
        assert_int_equal(sim_value(b.output, channel_pwm(1)), 0);
        assert_true(pipeline_monitor(b.pipeline)->is_stopped);
        assert_int_equal(pipeline_output_errors(b.pipeline), 2); /* the request, and the safe set */
        bench_done(&b);
}

static void test_utilisation_is_admitted_and_refunded(void **state)
{
        struct attachment attachment = {.kind = ATTACH_TIMER, .authority = AUTHORITY_LEARNED};
        struct routine *dear = accept(SEQUENCE_TO_PWM), *cheap = accept("r0 = 0\nexit\n");
        struct fault fault = {0};
        struct err err = {0};
        uint32_t first, second;
        uint64_t most;
        struct bench b;

        bench_open(&b, NULL);
        most = UINT64_C(500000000000) / routine_cost_ps(dear); /* half of each second */
        assert_in_range(most, 2, PIPELINE_RATE_MAX - 1);
        assert_true(routine_cost_ps(cheap) < routine_cost_ps(dear));

        attachment.rate_hz = most + 1;
        assert_int_equal(pipeline_attach(b.pipeline, &attachment, &dear, &first, &fault, &err), 1);
        assert_int_equal(fault.kind, FAULT_UTILISATION);
        assert_non_null(dear);
        assert_int_equal(pipeline_utilisation_ppm(b.pipeline), 0);

        attachment.rate_hz = most;
        assert_int_equal(pipeline_attach(b.pipeline, &attachment, &dear, &first, &fault, &err), 0);
        assert_in_range(pipeline_utilisation_ppm(b.pipeline), 499000, 500000);
        dear = accept(SEQUENCE_TO_PWM);
        attachment.rate_hz = most / 2;
        assert_int_equal(pipeline_attach(b.pipeline, &attachment, &dear, &second, &fault, &err), 1);

        /* a cheaper program leaves room, but not for the dear one to come back */
        assert_int_equal(pipeline_swap(b.pipeline, first, &cheap, &fault, &err), 0);
        attachment.rate_hz = 1;
        assert_int_equal(pipeline_attach(b.pipeline, &attachment, &dear, &second, &fault, &err), 0);
        dear = accept(SEQUENCE_TO_PWM);
        assert_int_equal(pipeline_swap(b.pipeline, first, &dear, &fault, &err), 1);
        assert_int_equal(fault.kind, FAULT_UTILISATION);

        assert_int_equal(pipeline_detach(b.pipeline, second), 0);
        assert_int_equal(pipeline_detach(b.pipeline, second), -ENOENT);
        assert_int_equal(pipeline_swap(b.pipeline, first, &dear, &fault, &err), 0);
        assert_int_equal(pipeline_detach(b.pipeline, first), 0);
        assert_int_equal(pipeline_utilisation_ppm(b.pipeline), 0);
        bench_done(&b);
}

static void test_wrong_use(void **state)
{
        struct attachment attachment = {.kind = ATTACH_TIMER};
        struct routine *routine = accept("r0 = 0\nexit\n");
        uint32_t number = 0;
        struct fault fault;
        struct err err = {0};
        struct bench b;

        bench_open(&b, NULL);
        assert_int_equal(pipeline_attach(b.pipeline, &attachment, &routine, &number, &fault, &err), -EINVAL);
        attachment.rate_hz = PIPELINE_RATE_MAX + 1;
        assert_int_equal(pipeline_attach(b.pipeline, &attachment, &routine, &number, &fault, &err), -EINVAL);
        assert_int_equal(pipeline_swap(b.pipeline, 0, &routine, &fault, &err), -ENOENT);
        assert_int_equal(pipeline_event_fd(b.pipeline, 0), -ENOENT);
        for (uint32_t i = 0; i < PIPELINE_ATTACHMENTS_MAX; i++)
                number = attach(&b, ATTACH_TIMER, 1, "r0 = 0\nexit\n");
        assert_int_equal(pipeline_event_fd(b.pipeline, number), -ENOENT);
        attachment.rate_hz = 1;
        assert_int_equal(pipeline_attach(b.pipeline, &attachment, &routine, &number, &fault, &err), -ENOSPC);
        routine_free(routine);
        bench_done(&b);
}

static void test_timer_counts_what_it_missed(void **state)
{
        struct pipeline_counts c;
        struct err err = {0};
        uint32_t number;
        struct bench b;

        bench_open(&b, NULL);
        number = attach(&b, ATTACH_TIMER, 100000, "r0 = *(u64 *)(r1 + 16)\nexit\n");
        b.quit_after = 300;
        assert_int_equal(pipeline_run(b.pipeline, clock_now_ns(CLOCK_MONOTONIC) + PATIENCE_NS, &b.quit, &err), -EINTR);
        c = counts(&b, number);
        assert_int_equal(c.events, 300);
        assert_int_equal(b.last.sequence + 1, c.events + c.missed);
        bench_done(&b);
}

/* A rate of one a second: the burst at once, the rest as seconds pass, and none is lost. */
static void test_events_wait_for_their_rate(void **state)
{
        int64_t start = clock_now_ns(CLOCK_MONOTONIC), seconds;
        const uint64_t n = 3 * PIPELINE_BURST;
        struct pipeline_counts c;
        struct err err = {0};
        uint32_t number;
        struct bench b;

        bench_open(&b, NULL);
        number = attach(&b, ATTACH_EVENT, 1, "r0 = 0\nexit\n");
        assert_int_equal(write(pipeline_event_fd(b.pipeline, number), &n, sizeof(n)), sizeof(n));
        b.quit_after = PIPELINE_BURST;
        assert_int_equal(pipeline_run(b.pipeline, start + PATIENCE_NS, &b.quit, &err), -EINTR);
        assert_int_equal(pipeline_run(b.pipeline, clock_now_ns(CLOCK_MONOTONIC) + 1, NULL, &err), 0);
        seconds = (clock_now_ns(CLOCK_MONOTONIC) - start) / NSEC_PER_SEC;
        c = counts(&b, number);
        assert_int_equal(c.events + c.waiting, n);
        assert_in_range(c.events, PIPELINE_BURST, PIPELINE_BURST + seconds);
        bench_done(&b);
}

static void test_same_events_same_outputs(void **state)
{
        struct sim_write log[2][12];

        for (size_t run = 0; run < 2; run++) {
                struct bench b;
                uint32_t number;

                bench_open(&b, NULL);
                number = attach(&b, ATTACH_EVENT, 100000, SEQUENCE_TO_PWM);
                for (int i = 0; i < 12; i++) {
                        b.now_ns += i * 200000;
                        events(&b, number, 1);
                }
                memset(log[run], 0, sizeof(log[run]));
                for (uint64_t i = 0; i < 12; i++)
                        assert_int_equal(sim_write_at(b.output, sim_n_writes(b.output) - 12 + i, &log[run][i]), 1);
                bench_done(&b);
        }
        for (size_t i = 0; i < 12; i++) {
                assert_int_equal(log[0][i].channel, log[1][i].channel);
                assert_int_equal(log[0][i].value, log[1][i].value);
                assert_int_equal(log[0][i].now_ns, log[1][i].now_ns);
        }
        assert_int_equal(log[0][11].value, 90);
}

/* Hot swap under load: one thread makes events, one swaps programs, the loop handles. */

#define LOAD_EVENTS 100000
#define LOAD_SWAPS  400

struct load {
        struct bench bench;
        uint32_t number;
        atomic_uint swaps;
        atomic_bool is_over;
};

static void *make_events(void *userdata)
{
        struct load *load = userdata;
        int fd = pipeline_event_fd(load->bench.pipeline, load->number);
        const uint64_t one = 1;

        for (unsigned i = 0; i < LOAD_EVENTS; i++) {
                /* one swap at least in each part of the load */
                while (atomic_load(&load->swaps) < (uint64_t)i * LOAD_SWAPS / LOAD_EVENTS)
                        sched_yield();
                if (write(fd, &one, sizeof(one)) != sizeof(one))
                        return userdata;
        }
        return NULL;
}

static void *swap_programs(void *userdata)
{
        static const char *const versions[] = {"r0 = 1\nexit\n", "r0 = 2\nexit\n"};
        struct load *load = userdata;

        for (unsigned i = 0; !atomic_load(&load->is_over); i++) {
                struct routine *routine = accept(versions[i % 2]);
                struct fault fault;
                struct err err = {0};

                if (pipeline_swap(load->bench.pipeline, load->number, &routine, &fault, &err) != 0)
                        return userdata;
                atomic_fetch_add(&load->swaps, 1);
        }
        return NULL;
}

static void test_hot_swap_misses_no_event(void **state)
{
        struct pipeline_options options = {.observe = bench_observe, .max_utilisation_ppm = 1000000};
        struct load load = {.bench.quit_after = LOAD_EVENTS};
        pthread_t maker, swapper;
        struct pipeline_counts c;
        void *failed[2];
        struct err err = {0};

        options.userdata = &load.bench;
        assert_int_equal(sim_ops.open(&load.bench.output, &err), 0);
        options.output = load.bench.output;
        assert_int_equal(pipeline_new(&options, &load.bench.pipeline, &err), 0);
        load.number = attach(&load.bench, ATTACH_EVENT, PIPELINE_RATE_MAX, "r0 = 1\nexit\n");

        assert_int_equal(pthread_create(&swapper, NULL, swap_programs, &load), 0);
        assert_int_equal(pthread_create(&maker, NULL, make_events, &load), 0);
        assert_int_equal(pipeline_run(load.bench.pipeline, clock_now_ns(CLOCK_MONOTONIC) + PATIENCE_NS,
                                      &load.bench.quit, &err),
                         -EINTR);
        atomic_store(&load.is_over, true);
        pthread_join(maker, &failed[0]);
        pthread_join(swapper, &failed[1]);
        assert_null(failed[0]);
        assert_null(failed[1]);

        c = counts(&load.bench, load.number);
        assert_int_equal(c.events, LOAD_EVENTS);
        assert_int_equal(c.waiting, 0);
        assert_int_equal(load.bench.disordered, 0);
        assert_true(c.swaps >= 2);
        assert_int_equal(load.bench.results[0], 0);
        assert_true(load.bench.results[1] > 0 && load.bench.results[2] > 0);
        assert_int_equal(load.bench.results[1] + load.bench.results[2], LOAD_EVENTS);
        bench_done(&load.bench);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_only_verified_programs),
                cmocka_unit_test(test_from_event_to_actuation),
                cmocka_unit_test(test_what_programs_are_told),
                cmocka_unit_test(test_both_motors_or_none),
                cmocka_unit_test(test_stop_and_release),
                cmocka_unit_test(test_a_broken_output_stops),
                cmocka_unit_test(test_utilisation_is_admitted_and_refunded),
                cmocka_unit_test(test_wrong_use),
                cmocka_unit_test(test_timer_counts_what_it_missed),
                cmocka_unit_test(test_events_wait_for_their_rate),
                cmocka_unit_test(test_same_events_same_outputs),
                cmocka_unit_test(test_hot_swap_misses_no_event),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
