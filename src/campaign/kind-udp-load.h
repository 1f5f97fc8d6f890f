/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "campaign/adapter.h"
#include "evidence/kind.h"

/* The workload `udp-load`: datagrams at a rate that is really offered, from a zone to a sink that counts them. */

struct udp_load_keys {
        char *from, *to, *slice;
        int64_t rate_bps;     /* of layer 2, tag included; 0: its processor is kept as warm, and nothing is sent */
        int64_t packet_bytes; /* of the IP packet */
        int64_t burst_packets;
        bool is_overload;
        int family;
        int64_t cpu;
};

extern const struct key_table udp_load_table;
extern const struct workload_ops udp_load_ops;
