/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <errno.h>

#include "base/macro.h"
#include "reflex/monitor.h"

#define MS INT64_C(1000000)

/* The default envelopes, with one of them replaced. */
static void start(struct monitor *m, uint32_t channel, struct envelope e)
{
        struct envelope all[CHANNELS];
        struct err err = {0};

        envelopes_default(SLEW_WINDOW, all);
        if (channel < CHANNELS)
                all[channel] = e;
        assert_int_equal(monitor_init(m, all, 0, &err), 0);
}

static void start_default(struct monitor *m)
{
        start(m, CHANNEL_NONE, (struct envelope){0});
}

static void expect(struct decision d, enum answer answer, enum cause cause, int32_t value)
{
        assert_int_equal(d.answer, answer);
        assert_int_equal(d.cause, cause);
        if (answer != ANSWER_REJECT)
                assert_int_equal(d.value, value);
}

/* What a channel has to do, written from the specification and not like the monitor: every value of the range that is
 * allowed is named as an interval. */
struct model {
        struct envelope e;
        int64_t last, last_ns;   /* value applied last */
        int64_t start, start_ns; /* value at the start of the window */
        int64_t latest_ns;
};

static bool passed(int64_t from_ns, int64_t to_ns, int64_t window_ns)
{
        return (__int128)to_ns - from_ns >= window_ns;
}

static int64_t nearest(int64_t value, int64_t low, int64_t high)
{
        if (value <= low)
                return low;
        return value >= high ? high : value;
}

static struct decision model_request(struct model *m, int64_t value, int64_t now_ns)
{
        int64_t low = INT64_MIN / 2, high = INT64_MAX / 2, ranged, limited;
        struct decision d = {.answer = ANSWER_ALLOW};

        if (now_ns > m->latest_ns)
                m->latest_ns = now_ns;
        if (m->e.slew == SLEW_WINDOW && passed(m->start_ns, m->latest_ns, m->e.window_ns)) {
                m->start = m->last;
                m->start_ns = m->latest_ns;
        }
        if (m->e.slew == SLEW_WINDOW) {
                low = m->start - m->e.step;
                high = m->start + m->e.step;
        } else if (m->e.slew == SLEW_REQUEST && !passed(m->last_ns, m->latest_ns, m->e.window_ns)) {
                low = m->last - m->e.step;
                high = m->last + m->e.step;
        }
        ranged = nearest(value, m->e.min, m->e.max);
        limited = nearest(ranged, low, high);
        if (limited != value)
                d = (struct decision){.answer = ANSWER_CLAMP, .cause = limited == ranged ? CAUSE_RANGE : CAUSE_SLEW};
        d.value = (int32_t)limited;
        m->last = limited;
        m->last_ns = m->latest_ns;
        return d;
}

static struct decision model_decide(struct model *m, bool is_stopped, bool is_held, unsigned authority, int64_t value,
                                    int64_t now_ns)
{
        if (authority >= AUTHORITIES || authority < m->e.floor)
                return (struct decision){.answer = ANSWER_REJECT, .cause = CAUSE_AUTHORITY};
        if (is_stopped || is_held)
                return (struct decision){.answer = ANSWER_SAFE,
                                         .cause = is_stopped ? CAUSE_ESTOP : CAUSE_HOLD,
                                         .value = m->e.safe};
        return model_request(m, value, now_ns);
}

static const struct envelope shapes[] = {
        {.exists = true, .min = 0, .max = 90, .slew = SLEW_REQUEST, .step = 20, .window_ns = MS},
        {.exists = true, .min = 0, .max = 90, .slew = SLEW_WINDOW, .step = 20, .window_ns = MS},
        {.exists = true, .min = 0, .max = 1},
        {.exists = true, .min = -50, .max = 50, .slew = SLEW_WINDOW, .step = 7, .window_ns = 1},
        {.exists = true, .min = 5, .max = 5, .slew = SLEW_REQUEST, .step = 1, .window_ns = MS},
        {.exists = true, .min = INT32_MIN, .max = INT32_MAX},
        {.exists = true, .min = INT32_MIN, .max = INT32_MAX, .slew = SLEW_WINDOW, .step = 1, .window_ns = INT64_MAX},
        {.exists = true, .min = INT32_MIN, .max = INT32_MAX, .slew = SLEW_REQUEST, .step = INT32_MAX, .window_ns = MS},
        {.exists = true, .min = -9, .max = INT32_MAX, .slew = SLEW_WINDOW, .step = INT32_MAX, .window_ns = MS},
};

/* All second requests after one first, for one state of the latches. */
static uint64_t enumerate_second(struct monitor *m, const struct model *first, uint32_t channel, bool is_stopped,
                                 bool is_held)
{
        const struct envelope *e = &first->e;
        const struct monitor_channel saved = m->channels[channel];
        const int64_t values[] = {INT64_MIN,
                                  (int64_t)e->min - 1,
                                  e->min,
                                  e->safe,
                                  first->last + e->step,
                                  first->last + e->step + 1,
                                  first->last - e->step - 1,
                                  e->max,
                                  (int64_t)e->max + 1,
                                  UINT32_MAX,
                                  INT64_MAX};
        const int64_t times[] = {INT64_MIN, -1, 0, 1, e->window_ns - 1, e->window_ns, e->window_ns / 2 + 1, INT64_MAX};
        int64_t saved_ns = m->now_ns;
        uint64_t n = 0;

        for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
                for (size_t t = 0; t < ARRAY_SIZE(times); t++) {
                        for (unsigned authority = 0; authority <= AUTHORITIES; authority++) {
                                struct model model = *first;
                                struct decision want =
                                        model_decide(&model, is_stopped, is_held, authority, values[v], times[t]);
                                struct decision got =
                                        monitor_decide(m, channel, values[v], (enum authority)authority, 7, times[t]);

                                n++;
                                if (got.answer != want.answer || got.cause != want.cause ||
                                    (got.answer != ANSWER_REJECT &&
                                     (got.value != want.value || got.value < e->min || got.value > e->max)))
                                        fail_msg("channel %u, value %lld, time %lld, authority %u: answer %d cause "
                                                 "%d value %d, expected %d %d %d",
                                                 channel, (long long)values[v], (long long)times[t], authority,
                                                 got.answer, got.cause, got.value, want.answer, want.cause, want.value);
                                m->channels[channel] = saved;
                                m->now_ns = saved_ns;
                        }
                }
        }
        return n;
}

static uint64_t enumerate_latches(const struct envelope *e, uint32_t channel, int64_t value)
{
        uint64_t n = 0;

        for (unsigned latches = 0; latches < 4; latches++) {
                struct model model = {.e = *e, .last = e->safe, .start = e->safe};
                struct monitor m;

                start(&m, channel, *e);
                monitor_decide(&m, channel, value, AUTHORITY_SAFETY, 7, 0);
                model_decide(&model, false, false, AUTHORITY_SAFETY, value, 0);
                if (latches & 1)
                        monitor_stop(&m, AUTHORITY_LEARNED, 7, 0);
                if (latches & 2)
                        monitor_hold(&m, channel, AUTHORITY_SAFETY, 7, 0);
                n += enumerate_second(&m, &model, channel, latches & 1, latches & 2);
        }
        return n;
}

/* Channels x shapes x safe values x floors x first values x latches x second values x times x authorities. */
static void test_no_applied_value_leaves_its_envelope(void **state)
{
        uint64_t n = 0;

        for (uint32_t channel = 0; channel < CHANNELS; channel++) {
                for (size_t s = 0; s < ARRAY_SIZE(shapes) * 3 * AUTHORITIES; s++) {
                        struct envelope e = shapes[s / 3 / AUTHORITIES];
                        const int32_t safe[] = {e.min, (int32_t)(((int64_t)e.min + e.max) / 2), e.max};

                        e.safe = safe[s / AUTHORITIES % 3];
                        e.floor = (enum authority)(s % AUTHORITIES);
                        n += enumerate_latches(&e, channel, INT64_MIN);
                        n += enumerate_latches(&e, channel, e.safe);
                        n += enumerate_latches(&e, channel, INT64_MAX);
                }
        }
        assert_int_equal(n, UINT64_C(32) * 9 * 3 * 4 * 3 * 4 * 11 * 8 * 5);
}

static void test_unknown_channels_come_first(void **state)
{
        const uint32_t unknown[] = {channel_pwm(0),
                                    channel_pwm(3),
                                    channel_pwm(4),
                                    channel_pwm(99),
                                    channel_pwm(1ull << 32 | 1),
                                    channel_gpio(28),
                                    channel_gpio(UINT64_MAX),
                                    CHANNELS,
                                    CHANNEL_NONE};
        struct monitor m;

        start_default(&m);
        for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
                expect(monitor_decide(&m, unknown[i], 0, AUTHORITY_SAFETY, 0, 0), ANSWER_REJECT, CAUSE_UNKNOWN, 0);
        monitor_stop(&m, AUTHORITY_SAFETY, 0, 0);
        for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
                expect(monitor_decide(&m, unknown[i], 0, AUTHORITY_SAFETY, 0, 0), ANSWER_REJECT, CAUSE_UNKNOWN, 0);
        expect(monitor_hold(&m, channel_pwm(0), AUTHORITY_SAFETY, 0, 0), ANSWER_REJECT, CAUSE_UNKNOWN, 0);
        expect(monitor_hold(&m, CHANNEL_NONE, AUTHORITY_SAFETY, 0, 0), ANSWER_REJECT, CAUSE_UNKNOWN, 0);
        assert_int_equal(monitor_unhold(&m, CHANNEL_NONE, AUTHORITY_SAFETY, 0, 0), -ENOENT);
}

static void test_stop_is_released_by_the_operator_only(void **state)
{
        uint32_t pwm = channel_pwm(1), epoch;
        struct monitor m;
        int32_t safe;

        start_default(&m);
        expect(monitor_decide(&m, pwm, 15, AUTHORITY_LEARNED, 1, 0), ANSWER_ALLOW, CAUSE_NONE, 15);
        epoch = monitor_stop(&m, AUTHORITY_LEARNED, 1, 10);
        assert_int_equal(epoch, 1);
        assert_int_equal(monitor_safe_value(&m, pwm, &safe), 1);
        assert_int_equal(safe, 0);
        assert_int_equal(monitor_safe_value(&m, channel_pwm(0), &safe), 0);
        assert_int_equal(monitor_safe_value(&m, CHANNEL_NONE, &safe), 0);
        expect(monitor_decide(&m, pwm, 15, AUTHORITY_SAFETY, 1, 10 * MS), ANSWER_SAFE, CAUSE_ESTOP, 0);

        assert_int_equal(monitor_release(&m, epoch, AUTHORITY_LEARNED, 1, 20), -EPERM);
        assert_int_equal(monitor_release(&m, epoch, AUTHORITY_MISSION, 1, 20), -EPERM);
        assert_int_equal(monitor_release(&m, epoch, AUTHORITY_SAFETY, 1, 20), -EPERM);
        assert_int_equal(monitor_stop(&m, AUTHORITY_MISSION, 1, 30), 2);
        assert_int_equal(monitor_release(&m, epoch, AUTHORITY_OPERATOR, 1, 40), -ESTALE);
        expect(monitor_decide(&m, pwm, 15, AUTHORITY_SAFETY, 1, 11 * MS), ANSWER_SAFE, CAUSE_ESTOP, 0);
        assert_int_equal(monitor_release(&m, 2, AUTHORITY_OPERATOR, 1, 50), 0);
        assert_int_equal(monitor_release(&m, 2, AUTHORITY_OPERATOR, 1, 60), -EALREADY);

        /* from the safe value on, with its slew */
        expect(monitor_decide(&m, pwm, 90, AUTHORITY_LEARNED, 1, 11 * MS), ANSWER_CLAMP, CAUSE_SLEW, 20);
}

static void test_a_hold_belongs_to_the_highest_authority(void **state)
{
        uint32_t pwm = channel_pwm(2);
        struct monitor m;

        start(&m, pwm, (struct envelope){.exists = true, .min = -10, .max = 10, .safe = 3, .floor = AUTHORITY_MISSION});
        expect(monitor_decide(&m, pwm, 9, AUTHORITY_MISSION, 0, 0), ANSWER_ALLOW, CAUSE_NONE, 9);
        expect(monitor_hold(&m, pwm, AUTHORITY_LEARNED, 0, 0), ANSWER_REJECT, CAUSE_AUTHORITY, 0);
        expect(monitor_decide(&m, pwm, 9, AUTHORITY_MISSION, 0, 0), ANSWER_ALLOW, CAUSE_NONE, 9);
        expect(monitor_hold(&m, pwm, AUTHORITY_OPERATOR, 0, 0), ANSWER_SAFE, CAUSE_HOLD, 3);
        expect(monitor_hold(&m, pwm, AUTHORITY_MISSION, 0, 0), ANSWER_SAFE, CAUSE_HOLD, 3);
        expect(monitor_decide(&m, pwm, 9, AUTHORITY_SAFETY, 0, 0), ANSWER_SAFE, CAUSE_HOLD, 3);
        expect(monitor_decide(&m, channel_pwm(1), 9, AUTHORITY_SAFETY, 0, 0), ANSWER_ALLOW, CAUSE_NONE, 9);
        assert_int_equal(monitor_unhold(&m, pwm, AUTHORITY_MISSION, 0, 0), -EPERM);
        assert_int_equal(monitor_unhold(&m, pwm, (enum authority)AUTHORITIES, 0, 0), -EPERM);
        assert_int_equal(monitor_unhold(&m, pwm, AUTHORITY_OPERATOR, 0, 0), 0);
        assert_int_equal(monitor_unhold(&m, pwm, AUTHORITY_OPERATOR, 0, 0), -ENOENT);
        expect(monitor_decide(&m, pwm, -11, AUTHORITY_SAFETY, 0, 0), ANSWER_CLAMP, CAUSE_RANGE, -10);

        /* a stop before a hold, and the hold is still there after the stop */
        expect(monitor_hold(&m, pwm, AUTHORITY_SAFETY, 0, 0), ANSWER_SAFE, CAUSE_HOLD, 3);
        monitor_stop(&m, AUTHORITY_LEARNED, 0, 0);
        expect(monitor_decide(&m, pwm, 9, AUTHORITY_SAFETY, 0, 0), ANSWER_SAFE, CAUSE_ESTOP, 3);
        assert_int_equal(monitor_release(&m, 1, AUTHORITY_OPERATOR, 0, 0), 0);
        expect(monitor_decide(&m, pwm, 9, AUTHORITY_SAFETY, 0, 0), ANSWER_SAFE, CAUSE_HOLD, 3);
}

/* Both rules of slew, told apart by many requests within one window and by a pause. */
static void test_slew(void **state)
{
        struct envelope e = {.exists = true, .max = 90, .step = 20, .window_ns = MS};
        uint32_t pwm = channel_pwm(1);
        struct monitor m;

        e.slew = SLEW_REQUEST;
        start(&m, pwm, e);
        expect(monitor_decide(&m, pwm, 90, AUTHORITY_LEARNED, 0, 0), ANSWER_CLAMP, CAUSE_SLEW, 20);
        expect(monitor_decide(&m, pwm, 90, AUTHORITY_LEARNED, 0, 0), ANSWER_CLAMP, CAUSE_SLEW, 40);
        expect(monitor_decide(&m, pwm, 0, AUTHORITY_LEARNED, 0, MS), ANSWER_ALLOW, CAUSE_NONE, 0);
        expect(monitor_decide(&m, pwm, 91, AUTHORITY_LEARNED, 0, 2 * MS), ANSWER_CLAMP, CAUSE_RANGE, 90);

        e.slew = SLEW_WINDOW;
        start(&m, pwm, e);
        expect(monitor_decide(&m, pwm, 90, AUTHORITY_LEARNED, 0, 0), ANSWER_CLAMP, CAUSE_SLEW, 20);
        expect(monitor_decide(&m, pwm, 90, AUTHORITY_LEARNED, 0, MS - 1), ANSWER_CLAMP, CAUSE_SLEW, 20);
        expect(monitor_decide(&m, pwm, 90, AUTHORITY_LEARNED, 0, 5 * MS), ANSWER_CLAMP, CAUSE_SLEW, 40);
        expect(monitor_decide(&m, pwm, 90, AUTHORITY_LEARNED, 0, 3 * MS), ANSWER_CLAMP, CAUSE_SLEW, 40);
        expect(monitor_decide(&m, pwm, 90, AUTHORITY_LEARNED, 0, 6 * MS), ANSWER_CLAMP, CAUSE_SLEW, 60);
        expect(monitor_decide(&m, pwm, 41, AUTHORITY_LEARNED, 0, 6 * MS), ANSWER_ALLOW, CAUSE_NONE, 41);
        expect(monitor_decide(&m, pwm, 0, AUTHORITY_LEARNED, 0, 6 * MS), ANSWER_CLAMP, CAUSE_SLEW, 20);
}

static void test_audit_overwrites_the_oldest(void **state)
{
        struct audit_record record;
        struct monitor m;

        start_default(&m);
        assert_int_equal(audit_next(&m.audit, &record), 0);
        monitor_decide(&m, channel_pwm(1), 300, AUTHORITY_MISSION, 42, 5);
        assert_int_equal(audit_next(&m.audit, &record), 1);
        assert_int_equal(record.now_ns, 5);
        assert_int_equal(record.asked, 300);
        assert_int_equal(record.channel, channel_pwm(1));
        assert_int_equal(record.source, 42);
        assert_int_equal(record.applied, 20);
        assert_int_equal(record.event, AUDIT_DECIDE);
        assert_int_equal(record.authority, AUTHORITY_MISSION);
        assert_int_equal(record.answer, ANSWER_CLAMP);
        assert_int_equal(record.cause, CAUSE_SLEW);
        assert_int_equal(audit_next(&m.audit, &record), 0);

        for (int64_t i = 0; i < AUDIT_RECORDS; i++)
                monitor_decide(&m, channel_gpio(1), i, AUTHORITY_LEARNED, 0, 5);
        assert_int_equal(audit_dropped(&m.audit), 0);
        for (int64_t i = 0; i < 72; i++)
                monitor_decide(&m, CHANNEL_NONE, AUDIT_RECORDS + i, AUTHORITY_LEARNED, 0, 5);
        assert_int_equal(audit_dropped(&m.audit), 72);
        for (int64_t i = 72; i < AUDIT_RECORDS + 72; i++) {
                assert_int_equal(audit_next(&m.audit, &record), 1);
                assert_int_equal(record.asked, i);
        }
        assert_int_equal(audit_next(&m.audit, &record), 0);
        assert_int_equal(audit_dropped(&m.audit), 72);

        assert_int_equal(monitor_stop(&m, AUTHORITY_LEARNED, 1, 6), 1);
        assert_int_equal(monitor_release(&m, 1, AUTHORITY_SAFETY, 1, 7), -EPERM);
        assert_int_equal(audit_next(&m.audit, &record), 1);
        assert_int_equal(record.event, AUDIT_STOP);
        assert_int_equal(record.epoch, 1);
        assert_int_equal(audit_next(&m.audit, &record), 1);
        assert_int_equal(record.event, AUDIT_RELEASE);
        assert_int_equal(record.answer, ANSWER_REJECT);
}

static void test_bad_envelopes(void **state)
{
        static const struct {
                struct envelope e;
                const char *text;
        } cases[] = {
                {{.exists = true, .min = 1, .max = 0}, "pwm:1: the range from 1 to 0 is empty"},
                {{.exists = true, .min = 1, .max = 2}, "pwm:1: the safe value 0 is not in the range from 1 to 2"},
                {{.exists = true, .max = 2, .safe = 3}, "pwm:1: the safe value 3 is not in the range from 0 to 2"},
                {{.exists = true, .slew = SLEW_WINDOW, .window_ns = 1}, "pwm:1: a slew needs a step and a window"},
                {{.exists = true, .slew = SLEW_REQUEST, .step = 1}, "pwm:1: a slew needs a step and a window"},
                {{.exists = true, .floor = (enum authority)4}, "pwm:1: unknown authority or slew"},
                {{.exists = true, .slew = (enum slew)3, .step = 1, .window_ns = 1}, "pwm:1: unknown authority or slew"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct envelope all[CHANNELS];
                struct err err = {0};
                struct monitor m;

                envelopes_default(SLEW_WINDOW, all);
                all[channel_pwm(1)] = cases[i].e;
                assert_int_equal(monitor_init(&m, all, 0, &err), -EINVAL);
                assert_int_equal(err.kind, ERR_USAGE);
                assert_non_null(strstr(err.text, cases[i].text));
        }
}

static void test_channel_names(void **state)
{
        static const char *const bad[] = {"", "pwm", "pwm:", "pwm:-1", "pwm:01", "PWM:1", "gpio:1 ", "gpio1", "adc:1"};
        uint32_t channel;
        char buf[16];

        for (uint32_t i = 0; i < CHANNELS; i++) {
                channel_format(i, buf);
                assert_int_equal(channel_parse(span_of_text(buf), &channel), 0);
                assert_int_equal(channel, i);
        }
        assert_string_equal(channel_format(channel_gpio(27), buf), "gpio:27");
        assert_string_equal(channel_format(CHANNEL_NONE, buf), "none");
        assert_int_equal(channel_parse(span_of_text("pwm:99"), &channel), 0);
        assert_int_equal(channel, CHANNEL_NONE);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(channel_parse(span_of_text(bad[i]), &channel), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_no_applied_value_leaves_its_envelope),
                cmocka_unit_test(test_unknown_channels_come_first),
                cmocka_unit_test(test_stop_is_released_by_the_operator_only),
                cmocka_unit_test(test_a_hold_belongs_to_the_highest_authority),
                cmocka_unit_test(test_slew),
                cmocka_unit_test(test_audit_overwrites_the_oldest),
                cmocka_unit_test(test_bad_envelopes),
                cmocka_unit_test(test_channel_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
