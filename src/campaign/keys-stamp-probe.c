/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kind-stamp-probe.h"

#include "campaign/quantiles.h"
#include "campaign/traffic.h"

#define FIELD(name) offsetof(struct stamp_probe_keys, name)

static const struct key keys[] = {
        {.name = "from", .type = KEY_NAME, .offset = FIELD(from), .is_required = true, .help = "Zone of the probe."},
        {.name = "to", .type = KEY_NAME, .offset = FIELD(to), .is_required = true, .help = "Zone of the reflector."},
        TRAFFIC_KEY_SLICE(FIELD(slice), "Slice that is probed."),
        {.name = "rate",
         .type = KEY_QUANTITY,
         .offset = FIELD(rate_hz),
         .fallback = "1000/s",
         .unit = UNIT_FREQUENCY,
         .min = 1,
         .max = 100000,
         .help = "Slots of the schedule a second; one packet is due in each."},
        {.name = "duration",
         .type = KEY_QUANTITY,
         .offset = FIELD(duration_ns),
         .is_required = true,
         .unit = UNIT_DURATION,
         .min = 10000000,
         .max = INT64_C(86400000000000),
         .help = "How long is measured, after the warm-up."},
        {.name = "warmup",
         .type = KEY_QUANTITY,
         .offset = FIELD(warmup_ns),
         .fallback = "0",
         .unit = UNIT_DURATION,
         .max = INT64_C(3600000000000),
         .help = "How long the schedule runs before; its slots are stored and left out of every number."},
        {.name = "packet",
         .type = KEY_QUANTITY,
         .offset = FIELD(packet_bytes),
         .fallback = "92B",
         .unit = UNIT_BYTES,
         .min = 92,
         .max = 1500,
         .help = "Length of the IP packet; 92 bytes hold the 44 octets of STAMP over IPv6."},
        TRAFFIC_KEY_FAMILY(FIELD(family)),
        TRAFFIC_KEY_CPU("cpu", FIELD(cpu), "0", "Processor that the probe is pinned to."),
        TRAFFIC_KEY_CPU("reflector-cpu", FIELD(reflector_cpu), "0", "Processor that the reflector is pinned to."),
        {},
};

const struct key_table stamp_probe_table = {
        .name = "stamp-probe",
        .help = "A STAMP probe (RFC 8762) in one zone and a reflector in another.",
        .size = sizeof(struct stamp_probe_keys),
        .has_kind = true,
        .keys = keys,
};

const struct metric stamp_probe_metrics[] = {
        QUANTILES("rtt"),
        QUANTILES("rtt_user"),
        QUANTILES("response"),
        QUANTILES("lateness"),
        {.name = "loss", .unit = METRIC_PPB, .source = METRIC_LOSS},
        {},
};
