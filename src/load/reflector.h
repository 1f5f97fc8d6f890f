/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "load/udp.h"
#include "sys/sched.h"
#include "wire/stamp.h"

/* A STAMP session-reflector. It answers each sender's packet with one of the same length and DSCP, to where it came
 * from, and so can neither amplify nor be made to talk to groups; it does not answer what a reflector sends, so two of
 * them cannot be set upon each other.
 *
 * While one peer sends more than can be answered, a second socket at the same address takes its packets and sends its
 * replies, which is cheaper for the kernel; nobody notices, and no packet is lost when it comes or goes. Only a
 * reflector on one address does so.
 *
 * Life of a reflector: as a probe's. reflector_new() makes the counters shared with children forked later;
 * reflector_open() and reflector_run() belong to one process. */

struct reflector_config {
        union address local; /* the unspecified address answers on all; port 0 lets the kernel choose */
        bool is_stateless;   /* replies carry the sender's sequence number instead of the reflector's own */
        struct sched_request sched;
};

struct reflector_counts {
        uint64_t received;
        uint64_t reflected;
        uint64_t faults[N_STAMP_FAULTS]; /* malformed packets, not answered, by fault */
        uint64_t not_unicast;            /* sent to or from a group, not answered */
        uint64_t refused;                /* replies that the kernel did not take */
        uint64_t unstamped;              /* answered with the user's receive stamp for lack of the kernel's */
        uint64_t evicted;                /* peers forgotten for want of room */
        uint64_t by_session;             /* replies to a peer that flooded, by a socket that was that peer's only */
        uint32_t receive_overflow;       /* packets that the full receive buffer has cost */
        int last_refusal;                /* errno of the last refused reply; 0: none */
};

struct reflector;

/* reflector_new - check @config and allocate. Return: 0; -EINVAL with the reason (kind usage), -ENOMEM. */
int reflector_new(const struct reflector_config *config, struct reflector **ret, struct err *err);
void reflector_free(struct reflector *r);

DEFINE_CLEANUP(struct reflector *, reflector_free)
#define _cleanup_reflector_ _cleanup_(reflector_free_cleanup)

/* reflector_open - open the socket in the caller's network namespace, ask for the scheduling
 *
 * From now on packets are queued, and answered by reflector_run(). Return: 0 or a negative errno with the reason.
 */
int reflector_open(struct reflector *r, struct err *err);

/* reflector_run - answer until *@stop becomes non-zero, which is looked at after each batch and every 100 ms
 *
 * Return: 0, or a negative errno with the reason where the socket failed.
 */
int reflector_run(struct reflector *r, const volatile int *stop, struct err *err);

/* reflector_address - where it listens, port included; after reflector_open() */
void reflector_address(const struct reflector *r, union address *ret);

/* reflector_counts - what happened so far; may be read by another process at any time */
const struct reflector_counts *reflector_counts(const struct reflector *r);

/* reflector_notes_json - counts, scheduling and buffers as an object. Return: a new reference, or NULL. */
json_t *reflector_notes_json(const struct reflector *r);
