/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/* Ethernet frames with an IEEE 802.1Q tag: twelve octets of addresses, then the tag of four, then the EtherType. */

#define VLAN_ETHER_TYPE  0x8100
#define VLAN_ETHER_LEN   14 /* an untagged header */
#define VLAN_TAG_LEN     4
#define VLAN_ID_MAX      4094   /* 4095 is reserved; 0 means priority only */
#define VLAN_SERVICE_TAG 0x88a8 /* 802.1ad, the outer of two tags */

struct vlan_tag {
        uint8_t priority; /* PCP, 0 to 7 */
        bool is_drop_eligible;
        uint16_t id; /* 0 to 4095 */
};

struct vlan_frame {
        uint8_t n_tags;               /* 0, 1, or 2 with an outer service tag or a second 802.1Q tag */
        struct vlan_tag outer, inner; /* with one tag, the outer */
        uint16_t ether_type;          /* after the tags */
        struct span payload;
};

/* vlan_parse - read the header of a frame as it stands on the wire
 *
 * Return: 0; -EBADMSG where the frame ends in its header, or has more than two tags.
 */
int vlan_parse(struct span frame, struct vlan_frame *ret);

/* vlan_tci - the 16 bits of a tag: priority, drop eligible, id; out-of-range members are cut to their width */
uint16_t vlan_tci(const struct vlan_tag *tag);

/* vlan_tag_of_tci - the reverse of vlan_tci(), as packet sockets report a tag that the kernel took off */
struct vlan_tag vlan_tag_of_tci(uint16_t tci);

/* vlan_push - insert a tag, outermost, after the addresses
 * @frame: a frame of *@len octets in a buffer of @size
 *
 * Return: 0 with *@len grown by 4; -EBADMSG for a frame without a whole header; -ENOSPC where the buffer is too small.
 */
int vlan_push(uint8_t *frame, size_t *len, size_t size, const struct vlan_tag *tag);
