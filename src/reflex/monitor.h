/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "reflex/audit.h"
#include "reflex/channel.h"

/* What stands between whoever asks for an actuation and the actuator. It decides on every request what is applied, and
 * nothing else is ever applied. It allocates nothing, takes no lock and has no loop over its input, so that a decision
 * takes the same time whatever was asked. One thread uses a monitor at a time. */

/* How far a channel may move. Two rules, because they promise different things:
 * - SLEW_REQUEST compares each request with the value before it: as long as less than the window has passed since that,
 *   the two are at most a step apart. Many requests within one window move it by many steps.
 * - SLEW_WINDOW compares with the value at the window's start: within a window the channel is never more than a step
 *   away from that. After a pause too, a jump takes as many windows as it has steps; two values less than a window
 * apart in time differ by at most three steps. */
enum slew { SLEW_NONE, SLEW_REQUEST, SLEW_WINDOW };

/* What a channel may be asked for and by whom. All zero: the channel does not exist. */
struct envelope {
        bool exists;
        int32_t min, max;     /* what may be applied */
        int32_t safe;         /* what a stop or a hold applies, at once and whatever the slew; within the range */
        enum authority floor; /* the least authority that may ask */
        enum slew slew;
        int32_t step; /* over 0 where there is a slew */
        int64_t window_ns;
};

/* envelopes_default - PWM channels 1 and 2 (0 to 90, in steps of 20 in 1 ms), all lines (0 and 1), open to any
 * authority
 * @slew: rule of the PWM channels
 */
void envelopes_default(enum slew slew, struct envelope ret[static CHANNELS]);

/* What is applied, and why. Answer and cause are those of the first of these rules that applies, in this order:
 *
 *   unknown channel   reject   nothing is applied
 *   authority         reject   nothing is applied: it is below the channel's floor
 *   estop             safe     the stop is latched
 *   hold              safe     the channel is held
 *   range, slew       clamp    the nearest value that both allow; cause slew where it was the slew that moved it last
 *   none              allow    the value as it was asked for
 */
struct decision {
        enum answer answer;
        enum cause cause;
        int32_t value; /* to be applied now; undefined where rejected */
};

/* A channel while it is used: what the envelope says, and where the actuator is. */
struct monitor_channel {
        int64_t window_ns;
        int64_t since_ns; /* of the last value (SLEW_REQUEST) or of the window's start (SLEW_WINDOW) */
        int32_t min, max, safe, step;
        int32_t applied;
        int32_t anchor; /* SLEW_WINDOW: the value at the window's start */
        uint8_t exists, floor, slew;
        uint8_t is_held, holder; /* authority of who holds it */
};

struct monitor {
        int64_t now_ns; /* the latest time that it was told */
        bool is_stopped;
        uint32_t epoch; /* how often it was stopped */
        struct monitor_channel channels[CHANNELS];
        struct audit audit;
};

/* monitor_init - a monitor whose channels all stand at their safe values, which the caller applies
 * @now_ns: of any clock, the same for all calls
 *
 * Return: 0; -EINVAL (kind usage) where an envelope is empty, leaves its safe value out, or has a slew without step or
 * window.
 */
int monitor_init(struct monitor *m, const struct envelope envelopes[static CHANNELS], int64_t now_ns, struct err *err);

/* monitor_decide - what to apply where @authority asks for @value on @channel
 * @channel: any number, channel_pwm() and channel_gpio() give those that exist
 * @source:  who asks, for the audit
 * @now_ns:  a time before that of an earlier call counts as that time
 *
 * The decision counts as carried out: the caller applies it before the next.
 */
struct decision monitor_decide(struct monitor *m, uint32_t channel, int64_t value, enum authority authority,
                               uint32_t source, int64_t now_ns);

/* monitor_may_ask - whether there is such a channel and @authority reaches its floor: whether a request would not be
 * rejected */
bool monitor_may_ask(const struct monitor *m, uint32_t channel, enum authority authority);

/* monitor_stop - the emergency stop: latch it, begin a new epoch. Anybody may stop.
 *
 * The caller applies the safe set, monitor_safe_value() of each channel, before anything else. Stopping what is stopped
 * begins another epoch. Return: the epoch.
 */
uint32_t monitor_stop(struct monitor *m, enum authority authority, uint32_t source, int64_t now_ns);

/* monitor_safe_value - the safe value of a channel below CHANNELS. Return: 1; 0 where there is no such channel. */
int monitor_safe_value(const struct monitor *m, uint32_t channel, int32_t *ret);

/* monitor_release - end a stop. Only AUTHORITY_OPERATOR may, no lower and no higher one: a person has to have looked.
 * @epoch: of the stop that is ended
 *
 * Return: 0; -EPERM for another authority; -ESTALE where it was stopped again since @epoch; -EALREADY where it is not
 * stopped.
 */
int monitor_release(struct monitor *m, uint32_t epoch, enum authority authority, uint32_t source, int64_t now_ns);

/* monitor_hold - keep a channel at its safe value until it is let go
 *
 * Return: what to apply: safe with the cause hold (estop, where it is stopped), or reject as monitor_decide(). A hold
 * by a higher authority stays that one's.
 */
struct decision monitor_hold(struct monitor *m, uint32_t channel, enum authority authority, uint32_t source,
                             int64_t now_ns);

/* monitor_unhold - let a channel go; what it is asked for next is applied again
 *
 * Return: 0; -ENOENT where there is no such channel or it is not held; -EPERM below the authority of who holds it.
 */
int monitor_unhold(struct monitor *m, uint32_t channel, enum authority authority, uint32_t source, int64_t now_ns);
