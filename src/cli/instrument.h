/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "sys/sched.h"

/* An instrument that a verb runs by itself: in a process of its own, so that what prints does not disturb what
 * measures, while the verb shows a line a second and waits for the end or for SIGINT. */
struct instrument {
        const char *name;
        void *object; /* in memory that the child inherits; its results in memory that is shared */
        int (*open)(void *object, struct err *err);
        int (*run)(void *object, int64_t start_ns, const volatile int *stop, struct err *err);
        void (*opened)(void *object);                   /* called in the parent once the child is ready; may be NULL */
        void (*tick)(void *object, int64_t elapsed_ns); /* every second in the parent; may be NULL */
        int64_t duration_ns;                            /* tell it to end after so long; 0: it ends by itself */
};

/* instrument_run - open it, run it, and wait for it; SIGINT, SIGTERM and SIGHUP end it early, which is no failure
 *
 * Return: 0, or a negative errno with the reason, the child's own where it had one.
 */
int instrument_run(const struct instrument *instrument, struct err *err);

/* Real-time priorities that are asked for unless told otherwise. A probe that spins must not keep a reflector on the
 * same processor from it. */
#define INSTRUMENT_PROBE_PRIORITY     "50"
#define INSTRUMENT_REFLECTOR_PRIORITY "51"

/* instrument_sched - what the options --cpu and --priority ask of the scheduler */
struct sched_request instrument_sched(int64_t cpu, int64_t priority);

/* instrument_family - what the flags --ipv4 and --ipv6 leave of the address families
 *
 * Return: AF_INET, AF_INET6 or AF_UNSPEC; -EINVAL where both are given.
 */
int instrument_family(bool only_v4, bool only_v6, struct err *err);

/* instrument_add_grant - lines that say what the scheduler granted, and what it refused and why */
void instrument_add_grant(const struct sched_grant *grant, struct text *out);
