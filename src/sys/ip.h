/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "sys/link.h"
#include "sys/netlink.h"

/* Addresses, routes and neighbours of IPv4 and IPv6. */

/* An address with the length of its network's prefix (32 or 128: itself alone). */
struct ip_prefix {
        int family; /* AF_INET, AF_INET6 */
        uint8_t bytes[16];
        unsigned length_bits;
};

#define IP_TEXT_MAX (INET6_ADDRSTRLEN + 4)

/* ip_prefix_parse - "10.1.2.3/24", "fd00::1/64"; without "/" the length is that of the address alone
 *
 * Return: 0; -EINVAL where @text is neither.
 */
int ip_prefix_parse(const char *text, struct ip_prefix *ret);

/* ip_prefix_format - as ip_prefix_parse() reads it, always with the length. Return: @buf. */
char *ip_prefix_format(const struct ip_prefix *prefix, char buf[static IP_TEXT_MAX]);

/* ip_prefix_contains - whether @address (its length is not looked at) lies in the network of @prefix */
bool ip_prefix_contains(const struct ip_prefix *prefix, const struct ip_prefix *address);

/* ip_prefix_mask - clear the bits behind the length. Return: whether one was set. */
bool ip_prefix_mask(struct ip_prefix *prefix);

/* ip_prefix_sockaddr - a socket address for the address of @prefix and a port
 *
 * Return: the length to give to bind() or connect().
 */
socklen_t ip_prefix_sockaddr(const struct ip_prefix *prefix, uint16_t port, struct sockaddr_storage *ret);

/* ip_address_add - give link @index an address; its network becomes reachable there
 *
 * There is no duplicate address detection. Return: 0; -EEXIST where it is there already; another negative errno.
 */
int ip_address_add(struct netlink *nl, int index, const struct ip_prefix *address, struct err *err);

/* ip_address_wait - wait until packets to an address that was added are taken in
 *
 * The kernel makes an IPv6 address reachable in the background, after the link is up, and answers until then that there
 * is no such host; one of IPv4 is there at once.
 * Return: 0; -ETIMEDOUT, such as where its link is down; another negative errno.
 */
int ip_address_wait(struct netlink *nl, const struct ip_prefix *address, int64_t timeout_ns, struct err *err);

/* ip_route_add - reach @destination over link @index
 * @gateway: the next hop; NULL where the destination is on the link itself
 * @source:  the address that this host then uses as its own; NULL leaves it to the kernel
 *
 * Return: 0; -EEXIST where the network has a route already; another negative errno.
 */
int ip_route_add(struct netlink *nl, int index, const struct ip_prefix *destination, const struct ip_prefix *gateway,
                 const struct ip_prefix *source, struct err *err);

/* ip_route_add_local - take packets to any address of @destination in, on link @index (usually lo), as if it were an
 * address of this host's; with length 0: to every address there is
 * @source: the address that this host then uses as its own; NULL: each destination's
 *
 * Return: as ip_route_add().
 */
int ip_route_add_local(struct netlink *nl, int index, const struct ip_prefix *destination,
                       const struct ip_prefix *source, struct err *err);

/* ip_port_add_local - take packets to a port in, on link @index (usually lo), whatever their address, as if that were
 * one of this host's; by a rule of routing and a table of its own, whose number is the port
 * @port:   of TCP and UDP alike
 * @source: the address that this host then uses as its own; its family is the one that is taken in
 *
 * Return: as ip_route_add().
 */
int ip_port_add_local(struct netlink *nl, int index, uint16_t port, const struct ip_prefix *source, struct err *err);

/* ip_neighbour_add - tell for good which MAC an address on link @index has, so that nobody asks on the link */
int ip_neighbour_add(struct netlink *nl, int index, const struct ip_prefix *address, const uint8_t mac[LINK_ALEN],
                     struct err *err);

/* Where packets to an address go first. */
struct ip_hop {
        int index;     /* of the link that they leave by */
        bool is_local; /* the address is one of this host's own */
        bool has_mac;  /* the next host's is known */
        uint8_t mac[LINK_ALEN];
};

/* ip_hop_find - look up the route to @destination from @source, and the neighbour that it leads to
 *
 * The kernel finds a neighbour's MAC out only once there is a packet for it. Lengths of the two are not looked at.
 * Return: 0; -ENETUNREACH, -EHOSTUNREACH where there is no route; another negative errno.
 */
int ip_hop_find(struct netlink *nl, const struct ip_prefix *destination, const struct ip_prefix *source,
                struct ip_hop *ret, struct err *err);
