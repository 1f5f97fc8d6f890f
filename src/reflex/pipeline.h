/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "reflex/monitor.h"
#include "reflex/output.h"
#include "reflex/routine.h"

/* From an event to an actuation: attach points wake verified programs, what they ask for goes through a monitor, and
 * what it decides to an output.
 *
 * Threads: pipeline_run() is the loop and holds everything. While it runs, another thread may call pipeline_swap() (one
 * at a time), and pipeline_stop() may be called from anywhere, a signal handler included; @observe may look at counts
 * and monitor, and release. All else is for when it does not run. Nothing allocates between an event and its actuation.
 */

struct pipeline;

#define PIPELINE_ATTACHMENTS_MAX 16
#define PIPELINE_RATE_MAX        1000000 /* a second */

/* Events that may be handled faster than their rate, one after the other: what came while the processor was busy
 * elsewhere has to be caught up with. At higher rates as many as are due in PIPELINE_BURST_NS. */
#define PIPELINE_BURST    8
#define PIPELINE_BURST_NS (100 * NSEC_PER_MSEC)

/* Sources of audit records that are no attachment. */
#define PIPELINE_SOURCE_HOST UINT32_MAX

enum attach_kind {
        ATTACH_TIMER, /* at a rate; what expired while nobody was there is counted and skipped */
        ATTACH_EVENT, /* for each one that is added to an eventfd; each is handled, in order */
};

struct attachment {
        enum attach_kind kind;
        uint64_t rate_hz; /* of the timer; of events, how many a second are handled: more have to wait */
        enum authority authority;
};

/* One event, for who looks on. Times are the pipeline's. */
struct pipeline_trace {
        uint32_t attachment;
        uint64_t sequence;
        int64_t due_ns;     /* of a timer, CLOCK_MONOTONIC; 0 of other events */
        int64_t woke_ns;    /* the loop was told of it, and perhaps of others */
        int64_t entered_ns; /* the program was entered */
        int64_t output_ns;  /* its first actuation had been written; 0 where there was none */
        uint64_t result;    /* what the program returned */
};

struct pipeline_options {
        const struct envelope *envelopes;  /* CHANNELS of them; NULL: envelopes_default(SLEW_WINDOW) */
        struct output *output;             /* borrowed; has to outlive the pipeline */
        uint32_t max_utilisation_ppm;      /* of all attachments; 0: the embedded profile's */
        int64_t (*now_ns)(void *userdata); /* NULL: CLOCK_MONOTONIC. Timers wake by that clock in any case */
        void (*observe)(void *userdata, const struct pipeline_trace *trace); /* may be NULL: then nothing is timed */
        void *userdata;
};

/* What an attachment did. */
struct pipeline_counts {
        uint64_t events;           /* handled */
        uint64_t missed;           /* expirations of a timer that were skipped */
        uint64_t waiting;          /* events seen and not yet handled */
        uint64_t delayed;          /* events that had to wait for the rate */
        uint64_t swaps;            /* programs that were replaced by another */
        uint64_t answers[ANSWERS]; /* of its actuations */
};

/* pipeline_new - a pipeline without attachments; drives the safe set. Return: 0; a negative errno. */
int pipeline_new(const struct pipeline_options *options, struct pipeline **ret, struct err *err);

/* pipeline_free - drive the safe set and release all; accepts NULL */
void pipeline_free(struct pipeline *pipeline);
DEFINE_CLEANUP(struct pipeline *, pipeline_free)
#define _cleanup_pipeline_ _cleanup_(pipeline_free_cleanup)

/* pipeline_attach - have a routine run on events
 * @routine:    taken (*@routine is NULL then) where it is attached
 * @ret_number: of the attachment, its source number in the audit
 * @fault:      why it was refused
 *
 * Return: 0; 1 refused, FAULT_UTILISATION: its cost times its rate and those of the others exceed the cap; a negative
 * errno (-ENOSPC after PIPELINE_ATTACHMENTS_MAX).
 */
int pipeline_attach(struct pipeline *pipeline, const struct attachment *attachment, struct routine **routine,
                    uint32_t *ret_number, struct fault *fault, struct err *err);

/* pipeline_detach - take an attachment away and refund its utilisation; events that wait are lost. Return: 0; -ENOENT.
 */
int pipeline_detach(struct pipeline *pipeline, uint32_t number);

/* pipeline_swap - replace the routine of an attachment between two of its events: each event is handled, by the old one
 * or, from some event on, by the new one. Also while the pipeline runs.
 *
 * The new one has maps of its own, at their initial values. Return: as pipeline_attach(); -ENOENT.
 */
int pipeline_swap(struct pipeline *pipeline, uint32_t number, struct routine **routine, struct fault *fault,
                  struct err *err);

/* pipeline_event_fd - the eventfd of an attachment, borrowed: adding n to it is n events. Return: -ENOENT for another
 * kind or none. */
int pipeline_event_fd(const struct pipeline *pipeline, uint32_t number);

/* pipeline_utilisation_ppm - cost times rate over all attachments, rounded up */
uint64_t pipeline_utilisation_ppm(const struct pipeline *pipeline);

/* pipeline_run - handle events
 * @until_ns: of CLOCK_MONOTONIC, when to return
 * @quit:     return soon after it became non-zero, in a signal handler; may be NULL
 *
 * Return: 0 at @until_ns; -EINTR; another negative errno. -ENOTRECOVERABLE (kind bug) where a program did not end: then
 * the stop is latched.
 */
int pipeline_run(struct pipeline *pipeline, int64_t until_ns, const volatile int *quit, struct err *err);

/* pipeline_stop - ask for the emergency stop: before the next actuation the safe set is driven, and nothing else until
 * an operator releases it. An output that fails stops, too. Async-signal-safe. */
void pipeline_stop(struct pipeline *pipeline);

/* pipeline_release - end a stop as the operator: monitor_release() with its results */
int pipeline_release(struct pipeline *pipeline, uint32_t epoch);

/* pipeline_monitor - the monitor, for its audit and latches */
struct monitor *pipeline_monitor(struct pipeline *pipeline);

/* pipeline_counts - Return: 0; -ENOENT. */
int pipeline_counts(const struct pipeline *pipeline, uint32_t number, struct pipeline_counts *ret);

/* pipeline_output_errors - how many writes the output refused */
uint64_t pipeline_output_errors(const struct pipeline *pipeline);
