/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/text.h"
#include "sandbox/pins.h"
#include "sandbox/policy.h"
#include "sys/nft.h"

/* Rules in nftables' language for the packets of a command: which pass, told by protocol, address and port alone,
 * without connections being tracked. The inner side, in the command's own network namespace N, refuses at once and
 * reports. The outer side, on the host's end of a wall's link, holds the same sets and checks again what the inner one
 * let through. What costs each packet of a large transfer is done once: TCP's segments but for those that open a
 * connection or reset one are looked up by the outer side alone, and only where they leave, since the kernel takes none
 * that belongs to no connection, and sends none.
 *
 * A set holds what the policy allows whatever the name ("range"), and, with a time, what an allowed name resolved to:
 * on one port ("pin"), on every port ("pin-any"), on a range of ports ("pin-range"). Their names end in 4 or 6. Text is
 * added to a struct text, whose @failed tells of missing memory. */

#define RULES_LOG_GROUP 1 /* of the inner side, for what is refused */
#define RULES_LOG_BYTES                                                                                                \
        96 /* of each packet: as many as name its target, with the longest headers that are not refused */
/* On N's loopback, where a proxy is: what programs take for their own address. */
#define RULES_OWN_V4 "198.19.255.1"
#define RULES_OWN_V6 "fd5a:a57a:ffff::1"

#define RULES_LINK "assay-wall" /* how the links on the host begin */

#define RULES_DNS_PORT     53
#define RULES_DNS_TLS_PORT 853 /* names are not asked where we cannot see them */

/* What the rules are made from. */
struct rules {
        const struct policy_range *ranges; /* policy_ranges() */
        size_t n_ranges;
        bool has_names;    /* some rule is for a name, so that addresses will be pinned */
        bool has_resolver; /* names are asked in this namespace: see names_open() and names_route() */
        struct policy_limits total;
        uint16_t proxy_port; /* 0: packets leave by a link. Else they are for a transparent listener at this port of N,
                              * which decides what is pending, and N's own addresses are RULES_OWN_V4 and _V6 */
        struct port_set localhost; /* ports of 127.0.0.1 that are for that listener, too */
        bool holds; /* who opens a connection that is refused is not told by the rules but left to wait, for who reads
                     * the reports to look at the socket and answer with a reset; not more than 200 a second */
        const char *link;                  /* its name on the host */
        const char *own_v4, *own_v6;       /* the addresses of its other end: of whatever leaves N */
        bool masquerades;                  /* some of it lies beyond the host, which then lends its own address */
        bool hands_over_v4, hands_over_v6; /* answers from beyond, too, which this host would not forward by itself */
};

/* rules_inner - the table "inet assay" for the command's namespace */
void rules_inner(const struct rules *rules, struct text *out);

/* rules_outer - the table "netdev NAME", named as the link is, for the host's namespace. It goes with the connection
 * that made it. */
void rules_outer(const struct rules *rules, struct text *out);

/* rules_forward - the table "inet NAME" for a host that forwards what comes from the link. As rules_outer(). */
void rules_forward(const struct rules *rules, struct text *out);

/* rules_can_hand_over - whether the kernel can do what @hands_over_v4 or _v6 asks for
 * @family: AF_INET or AF_INET6
 *
 * To be called in the host's namespace, in which nothing is changed. Return: also false without the right to ask.
 */
bool rules_can_hand_over(int family);

/* rules_expose - let TCP and UDP to a port of an address through, or no longer
 * @table: "inet assay", or "netdev NAME"
 */
int rules_expose(struct nft *nft, const char *table, const struct ip_prefix *address, uint16_t port, bool is_open,
                 struct err *err);

/* rules_expose_localhost - turn TCP and UDP to a port of 127.0.0.1 to the proxy, or no longer */
int rules_expose_localhost(struct nft *nft, uint16_t port, bool is_open, struct err *err);

/* rules_open_ways - let out what this host has a way to. What is allowed besides is refused from the start, so that
 * programs turn to another address of a name at once and not when nothing has come back.
 * @nft:         of the command's namespace, where rules_inner() are; to be called in the host's
 * @forwards_v6: the host's ways over IPv6 are the command's; else it has those to the host itself
 *
 * A family that this host has no address of leads nowhere, unless it has none of the other either. For IPv4 that counts
 * with a proxy only: a link is not made without forwarding. Return: 0; 1 where only ways to the host itself are open
 * over IPv6, which this host has addresses of; a negative errno.
 */
int rules_open_ways(struct nft *nft, bool forwards_v6, struct err *err);

/* rules_has_names - whether @policy allows something by name, so that addresses will be pinned */
bool rules_has_names(const struct policy *policy);

/* rules_admit - let the addresses of names in, until their time, on the ports where @policy opens them
 * @table:        "inet assay", or "netdev NAME"
 * @with_pending: also on those where it depends on what a flow says of itself
 *
 * An address that is there already gets the new time. Return: 0 or a negative errno.
 */
int rules_admit(struct nft *nft, const char *table, const struct policy *policy, bool with_pending,
                const struct pin *pins, size_t n, struct err *err);
