/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "testbed/layout.h"
#include "testbed/scrape.h"

/* Whether packets went where the topology says. A pure judgement of what was sent and what the counters say, so that it
 * can be made again from an archive. */

/* Traffic one way that is known to the packet. Replies are a flow of their own. */
struct path_flow {
        size_t from, to, slice; /* zones */
        uint64_t sent_packets;

        /* What is known of it besides, where it was looked at. */
        bool must_arrive; /* so little, at an idle time, that all of it has to arrive */
        uint64_t arrived_packets;
        bool has_ttl;              /* it was sent with TTL (hop limit) 255 */
        uint8_t ttl_min, ttl_max;  /* of what arrived; 0 where nothing did */
        bool has_tags;             /* its frames were looked at on the wire */
        uint64_t tagged_packets;   /* crossings of a link, with the slice's tag */
        uint64_t untagged_packets; /* and without a tag, or with another one */
};

struct path_proof {
        bool holds;
        char reason[512]; /* why not: the first that was found; empty where it holds */
};

/* path_judge - decide whether all traffic between two scrapes took its path
 * @wants_tags: the testbed tags its links
 * @flows:      everything that was sent between the scrapes, complete
 *
 * It holds where, for every link and direction, what it carried and what was counted as dropped on the way is exactly
 * what was sent over it; the uplink's classes each carried and dropped exactly their slice's part; nothing left the
 * scheduler without a class; nothing was refused; the ports saw their slices' packets with the right tag; and, of flows
 * that were looked at, everything arrived after exactly as many forwarding nodes as planned, tagged on the wire.
 * That it does not hold is an outcome. Return: 0; -ENOMEM.
 */
int path_judge(const struct layout *layout, bool wants_tags, const struct scrape *before, const struct scrape *after,
               const struct path_flow *flows, size_t n, struct path_proof *ret, struct err *err);
