/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the program at the host's end of a sandbox's link (bpf/gate.bpf.c) shares with who loads it (sys/gate.c). */

#include <linux/types.h>

/* The addresses of the sandbox's end: a packet with another's would be answered to that one. */
struct gate_own {
        __be32 v4;
        __be32 v6[4];
};

/* A destination that is open; of a packet that comes back, its source. */
struct gate_key {
        __be32 address[4]; /* of IPv4: the first, the rest are 0 */
        __be16 port;       /* 0: every port */
        __u8 protocol;     /* IPPROTO_TCP, IPPROTO_UDP */
        __u8 version;      /* 4, 6 */
};

struct gate_entry {
        __u64 expires_ns; /* CLOCK_MONOTONIC; 0: never */
};

#define GATE_ENTRIES_MAX 200000

struct gate_count {
        __u64 packets;
        __u64 bytes; /* of layer 2 */
};

enum gate_counter {
        GATE_LEFT,     /* let out */
        GATE_ENTERED,  /* let in */
        GATE_STOPPED,  /* not let out: the inner side should have refused it */
        GATE_STRANGER, /* not let in */
        GATE_COUNTERS,
};
