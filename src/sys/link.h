/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/netlink.h"

/* Network links. A link is named by its index, which is unique within its namespace only. */

#define LINK_ALEN 6

/* One end of a new veth pair. Zero leaves each but the name to the kernel. */
struct link_end {
        const char *name;
        int index;     /* wanted; in the namespace of this end */
        bool is_quiet; /* neither ARP nor multicast: it carries what is sent over it, and nothing of the kernel's own */
        bool has_mac;
        uint8_t mac[LINK_ALEN];
        uint32_t mtu;
        uint32_t n_tx_queues, n_rx_queues;
};

/* link_add_veth - create a pair of connected links, both down
 * @end:         the end in the namespace of @nl
 * @peer:        the other end
 * @peer_netns:  where that one goes; NULL for the namespace of @nl
 *
 * A transmit queue N of one end delivers into receive queue N of the other, so a multi-queue end wants as many receive
 * queues at its peer. Return: 0; -EEXIST where a
 * name is taken, -EBUSY where an index is; another negative errno.
 */
int link_add_veth(struct netlink *nl, const struct link_end *end, const struct link_end *peer,
                  const struct netns *peer_netns, struct err *err);

/* link_add_vlan - create an 802.1Q device on top of link @parent
 *
 * Return: 0; -EOPNOTSUPP, kind unsupported, where the kernel has no 8021q.
 */
int link_add_vlan(struct netlink *nl, int parent, const char *name, uint16_t vlan, struct err *err);

/* link_find - index of the link @name. Return: 0; -ENODEV where there is none; another negative errno. */
int link_find(struct netlink *nl, const char *name, int *ret_index, struct err *err);

/* link_set_up - administratively up or down */
int link_set_up(struct netlink *nl, int index, bool up, struct err *err);

/* link_wait_running - wait until the link carries packets
 *
 * The kernel reports a pair connected at once but attaches its queues a little later, in the background, and drops what
 * is sent before; so wait for both ends before the first packet.
 * Return: 0; -ETIMEDOUT, such as where the other end stays down; another negative errno.
 */
int link_wait_running(struct netlink *nl, int index, int64_t timeout_ns, struct err *err);

/* link_set_up_loopback - bring lo up; a new namespace has it down */
int link_set_up_loopback(struct netlink *nl, struct err *err);

/* link_set_mtu - @mtu counts what follows the 14 bytes of the Ethernet header */
int link_set_mtu(struct netlink *nl, int index, uint32_t mtu, struct err *err);

/* link_set_gso_max_segs - the most segments that a packet handed to the link may stand for; 1 makes every packet of the
 * link a frame as it would be on a wire, so that queues and counters see frames and not bundles of them */
int link_set_gso_max_segs(struct netlink *nl, int index, uint32_t segments, struct err *err);

/* link_delete - remove a link and, of a pair, its peer; also where that is in another namespace */
int link_delete(struct netlink *nl, int index, struct err *err);

/* Counters since the link was made. On a link whose tags are kept beside the packet (veth), bytes do not include the 4
 * of an 802.1Q tag; they do include the 14 of the Ethernet header. */
struct link_counters {
        uint64_t rx_packets, rx_bytes, rx_dropped, rx_errors;
        uint64_t tx_packets, tx_bytes, tx_dropped, tx_errors;
};

struct link_info {
        int index;
        char name[IFNAMSIZ];
        uint8_t mac[LINK_ALEN];
        uint32_t mtu;
        uint32_t n_tx_queues, n_rx_queues;
        bool is_up;      /* administratively */
        bool is_running; /* and carries packets: the other end is up as well, and the queues are attached */
        struct link_counters counters;
};

/* link_read - state and counters of a link. Return: 0; -ENODEV where there is none; another negative errno. */
int link_read(struct netlink *nl, int index, struct link_info *ret, struct err *err);
