/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "sys/slice.h"
#include "testbed/layout.h"

/* What the counters of a testbed said at one moment. Everything counts up from zero at testbed_up(), except what is
 * named backlog. Bytes are of layer 2 and include the tag where there is one. */

struct scrape_count {
        uint64_t packets, bytes;
};

/* One direction of a link. The sending end counts what it handed over and what it could not. */
struct scrape_flow {
        struct scrape_count sent;
        uint64_t dropped_packets;
};

struct scrape_link {
        struct scrape_flow up, down;
        bool is_running; /* both ends up and connected */
};

/* What one link end saw of one slice: packets with the slice's tag and addresses. Only where BPF programs count. */
struct scrape_port {
        struct scrape_count in, out;
};

/* One class of the uplink's scheduler: of one slice, or of all where the scheduler is one-queue. */
struct scrape_class {
        bool is_present;
        struct scrape_count sent; /* handed to the link */
        uint64_t dropped_packets; /* its queue was full */
        uint64_t backlog_packets; /* waiting now */
        uint64_t overlimits;      /* times that it had to wait for its rate */
};

struct scrape {
        int64_t taken_ns;              /* CLOCK_MONOTONIC, when it was complete */
        bool has_ports;                /* @ports and @refused are counted on this host */
        bool has_scheduler;            /* the uplink has the queues that were planned */
        char root_kind[16];            /* of the uplink's root queue: "htb", "mq", "noqueue" */
        uint64_t unclassified_packets; /* left the scheduler without a class */
        size_t n_links, n_slices, n_classes;
        struct scrape_class classes[TOPOLOGY_SLICES_MAX];
        struct scrape_link *links;              /* owned */
        uint64_t (*refused)[2][SLICE_DROP_MAX]; /* packets, by link, end and reason; owned */
        struct scrape_port (*ports)[2];         /* [link * n_slices + slice][end]; owned */
};

/* scrape_init - a scrape of so many links and slices, everything counted zero. Return: 0, or -ENOMEM; scrape_done()
 * releases it. */
int scrape_init(struct scrape *s, size_t n_links, size_t n_slices);

/* scrape_done - release what a scrape holds; accepts a zeroed one */
void scrape_done(struct scrape *scrape);

#define _cleanup_scrape_ _cleanup_(scrape_done)

/* scrape_port - what @end of @link saw of @slice */
const struct scrape_port *scrape_port(const struct scrape *scrape, size_t link, size_t slice, unsigned end);

/* scrape_format - add a scrape to @out as OpenMetrics text, ending in "# EOF"
 *
 * Names and labels are stable; docs/formats/scrape.md lists them. Return: 0, or a negative errno. */
int scrape_format(const struct scrape *scrape, const struct layout *layout, struct text *out, struct err *err);
