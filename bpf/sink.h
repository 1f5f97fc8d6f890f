/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the program that counts and drops datagrams (bpf/sink.bpf.c) shares with who loads it (sys/sink.c). */

#include <linux/types.h>

#include "bpf/slice.h"

struct sink_config {
        __be16 port; /* UDP destination port, in network byte order */
        __u16 n_vlans;
        __u16 vlans[SLICE_MAX]; /* the packets of the I-th count in key I */
};

#define SINK_OTHER  SLICE_MAX /* key of what has none of the VLANs, or no tag */
#define SINK_COUNTS (SLICE_MAX + 1)
