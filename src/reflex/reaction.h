/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "sys/sched.h"

/* How long it takes from an event to an actuation: a process that makes events, and a pipeline that hands each to a
 * program, which asks for a value on PWM channel 1 of the simulation. The program is verified, interpreted and
 * monitored. It is a software pipeline: no hardware is part of the path.
 *
 * reaction_new() here; reaction_open() and reaction_run() here or in a child; the events are in shared memory. */

struct reaction;

#define REACTION_EVENTS_MAX       10000000
#define REACTION_INSTRUCTIONS_MAX 50000

struct reaction_options {
        uint64_t rate_hz;
        uint64_t n_events;
        uint32_t n_instructions; /* additions that the program does before it asks */
        struct sched_request sched, trigger_sched;
};

/* Times are of CLOCK_MONOTONIC; 0 where it did not come to that. */
struct reaction_event {
        int64_t due_ns;     /* when it should have been made */
        int64_t made_ns;    /* when it was made */
        int64_t woke_ns;    /* the loop was told */
        int64_t entered_ns; /* the program was entered */
        int64_t output_ns;  /* the value was out */
};

/* reaction_new - memory for the result. Return: 0; -EINVAL where an option is out of range; -ENOMEM. */
int reaction_new(const struct reaction_options *options, struct reaction **ret, struct err *err);

/* reaction_open - verify and attach the program, fork what makes the events. The calling thread must be the only one of
 * its process, and stays. Return: 0; a negative errno. */
int reaction_open(struct reaction *reaction, struct err *err);

/* reaction_run - the first event at @start_ns; until the last one is handled, or a second after it was due
 * @stop: may be NULL
 *
 * Return: 0; -EINTR; another negative errno.
 */
int reaction_run(struct reaction *reaction, int64_t start_ns, const volatile int *stop, struct err *err);

/* reaction_event - what is known of event @sequence */
struct reaction_event reaction_event(const struct reaction *reaction, uint64_t sequence);

/* reaction_notes_json - what the scheduler granted both processes, cost and size of the program; a new reference, NULL
 * if memory ran out */
json_t *reaction_notes_json(const struct reaction *reaction);

void reaction_free(struct reaction *reaction);
DEFINE_CLEANUP(struct reaction *, reaction_free)
#define _cleanup_reaction_ _cleanup_(reaction_free_cleanup)
