/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/ip.h"
#include "sys/netns.h"

/* Slices told apart by nftables, for where BPF may not be loaded (root of a user namespace): what leaves the namespace
 * gets the HTB class of the network that it belongs to. There are no tags then, and no choice of a transmit queue. */

struct classifier_rule {
        struct ip_prefix network; /* source and destination lie in it */
        uint32_t classid;         /* QDISC_HANDLE(); becomes skb->priority */
};

struct classifier_count {
        uint64_t packets;
        uint64_t bytes; /* of IP packets: nftables does not see the Ethernet header */
};

/* classifier_add - classify what leaves @ns, whether forwarded or sent by itself, and drop what belongs to no rule's
 * network; loopback is left alone
 *
 * To be called once for a namespace. Return: 0; -EOPNOTSUPP, kind unsupported, where nftables refuses.
 */
int classifier_add(const struct netns *ns, const struct classifier_rule *rules, size_t n, struct err *err);

/* classifier_read - what each rule has classified since classifier_add(), in their order
 * @ret: @n counts, @n as given to classifier_add()
 */
int classifier_read(const struct netns *ns, struct classifier_count *ret, size_t n, struct err *err);

/* classifier_sink_add - count and drop what enters @ns for a UDP port, before any socket, network by network; what
 * belongs to none of them passes. To be called once for a port. Return: as classifier_add(). */
int classifier_sink_add(const struct netns *ns, uint16_t port, const struct ip_prefix *networks, size_t n,
                        struct err *err);

/* classifier_sink_read - what a sink has counted, in the order of its networks. Return: as classifier_read(). */
int classifier_sink_read(const struct netns *ns, uint16_t port, struct classifier_count *ret, size_t n,
                         struct err *err);
