/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sys/sched.h"

/* A process that makes events for an attach point at a steady rate, and leaves word of when it made each. */

struct trigger;

struct trigger_options {
        int event_fd; /* of the attach point; borrowed */
        uint64_t rate_hz;
        uint64_t n_events; /* it ends after so many */
        struct sched_request sched;
};

/* trigger_new - fork it; it waits for trigger_start(). The calling thread must be the only one of its process. Return:
 * 0; a negative errno. */
int trigger_new(const struct trigger_options *options, struct trigger **ret, struct err *err);

/* trigger_start - event number i is made at @start_ns of CLOCK_MONOTONIC plus i periods. Return: 0; a negative errno.
 */
int trigger_start(struct trigger *trigger, int64_t start_ns, struct err *err);

/* trigger_made_ns - when event @sequence was made, CLOCK_MONOTONIC, from just before it: what woke the other side is
 * part of the wait. 0 where it was not made. */
int64_t trigger_made_ns(const struct trigger *trigger, uint64_t sequence);

/* trigger_due_ns - when it should have been made */
int64_t trigger_due_ns(const struct trigger *trigger, uint64_t sequence);

/* trigger_grant - what the scheduler granted it */
struct sched_grant trigger_grant(const struct trigger *trigger);

/* trigger_free - end it and release all; accepts NULL */
void trigger_free(struct trigger *trigger);
DEFINE_CLEANUP(struct trigger *, trigger_free)
#define _cleanup_trigger_ _cleanup_(trigger_free_cleanup)
