/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "load/udp.h"
#include "sys/sched.h"

/* Background load: datagrams at a rate that is really offered. Packet i is due by an absolute schedule; who falls
 * behind catches up, so that what the schedule says is what the path gets. The processor spins between packets, and at
 * rate 0 does nothing else: idle and loaded cells of an experiment keep their processors equally warm. Datagrams are
 * sent one by one, never as segments that a later layer cuts; where it is asked for as whole frames (load/frames.h).
 *
 * Life of a generator: as a probe's. */

#define GENERATOR_UNLIMITED UINT64_MAX
#define GENERATOR_BURST_MAX 64
#define GENERATOR_REFUSALS  8

struct generator_config {
        union address peer;    /* the sink, with its port */
        union address local;   /* family AF_UNSPEC: any address and port */
        uint32_t packet_bytes; /* length of the IP packet */
        uint32_t layer2_bytes; /* what layer 2 adds to each packet, and the rate counts: 14, with a tag 18 */
        uint64_t rate_bps;     /* bits of layer 2 a second; 0: none; GENERATOR_UNLIMITED: as fast as it goes */
        uint32_t burst;        /* packets that are due at the same moment, 1 to GENERATOR_BURST_MAX */
        uint8_t dscp;
        bool is_framed;      /* by a packet socket, as soon as the next host's MAC is known; CAP_NET_RAW */
        int64_t duration_ns; /* 0: until it is stopped */
        struct sched_request sched;
};

struct generator_counts {
        uint64_t offered_packets;           /* due by the schedule so far */
        uint64_t sent_packets;              /* taken by the kernel */
        uint64_t framed_packets;            /* of those, the ones that were sent as whole frames */
        uint64_t refused_packets;           /* tried, and not taken; what is left of offered was never tried */
        uint64_t offered_bytes, sent_bytes; /* of layer 2 */
        int64_t duration_ns;                /* so far */
        struct {
                int errnum;
                uint64_t n;
        } refusals[GENERATOR_REFUSALS]; /* by errno; the last place takes all that have no other */
};

struct generator;

/* generator_new - check @config and allocate; counters are shared with children forked later
 *
 * Return: 0; -EINVAL with the reason (kind usage), -ENOMEM.
 */
int generator_new(const struct generator_config *config, struct generator **ret, struct err *err);
void generator_free(struct generator *g);

DEFINE_CLEANUP(struct generator *, generator_free)
#define _cleanup_generator_ _cleanup_(generator_free_cleanup)

/* generator_open - open the socket in the caller's network namespace with a large send buffer, forced where that is
 * allowed; ask for the scheduling
 *
 * Packets that wait in a queue of the path stay charged to this buffer, also behind veth links: were it small, the
 * sender would be held back to the rate of the queue. Return: 0; -EPERM or -EOPNOTSUPP, kind unsupported, where frames
 * are wanted and cannot be had; another negative errno with the reason.
 */
int generator_open(struct generator *g, struct err *err);

/* generator_run - offer load from @start_ns (CLOCK_MONOTONIC) until the duration is over or *@stop (may be NULL)
 * becomes non-zero
 *
 * Return: 0, whatever the kernel refused: that is counted.
 */
int generator_run(struct generator *g, int64_t start_ns, const volatile int *stop, struct err *err);

/* generator_counts - so far; may be read by another process at any time, whole after the run */
void generator_counts(const struct generator *g, struct generator_counts *ret);

/* generator_counts_json - offered, sent and refused packets and bytes, and refusals by the name of their errno
 *
 * Return: a new reference, or NULL if memory ran out.
 */
json_t *generator_counts_json(const struct generator_counts *counts);

/* generator_notes_json - scheduling, buffers and how many packets were sent as frames, as an object. Return: a new
 * reference, or NULL. */
json_t *generator_notes_json(const struct generator *g);
