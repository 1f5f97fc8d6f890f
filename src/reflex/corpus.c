/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex/corpus.h"

#include "base/clock.h"
#include "base/macro.h"
#include "base/rng.h"

#define PUBLIC_SEED    UINT64_C(0x5652303343000001)
#define ENVELOPE_DRAWS 4096 /* requests before the envelopes change */
#define HISTORY        8    /* values of a channel that the next is compared with */
#define WINDOW_STEPS   3    /* between any two values less than a window apart, with SLEW_WINDOW */

/* What was applied, and when; times never go back. */
struct applied {
        int64_t now_ns, value;
};

/* What the checker itself keeps of a channel. */
struct shadow {
        bool is_held;
        enum authority holder;
        size_t n_history; /* values since the last safe one, that one included, up to HISTORY */
        struct applied history[HISTORY];
};

struct corpus {
        struct monitor monitor;
        struct envelope envelopes[CHANNELS];
        struct shadow shadows[CHANNELS];
        bool is_stopped;
        uint32_t epoch;
        int64_t now_ns;
        struct rng rng;
        corpus_decide_fn decide;
        struct corpus_counts *counts;
};

static void escape(struct corpus *c, enum cause cause)
{
        if (c->counts->escapes++ == 0) {
                c->counts->first_escape = cause;
                c->counts->first_escape_draw = c->counts->draws;
        }
}

static int64_t distance(int64_t a, int64_t b)
{
        return a < b ? b - a : a - b;
}

static bool is_slew_kept(const struct envelope *e, const struct shadow *s, struct applied next)
{
        size_t n = e->slew == SLEW_REQUEST ? MIN(s->n_history, (size_t)1) : s->n_history;
        int64_t most = e->slew == SLEW_REQUEST ? e->step : (int64_t)e->step * WINDOW_STEPS;

        for (size_t i = 0; i < n && e->slew != SLEW_NONE; i++) {
                const struct applied *before = &s->history[s->n_history - 1 - i];

                if (next.now_ns - before->now_ns < e->window_ns && distance(next.value, before->value) > most)
                        return false;
        }
        return true;
}

static void remember(struct shadow *s, struct applied next, bool is_start)
{
        if (is_start)
                s->n_history = 0;
        if (s->n_history == HISTORY)
                memmove(s->history, s->history + 1, --s->n_history * sizeof(*s->history));
        s->history[s->n_history++] = next;
}

/* What an answer must not be, by the rules of monitor.h in their order. */
static void check(struct corpus *c, uint32_t channel, enum authority authority, struct decision d)
{
        const struct envelope *e = channel < CHANNELS ? &c->envelopes[channel] : NULL;
        struct shadow *s = channel < CHANNELS ? &c->shadows[channel] : NULL;
        struct applied next = {.now_ns = c->now_ns, .value = d.value};
        bool is_safe;

        c->counts->draws++;
        c->counts->answers[d.answer]++;
        if (d.answer == ANSWER_REJECT)
                return;
        if (!e || !e->exists)
                return escape(c, CAUSE_UNKNOWN);
        is_safe = d.value == e->safe;
        if ((int)authority < (int)e->floor || authority > AUTHORITY_SAFETY)
                escape(c, CAUSE_AUTHORITY);
        else if (c->is_stopped && !is_safe)
                escape(c, CAUSE_ESTOP);
        else if (s->is_held && !is_safe)
                escape(c, CAUSE_HOLD);
        else if (d.value < e->min || d.value > e->max)
                escape(c, CAUSE_RANGE);
        else if (!c->is_stopped && !s->is_held && !is_slew_kept(e, s, next))
                escape(c, CAUSE_SLEW);
        remember(s, next, c->is_stopped || s->is_held);
}

static void begin(struct corpus *c)
{
        for (uint32_t i = 0; i < CHANNELS; i++) {
                c->shadows[i] = (struct shadow){0};
                remember(&c->shadows[i], (struct applied){c->now_ns, c->envelopes[i].safe}, true);
        }
        c->is_stopped = false;
        c->epoch = 0;
        (void)monitor_init(&c->monitor, c->envelopes, c->now_ns, NULL); /* what is drawn below is valid */
}

/* The public corpus's request number, from the upper bits of its sequence. */
static void draw_public(uint32_t r, uint32_t *ret_channel, int64_t *ret_value)
{
        static const uint8_t pwms[] = {0, 2, 3, 99, 2};
        const int64_t values[] = {r % 512, 0, r % 3, UINT32_MAX};
        uint32_t line = (r >> 1) % 40;

        if (line == 12 || line == 23 || line == 24)
                line = 5;
        *ret_channel = r % 2 == 0 ? channel_pwm(pwms[(r >> 1) % 5]) : channel_gpio(line);
        *ret_value = values[r % 4];
}

void corpus_public(corpus_decide_fn decide, struct corpus_counts *ret)
{
        struct corpus c = {.decide = decide, .counts = ret};
        uint64_t x = PUBLIC_SEED;

        *ret = (struct corpus_counts){0};
        envelopes_default(SLEW_REQUEST, c.envelopes);
        begin(&c);
        for (unsigned i = 0; i < CORPUS_PUBLIC_DRAWS; i++) {
                uint32_t channel;
                int64_t value;

                x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                draw_public((uint32_t)(x >> 33), &channel, &value);
                check(&c, channel, AUTHORITY_LEARNED,
                      decide(&c.monitor, channel, value, AUTHORITY_LEARNED, 0, c.now_ns));
        }
}

static int64_t between(struct rng *rng, int64_t low, int64_t high)
{
        return low + (int64_t)rng_below(rng, (uint64_t)(high - low) + 1);
}

/* Ranges narrow and wide, on both sides of zero, up to all 32 bits; some channels do not exist. */
static struct envelope draw_envelope(struct rng *rng)
{
        static const int32_t widths[] = {0, 1, 2, 90, 1000, INT32_MAX};
        int32_t width = widths[rng_below(rng, ARRAY_SIZE(widths))];
        struct envelope e = {.exists = rng_below(rng, 8) != 0};

        e.min = (int32_t)between(rng, INT32_MIN, INT32_MAX - (int64_t)width);
        if (rng_below(rng, 2) == 0)
                e.min = -(width / 2);
        e.max = e.min + width;
        if (rng_below(rng, 16) == 0) {
                e.min = INT32_MIN;
                e.max = INT32_MAX;
        }
        e.safe = (int32_t)between(rng, e.min, e.max);
        e.floor = (enum authority)rng_below(rng, AUTHORITIES);
        e.slew = (enum slew)rng_below(rng, SLEW_WINDOW + 1);
        e.step = (int32_t)(rng_below(rng, 8) == 0 ? INT32_MAX : between(rng, 1, width / 4 + 1));
        e.window_ns = rng_below(rng, 8) == 0 ? INT64_MAX : between(rng, 1, 2 * NSEC_PER_MSEC);
        return e;
}

static int64_t draw_value(struct rng *rng, const struct envelope *e, int64_t last)
{
        static const int64_t extremes[] = {INT64_MIN,
                                           INT64_MIN + 1,
                                           INT32_MIN,
                                           INT64_C(-1) + INT32_MIN,
                                           -1,
                                           0,
                                           1,
                                           INT32_MAX,
                                           INT64_C(1) + INT32_MAX,
                                           UINT32_MAX,
                                           INT64_MAX};
        const int64_t limits[] = {e->min,
                                  e->max,
                                  e->safe,
                                  last,
                                  last + e->step,
                                  last - e->step,
                                  last + 2 * (int64_t)e->step,
                                  last - 2 * (int64_t)e->step};

        switch (rng_below(rng, 3)) {
        case 0:
                return extremes[rng_below(rng, ARRAY_SIZE(extremes))];
        case 1:
                return limits[rng_below(rng, ARRAY_SIZE(limits))] + between(rng, -1, 1);
        default:
                return between(rng, e->min, e->max);
        }
}

/* The time that a request carries. What counts of it never goes back: c->now_ns. */
static int64_t draw_time(struct corpus *c, const struct envelope *e)
{
        const int64_t jumps[] = {0,  0,        1, e->window_ns / 3, e->window_ns - 1, e->window_ns, NSEC_PER_MSEC,
                                 -1, INT64_MIN};
        int64_t jump = jumps[rng_below(&c->rng, ARRAY_SIZE(jumps))], now;

        if (jump == INT64_MIN)
                return INT64_MIN;
        if (__builtin_add_overflow(c->now_ns, jump, &now) || now > INT64_MAX / 2)
                now = c->now_ns;
        c->now_ns = MAX(c->now_ns, now);
        return now;
}

static void stop(struct corpus *c, enum authority authority)
{
        c->epoch = monitor_stop(&c->monitor, authority, 0, c->now_ns);
        c->is_stopped = true;
        for (uint32_t i = 0; i < CHANNELS; i++)
                remember(&c->shadows[i], (struct applied){c->now_ns, c->envelopes[i].safe}, true);
}

static void release(struct corpus *c, enum authority authority)
{
        uint32_t epoch = c->epoch - (uint32_t)rng_below(&c->rng, 2);

        (void)monitor_release(&c->monitor, epoch, authority, 0, c->now_ns);
        if (authority == AUTHORITY_OPERATOR && epoch == c->epoch)
                c->is_stopped = false;
}

static void hold(struct corpus *c, uint32_t channel, enum authority authority)
{
        const struct envelope *e = &c->envelopes[channel];
        struct shadow *s = &c->shadows[channel];

        (void)monitor_hold(&c->monitor, channel, authority, 0, c->now_ns);
        if (!e->exists || authority < e->floor)
                return;
        s->holder = s->is_held ? MAX(s->holder, authority) : authority;
        s->is_held = true;
        remember(s, (struct applied){c->now_ns, e->safe}, true);
}

static void unhold(struct corpus *c, uint32_t channel, enum authority authority)
{
        struct shadow *s = &c->shadows[channel];

        (void)monitor_unhold(&c->monitor, channel, authority, 0, c->now_ns);
        if (authority >= s->holder)
                s->is_held = false;
}

static void intervene(struct corpus *c, uint32_t channel)
{
        enum authority authority = (enum authority)rng_below(&c->rng, AUTHORITIES);
        uint64_t which = rng_below(&c->rng, 16);

        c->counts->interventions++;
        if (which == 0)
                stop(c, authority);
        else if (which < 8)
                release(c, authority);
        else if (which < 10)
                hold(c, channel, authority);
        else
                unhold(c, channel, authority);
}

static void request(struct corpus *c)
{
        static const uint32_t absent[] = {CHANNELS, CHANNELS + 1, UINT32_MAX / 2, CHANNEL_NONE};
        uint32_t channel = (uint32_t)rng_below(&c->rng, CHANNELS);
        const struct envelope *e = &c->envelopes[channel];
        const struct shadow *s = &c->shadows[channel];
        int64_t value = draw_value(&c->rng, e, s->history[s->n_history - 1].value), now = draw_time(c, e);
        enum authority authority = (enum authority)rng_below(&c->rng, AUTHORITIES + 1);

        if (rng_below(&c->rng, 64) == 0)
                intervene(c, channel);
        if (rng_below(&c->rng, 64) == 0)
                channel = absent[rng_below(&c->rng, ARRAY_SIZE(absent))];
        check(c, channel, authority, c->decide(&c->monitor, channel, value, authority, 0, now));
}

void corpus_run(corpus_decide_fn decide, uint64_t seed, uint64_t draws, struct corpus_counts *ret)
{
        struct corpus c = {.decide = decide, .counts = ret};

        *ret = (struct corpus_counts){0};
        rng_seed(&c.rng, seed);
        for (uint64_t i = 0; i < draws; i++) {
                if (i == 0) {
                        envelopes_default(SLEW_WINDOW, c.envelopes);
                } else if (i % ENVELOPE_DRAWS == 0) {
                        for (uint32_t channel = 0; channel < CHANNELS; channel++)
                                c.envelopes[channel] = draw_envelope(&c.rng);
                }
                if (i % ENVELOPE_DRAWS == 0)
                        begin(&c);
                request(&c);
        }
}
