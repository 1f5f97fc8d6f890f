/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/sample.h"
#include "load/clocksync.h"
#include "load/schedule.h"
#include "wire/stamp.h"

/* The books of a probe: one slot for each time at which a packet is due, and what became of it. Nothing here reads a
 * clock or a socket. The memory may be shared between the process that measures and the one that reads: the books hold
 * no pointer but those into themselves, and nothing is allocated after slots_init(). */

enum slot_state {
        SLOT_OPEN,    /* not due yet, or the run ended before */
        SLOT_MISSED,  /* the sender came more than a period too late: nothing was sent */
        SLOT_REFUSED, /* the kernel did not take the packet; counts as sent and lost */
        SLOT_SENT,    /* no reply so far: lost, when the run is over */
        SLOT_ANSWERED,
};

/* Stamps are SAMPLE_MISSING where none was had. */
struct slot {
        int64_t sent_ns;            /* user, CLOCK_MONOTONIC, read before the call */
        int64_t kernel_sent_ns;     /* CLOCK_REALTIME */
        int64_t peer_received_ns;   /* the peer's clock */
        int64_t peer_sent_ns;       /* the peer's clock */
        int64_t kernel_received_ns; /* CLOCK_REALTIME */
        int64_t received_ns;        /* user, CLOCK_MONOTONIC, read after the call */
        uint8_t state;              /* enum slot_state */
        bool is_reordered;          /* its reply came after that of a later slot (RFC 4737) */
        uint8_t forward_ttl;        /* of the request where it arrived; 0: not known */
        uint8_t return_ttl;         /* of the reply where it arrived; 0: not known */
        uint32_t n_duplicates;      /* further replies */
};

/* A reply as it was received. */
struct slots_reply {
        struct stamp_reply packet;
        int64_t kernel_received_ns; /* SAMPLE_MISSING: none */
        int64_t received_ns;
        uint8_t ttl; /* 0: not known */
};

struct slots {
        size_t n;
        struct slot *slot;      /* @n of them */
        uint32_t *slot_of_send; /* the slot of the k-th packet that the kernel took */
        struct schedule schedule;
        struct clocksync_anchor anchor;
        uint64_t first_sequence; /* of the first packet, unwrapped */

        uint64_t n_closed; /* slots that are past; published last, so a reader of shared memory may use those before it
                            */
        uint64_t n_sent;   /* packets that the kernel took */
        uint64_t n_answered;
        uint64_t stamp_base;    /* the packet whose transmit stamp has id 0 */
        uint64_t next_expected; /* packet after the latest one answered (RFC 4737) */

        /* the peer's own sequence, to tell the directions of loss apart */
        uint64_t earliest_answered, latest_answered; /* packets */
        uint32_t earliest_peer_sequence, latest_peer_sequence;
        bool is_peer_stateful; /* its sequence was seen to differ from ours */

        /* of the last reply */
        struct stamp_error peer_error;

        int64_t peer_offset_ns; /* taken off the peer's stamps in the samples; 0 where its clock is about ours */
        bool has_peer_offset;
        uint64_t n_unmatched;              /* replies to nothing that was sent, or with a foreign timestamp */
        uint64_t n_stray_stamps;           /* transmit stamps that belong to no packet */
        uint64_t n_faults[N_STAMP_FAULTS]; /* packets that are no reply, by fault */
};

/* How much memory slots_init() wants for @n slots. */
size_t slots_size(size_t n);

/* slots_init - empty books in @memory, which is zeroed, aligned to 8, slots_size(@n) long, and outlives them
 * @n: less than 2^32
 */
void slots_init(struct slots *s, void *memory, size_t n, uint64_t first_sequence);

/* slots_begin - set the schedule and the anchor, before the first slot */
void slots_begin(struct slots *s, const struct schedule *schedule, const struct clocksync_anchor *anchor);

/* slots_miss, slots_refuse - close slot @i, for which nothing went out; @sent_ns is when the send was tried */
void slots_miss(struct slots *s, size_t i);
void slots_refuse(struct slots *s, size_t i, int64_t sent_ns);

/* slots_request - the packet of the next send, to go out at @sent_ns (the user's send stamp) */
void slots_request(const struct slots *s, int64_t sent_ns, struct stamp_request *ret);

/* slots_sent - close slot @i: the kernel took the packet of slots_request() */
void slots_sent(struct slots *s, size_t i, int64_t sent_ns);

/* slots_restart_stamps - the kernel numbers transmit stamps from 0 again, beginning with the next packet. Stamps of
 * earlier packets that still arrive are told by their time, and dropped. */
void slots_restart_stamps(struct slots *s);

/* slots_stamp - a transmit stamp arrived, perhaps late
 * @id: the kernel's number of the packet, 32 bits
 *
 * Return: 0; 1 where it belongs to no packet and was counted as stray: no such packet, one stamped already, or a time
 * before the packet was sent.
 */
int slots_stamp(struct slots *s, uint32_t id, int64_t kernel_sent_ns);

enum slots_outcome { SLOTS_FIRST, SLOTS_DUPLICATE, SLOTS_UNMATCHED };

/* slots_receive - a reply arrived. Of several to one slot the first gives the stamps and the others are counted. */
enum slots_outcome slots_receive(struct slots *s, const struct slots_reply *reply);

/* slots_fault - something arrived that is no reply */
void slots_fault(struct slots *s, enum stamp_fault fault);

struct slots_counts {
        uint64_t slots; /* closed ones */
        uint64_t sent;  /* tries in time, refused ones included */
        uint64_t missed;
        uint64_t refused;
        uint64_t received;                          /* slots answered, never more than sent */
        uint64_t lost;                              /* sent less received */
        uint64_t duplicates;                        /* further replies */
        uint64_t reordered;                         /* slots */
        uint64_t unstamped_send, unstamped_receive; /* packets without a kernel stamp; they are not lost */
        uint64_t unstamped_peer;                    /* replies without both of the peer's stamps */
        uint64_t negative; /* round trips below 0, by any pair of stamps: the measurement is wrong */
        uint8_t forward_ttl_min, forward_ttl_max; /* 0: none known */
        uint8_t return_ttl_min, return_ttl_max;
};

/* slots_count - add up slots @from to @to - 1, as far as they are closed */
void slots_count(const struct slots *s, size_t from, size_t to, struct slots_counts *ret);

/* slots_lost_forward - how many packets did not reach the peer, between the first and the last one answered
 *
 * Return: 0; -ENODATA where the peer's sequence tells nothing: it copies ours, or nothing was lost.
 */
int slots_lost_forward(const struct slots *s, uint64_t *ret);

/* slots_counts_json - the counts as an object of integers, with the names of the members; instead of TTLs the hops that
 * they show ("forward_hops_min", "forward_hops_max", "return_hops_min", "return_hops_max"), where known
 *
 * Return: a new reference, or NULL if memory ran out.
 */
json_t *slots_counts_json(const struct slots_counts *counts);

#define SLOTS_N_COLUMNS 7

/* What slots_write() writes: see docs/formats/samples.md. */
extern const struct column slots_columns[SLOTS_N_COLUMNS];

/* slots_write - one row for each closed slot, in order; a missed slot has its number only */
int slots_write(const struct slots *s, struct sample_writer *w, struct err *err);

/* slot_rtt_ns - round trip between the kernel's stamps less the peer's residence; SAMPLE_MISSING where a stamp is */
int64_t slot_rtt_ns(const struct slot *slot);

/* slot_rtt_user_ns - round trip between the user's stamps, residence included; SAMPLE_MISSING where there is no reply
 */
int64_t slot_rtt_user_ns(const struct slot *slot);

/* slots_lateness_ns - how long after its due time slot @i was sent; SAMPLE_MISSING where it was not */
int64_t slots_lateness_ns(const struct slots *s, size_t i);
