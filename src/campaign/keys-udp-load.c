/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kind-udp-load.h"
#include "campaign/traffic.h"

#define FIELD(name) offsetof(struct udp_load_keys, name)

static const struct key keys[] = {
        {.name = "from", .type = KEY_NAME, .offset = FIELD(from), .is_required = true, .help = "Zone of the sender."},
        {.name = "to", .type = KEY_NAME, .offset = FIELD(to), .is_required = true, .help = "Zone of the sink."},
        TRAFFIC_KEY_SLICE(FIELD(slice), "Slice of the traffic."),
        {.name = "rate",
         .type = KEY_QUANTITY,
         .offset = FIELD(rate_bps),
         .fallback = "0",
         .unit = UNIT_RATE,
         .max = INT64_C(100000000000),
         .help = "Bits of layer 2 a second, the tag included. At 0 nothing is sent, and the processor is kept as busy "
                 "as at any other rate."},
        {.name = "packet",
         .type = KEY_QUANTITY,
         .offset = FIELD(packet_bytes),
         .fallback = "1400B",
         .unit = UNIT_BYTES,
         .min = 64,
         .max = 1500,
         .help = "Length of the IP packet."},
        {.name = "burst",
         .type = KEY_QUANTITY,
         .offset = FIELD(burst_packets),
         .fallback = "1p",
         .unit = UNIT_PACKETS,
         .min = 1,
         .max = 64,
         .help = "Packets that are due at the same time."},
        {.name = "overload",
         .type = KEY_BOOL,
         .offset = FIELD(is_overload),
         .fallback = "false",
         .help = "Means to offer more than the slice or the link can carry; without it such a rate is refused."},
        TRAFFIC_KEY_FAMILY(FIELD(family)),
        TRAFFIC_KEY_CPU("cpu", FIELD(cpu), "1", "Processor that the sender is pinned to."),
        {},
};

const struct key_table udp_load_table = {
        .name = "udp-load",
        .help = "Datagrams at a rate that is really offered, and a sink that counts them.",
        .size = sizeof(struct udp_load_keys),
        .has_kind = true,
        .keys = keys,
};
