/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the program that keeps slices apart on a link (bpf/slice.bpf.c) shares with who loads it (sys/slice.c). Fixed
 * layout, addresses in network byte order. */

#include <linux/types.h>

#define SLICE_MAX 32

struct slice_prefix4 {
        __be32 address, mask;
};

struct slice_prefix6 {
        __be32 address[4], mask[4];
};

/* A slice on a link, as seen in one direction: an IP packet belongs to it if source and destination lie in these
 * prefixes. Addresses are given with what the mask clears cleared. */
struct slice_rule {
        struct slice_prefix6 source6, destination6;
        struct slice_prefix4 source4, destination4;
        __u32 classid;       /* leaving: the HTB class, as skb->priority; 0 leaves that as it is */
        __u16 vlan;          /* 1 to 4094 */
        __u16 queue;         /* leaving: the transmit queue, 1 is the first; 0 leaves the choice to the kernel */
        __u8 has_v4, has_v6; /* whether the slice carries the family at all */
        __u8 padding[2];
};

struct slice_config {
        __u32 n_leaving, n_entering;
        __u32 keeps_tags; /* 8021q devices above the link put tags on and take them off; here they are only checked */
        struct slice_rule leaving[SLICE_MAX];
        struct slice_rule entering[SLICE_MAX];
};

/* Bytes are those of layer 2: Ethernet header, tag, packet. */
struct slice_count {
        __u64 packets, bytes;
};

/* Why a frame was dropped. */
enum slice_drop {
        SLICE_DROP_NO_SLICE,    /* leaving: no slice has these addresses, or the packet's mark or tag */
        SLICE_DROP_NOT_IP,      /* leaving or entering: neither IPv4 nor IPv6, or cut short */
        SLICE_DROP_PUSH,        /* leaving: the kernel could not add the tag */
        SLICE_DROP_UNTAGGED,    /* entering: no tag, or priority tag only */
        SLICE_DROP_UNKNOWN_TAG, /* entering: a tag that is none of this link's slices, or no 802.1Q tag */
        SLICE_DROP_DOUBLE_TAG,  /* entering: another tag behind the first */
        SLICE_DROP_ADDRESS,     /* entering: an address that is not one of the tag's slice */
        SLICE_DROP_POP,         /* entering: the kernel could not remove the tag */
        SLICE_DROP_MAX,
};

/* Keys of the map `slices`: rule I of `leaving` counts in I, rule I of `entering` in SLICE_MAX + I. */
#define SLICE_COUNTS (2 * SLICE_MAX)
