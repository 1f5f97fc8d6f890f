/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "load/udp.h"

/* What a stateful reflector remembers: for each peer (address, port and session identifier) the sequence number of its
 * next reply. The table is bounded. It has sets of eight places; a peer may stand in one set only, chosen by a hash
 * with a random key, and a new peer takes the place of the one in its set that was silent longest. A peer that was put
 * out, or was silent for PEERS_IDLE_NS, begins again with 0. So a flood of made-up senders costs real ones at most
 * their count, never a reply. */

#define PEERS_SETS    256
#define PEERS_WAYS    8
#define PEERS_IDLE_NS (INT64_C(900) * 1000000000) /* REFWAIT of RFC 5357 */

struct peer {
        union address address;
        int64_t last_ns; /* 0: the place is free */
        uint32_t next_sequence;
        uint16_t session;
};

struct peers {
        uint64_t key;
        uint64_t n_evicted; /* peers put out before they were idle */
        struct peer sets[PEERS_SETS][PEERS_WAYS];
};

/* peers_init - an empty table; @key should be random */
void peers_init(struct peers *peers, uint64_t key);

/* peers_count - the sequence number of the reply to @address, counted on
 * @now_ns: over 0, of any clock, not decreasing
 */
uint32_t peers_count(struct peers *peers, const union address *address, uint16_t session, int64_t now_ns);
