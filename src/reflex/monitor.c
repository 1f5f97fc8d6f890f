/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex/monitor.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/macro.h"

void envelopes_default(enum slew slew, struct envelope ret[static CHANNELS])
{
        memset(ret, 0, CHANNELS * sizeof(*ret));
        for (uint32_t pwm = 1; pwm <= 2; pwm++)
                ret[channel_pwm(pwm)] = (struct envelope){
                        .exists = true, .max = 90, .slew = slew, .step = 20, .window_ns = NSEC_PER_MSEC};
        for (uint32_t line = 0; line < CHANNEL_GPIOS; line++)
                ret[channel_gpio(line)] = (struct envelope){.exists = true, .max = 1};
}

static int check(const struct envelope *e, uint32_t channel, struct err *err)
{
        char name[16];

        channel_format(channel, name);
        if (e->min > e->max)
                return err_set(err, ERR_USAGE, EINVAL, "%s: the range from %" PRIi32 " to %" PRIi32 " is empty", name,
                               e->min, e->max);
        if (e->safe < e->min || e->safe > e->max)
                return err_set(err, ERR_USAGE, EINVAL,
                               "%s: the safe value %" PRIi32 " is not in the range from %" PRIi32 " to %" PRIi32, name,
                               e->safe, e->min, e->max);
        if ((unsigned)e->floor >= AUTHORITIES || (unsigned)e->slew > SLEW_WINDOW)
                return err_set(err, ERR_USAGE, EINVAL, "%s: unknown authority or slew", name);
        if (e->slew != SLEW_NONE && (e->step <= 0 || e->window_ns <= 0))
                return err_set(err, ERR_USAGE, EINVAL, "%s: a slew needs a step and a window, both over 0", name);
        return 0;
}

int monitor_init(struct monitor *m, const struct envelope envelopes[static CHANNELS], int64_t now_ns, struct err *err)
{
        for (uint32_t i = 0; i < CHANNELS; i++) {
                int r = envelopes[i].exists ? check(&envelopes[i], i, err) : 0;

                if (r < 0)
                        return r;
        }

        memset(m, 0, sizeof(*m));
        m->now_ns = now_ns;
        for (uint32_t i = 0; i < CHANNELS; i++) {
                const struct envelope *e = &envelopes[i];

                m->channels[i] = (struct monitor_channel){
                        .exists = e->exists,
                        .min = e->min,
                        .max = e->max,
                        .safe = e->safe,
                        .floor = (uint8_t)e->floor,
                        .slew = (uint8_t)e->slew,
                        .step = e->step,
                        .window_ns = e->window_ns,
                        .since_ns = now_ns,
                        .applied = e->safe,
                        .anchor = e->safe,
                };
        }
        return 0;
}

/* Time never goes back. */
static inline void advance(struct monitor *m, int64_t now_ns)
{
        m->now_ns = MAX(m->now_ns, now_ns);
}

static inline void record(struct monitor *m, enum audit_event event, uint32_t channel, int64_t asked,
                          enum authority authority, uint32_t source, struct decision d)
{
        struct audit_record *r = audit_slot(&m->audit);

        /* member by member: a whole record would be put together elsewhere and copied, which takes as long again */
        r->now_ns = m->now_ns;
        r->asked = asked;
        r->channel = channel < CHANNELS ? channel : CHANNEL_NONE;
        r->source = source;
        r->epoch = m->epoch;
        r->applied = d.value;
        r->event = (uint8_t)event;
        r->authority = (uint8_t)authority;
        r->answer = (uint8_t)d.answer;
        r->cause = (uint8_t)d.cause;
}

static inline int64_t clamp(int64_t value, int64_t low, int64_t high)
{
        return value < low ? low : value > high ? high : value;
}

/* The nearest value to @value, which is in the range, that the slew allows. */
static inline int32_t limit_slew(struct monitor_channel *c, int32_t value, int64_t now_ns)
{
        bool is_over = (uint64_t)now_ns - (uint64_t)c->since_ns >= (uint64_t)c->window_ns;
        int64_t from;

        if (c->slew == SLEW_NONE)
                return value;
        if (c->slew == SLEW_REQUEST) {
                from = c->applied;
                c->since_ns = now_ns;
                if (is_over)
                        return value;
        } else {
                if (is_over) {
                        c->since_ns = now_ns;
                        c->anchor = c->applied;
                }
                from = c->anchor;
        }
        return (int32_t)clamp(value, from - c->step, from + c->step);
}

static inline struct decision apply_request(struct monitor_channel *c, int64_t value, int64_t now_ns)
{
        int32_t ranged = (int32_t)clamp(value, c->min, c->max), limited = limit_slew(c, ranged, now_ns);

        c->applied = limited;
        return (struct decision){
                .answer = limited == value ? ANSWER_ALLOW : ANSWER_CLAMP,
                .cause = limited != ranged ? CAUSE_SLEW
                         : ranged != value ? CAUSE_RANGE
                                           : CAUSE_NONE,
                .value = limited,
        };
}

static inline struct decision apply_safe(struct monitor_channel *c, enum cause cause, int64_t now_ns)
{
        c->applied = c->anchor = c->safe;
        c->since_ns = now_ns;
        return (struct decision){.answer = ANSWER_SAFE, .cause = cause, .value = c->safe};
}

static inline struct decision reject(enum cause cause)
{
        return (struct decision){.answer = ANSWER_REJECT, .cause = cause};
}

/* Whether the authority is one that there is and reaches the floor: one comparison of unsigned numbers. */
static inline bool may_ask(const struct monitor_channel *c, enum authority authority)
{
        return (unsigned)authority - c->floor < AUTHORITIES - (unsigned)c->floor;
}

static inline struct monitor_channel *find(struct monitor *m, uint32_t channel)
{
        return channel < CHANNELS && m->channels[channel].exists ? &m->channels[channel] : NULL;
}

static inline struct decision decide(struct monitor *m, uint32_t channel, int64_t value, enum authority authority)
{
        struct monitor_channel *c = find(m, channel);

        if (!c)
                return reject(CAUSE_UNKNOWN);
        if (!may_ask(c, authority))
                return reject(CAUSE_AUTHORITY);
        if (m->is_stopped)
                return apply_safe(c, CAUSE_ESTOP, m->now_ns);
        if (c->is_held)
                return apply_safe(c, CAUSE_HOLD, m->now_ns);
        return apply_request(c, value, m->now_ns);
}

struct decision monitor_decide(struct monitor *m, uint32_t channel, int64_t value, enum authority authority,
                               uint32_t source, int64_t now_ns)
{
        struct decision d;

        advance(m, now_ns);
        d = decide(m, channel, value, authority);
        record(m, AUDIT_DECIDE, channel, value, authority, source, d);
        return d;
}

bool monitor_may_ask(const struct monitor *m, uint32_t channel, enum authority authority)
{
        return channel < CHANNELS && m->channels[channel].exists && may_ask(&m->channels[channel], authority);
}

uint32_t monitor_stop(struct monitor *m, enum authority authority, uint32_t source, int64_t now_ns)
{
        advance(m, now_ns);
        m->is_stopped = true;
        m->epoch++;
        for (uint32_t i = 0; i < CHANNELS; i++)
                apply_safe(&m->channels[i], CAUSE_ESTOP, m->now_ns);
        record(m, AUDIT_STOP, CHANNEL_NONE, 0, authority, source,
               (struct decision){.answer = ANSWER_SAFE, .cause = CAUSE_ESTOP});
        return m->epoch;
}

int monitor_safe_value(const struct monitor *m, uint32_t channel, int32_t *ret)
{
        if (channel >= CHANNELS || !m->channels[channel].exists)
                return 0;
        *ret = m->channels[channel].safe;
        return 1;
}

int monitor_release(struct monitor *m, uint32_t epoch, enum authority authority, uint32_t source, int64_t now_ns)
{
        struct decision d = {.answer = ANSWER_REJECT};
        int r = 0;

        advance(m, now_ns);
        if (authority != AUTHORITY_OPERATOR) {
                d.cause = CAUSE_AUTHORITY;
                r = -EPERM;
        } else if (!m->is_stopped) {
                r = -EALREADY;
        } else if (epoch != m->epoch) {
                d.cause = CAUSE_ESTOP;
                r = -ESTALE;
        } else {
                d.answer = ANSWER_ALLOW;
                m->is_stopped = false;
        }
        record(m, AUDIT_RELEASE, CHANNEL_NONE, epoch, authority, source, d);
        return r;
}

struct decision monitor_hold(struct monitor *m, uint32_t channel, enum authority authority, uint32_t source,
                             int64_t now_ns)
{
        struct monitor_channel *c = find(m, channel);
        struct decision d;

        advance(m, now_ns);
        if (!c) {
                d = reject(CAUSE_UNKNOWN);
        } else if (!may_ask(c, authority)) {
                d = reject(CAUSE_AUTHORITY);
        } else {
                c->holder = c->is_held ? MAX(c->holder, (uint8_t)authority) : (uint8_t)authority;
                c->is_held = true;
                d = apply_safe(c, m->is_stopped ? CAUSE_ESTOP : CAUSE_HOLD, m->now_ns);
        }
        record(m, AUDIT_HOLD, channel, 0, authority, source, d);
        return d;
}

int monitor_unhold(struct monitor *m, uint32_t channel, enum authority authority, uint32_t source, int64_t now_ns)
{
        struct monitor_channel *c = find(m, channel);
        struct decision d = {.answer = ANSWER_ALLOW};
        int r = 0;

        advance(m, now_ns);
        if (!c || !c->is_held) {
                d = reject(c ? CAUSE_NONE : CAUSE_UNKNOWN);
                r = -ENOENT;
        } else if ((unsigned)authority >= AUTHORITIES || authority < c->holder) {
                d = reject(CAUSE_AUTHORITY);
                r = -EPERM;
        } else {
                c->is_held = false;
                d.value = c->applied;
        }
        record(m, AUDIT_UNHOLD, channel, 0, authority, source, d);
        return r;
}
