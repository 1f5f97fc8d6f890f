/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "load/slots.h"
#include "load/udp.h"
#include "sys/sched.h"

/* A STAMP session-sender that keeps an absolute schedule.
 *
 * Life of a probe: probe_new() allocates its books in shared memory; then, usually in a child process inside a network
 * namespace, probe_open() opens the socket and settles the scheduling, and probe_run() measures; whoever holds the
 * probe may read the books meanwhile (closed slots) and afterwards. One thread sends and receives: on hosts with few
 * CPUs a second one would compete with the first for the CPU, and both stamps of a packet are on one timeline. With
 * real-time priority and 500 slots a second or more it keeps its processor awake, nine tenths of the time: a reflector
 * on the same processor needs the higher priority. */

struct probe_config {
        union address peer;  /* the reflector, with its port */
        union address local; /* family AF_UNSPEC: any address and port */
        uint32_t size_bytes; /* UDP payload, 44 or more */
        uint8_t dscp;
        uint64_t rate_hz;
        uint64_t n_slots; /* at most PROBE_SLOTS_MAX */
        uint64_t first_sequence;
        int64_t linger_ns;   /* wait for replies after the last slot */
        bool no_send_stamps; /* of the kernel, which cost each packet time: figures that need them stay out */
        struct sched_request sched;
};

#define PROBE_SIZE_MAX  65507
#define PROBE_SLOTS_MAX 100000000u /* 6 GB */

/* What a run noticed beside the slots. */
struct probe_notes {
        struct sched_grant sched;
        struct udp_buffers buffers;
        struct stamp_error own_error; /* of CLOCK_REALTIME, as the kernel sees it */
        int64_t realtime_step_ns;     /* CLOCK_REALTIME set against CLOCK_MONOTONIC during the run, at its end */
        bool is_realtime_stepped;     /* also where it was set back again */
        uint32_t receive_overflow;    /* replies that the full receive buffer has cost */
        uint64_t n_unreachable;       /* ICMP errors that the peer's side sent */
        int last_refusal;             /* errno of the last packet that the kernel did not take; 0: none */
        bool is_spinning;             /* at its end: it kept its processor awake between slots */
        bool is_complete;             /* probe_run() came to its end, or was stopped by its caller */
};

struct probe;

/* probe_new - check @config and allocate the books, shared with child processes forked from now on
 *
 * Return: 0; -EINVAL with the reason (kind usage), -ENOMEM.
 */
int probe_new(const struct probe_config *config, struct probe **ret, struct err *err);
void probe_free(struct probe *p);

DEFINE_CLEANUP(struct probe *, probe_free)
#define _cleanup_probe_ _cleanup_(probe_free_cleanup)

/* probe_open - open the socket in the caller's network namespace, touch all memory, ask for the scheduling
 *
 * What the scheduler refuses is noted and no failure. Return: 0 or a negative errno with the reason.
 */
int probe_open(struct probe *p, struct err *err);

/* probe_run - send at each slot, receive, until the last slot and its linger are over
 * @start_ns: CLOCK_MONOTONIC time of slot 0
 * @stop:     ends the run where it becomes non-zero (at the next slot); may be NULL
 *
 * Nothing is allocated. Return: 0, also where it was stopped; a negative errno with the reason where the socket failed.
 */
int probe_run(struct probe *p, int64_t start_ns, const volatile int *stop, struct err *err);

/* The books and notes; whole after probe_run() returned or its process ended. */
const struct slots *probe_slots(const struct probe *p);
const struct probe_notes *probe_notes(const struct probe *p);

/* probe_notes_json - the notes, the peer's clock and the packets that matched nothing, as an object for trial.json
 *
 * Return: a new reference, or NULL if memory ran out.
 */
json_t *probe_notes_json(const struct probe *p);
