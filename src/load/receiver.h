/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "load/address.h"
#include "sys/sched.h"

/* Where load ends: counted, and gone. Two ways to do it stand behind one table: a program in the kernel that drops the
 * packets where they enter (cheap: it does not limit what can be offered, but sees packets and octets only), and a
 * socket (needs no right, and tells loss, duplicates and reordering).
 *
 * Life of a receiver: as a probe's. */

#define RECEIVER_STREAMS 16

enum receiver_kind {
        RECEIVER_SOCKET,
        RECEIVER_BPF, /* needs an interface, and the right to load BPF */
};

struct receiver_config {
        enum receiver_kind kind;
        union address local;
        char interface[16]; /* of RECEIVER_BPF */
        struct sched_request sched;
};

struct receiver_counts {
        uint64_t packets;
        uint64_t bytes; /* of IP by a socket; of layer 2, tag included, by BPF */

        /* by a socket, of datagrams that carry a mark of ours */
        uint64_t streams; /* senders */
        uint64_t lost;    /* gaps in their numbers */
        uint64_t duplicates;
        uint64_t reordered;
        uint64_t unmarked; /* datagrams that carry none, or of one sender too many */
        uint32_t overflow; /* datagrams that the full receive buffer has cost */
};

struct receiver;

/* receiver_new - check @config and allocate; counters are shared with children forked later
 *
 * Return: 0; -EINVAL with the reason (kind usage), -ENOMEM.
 */
int receiver_new(const struct receiver_config *config, struct receiver **ret, struct err *err);
void receiver_free(struct receiver *r);

DEFINE_CLEANUP(struct receiver *, receiver_free)
#define _cleanup_receiver_ _cleanup_(receiver_free_cleanup)

/* receiver_open - begin to take packets in the caller's network namespace. Return: 0; a negative errno with the reason,
 * kind unsupported where BPF may not be loaded. */
int receiver_open(struct receiver *r, struct err *err);

/* receiver_run - count until *@stop becomes non-zero, which is looked at every 100 ms at least */
int receiver_run(struct receiver *r, const volatile int *stop, struct err *err);

/* receiver_address - where it counts */
const union address *receiver_address(const struct receiver *r);

/* receiver_counts - so far; may be read by another process at any time, whole after the run */
const struct receiver_counts *receiver_counts(const struct receiver *r);

/* receiver_counts_json - the counts as an object; those of a socket only where there is one
 *
 * Return: a new reference, or NULL if memory ran out.
 */
json_t *receiver_counts_json(const struct receiver *r);
