/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "sys/ip.h"

/* Which sockets there are in a network namespace (NETLINK_SOCK_DIAG). */

/* sockdiag_open - a descriptor to ask with, for the namespace of the calling thread, whoever asks later
 *
 * Return: a descriptor that the caller closes; a negative errno.
 */
int sockdiag_open(struct err *err);

/* sockdiag_inode - the socket of one flow, by the number that /proc/PID/fd shows it under ("socket:[1234]")
 * @protocol: IPPROTO_TCP, IPPROTO_UDP
 *
 * Addresses are of one family: that of the packets, also where the socket is one of IPv6 and they are mapped. Return:
 * 0; -ENOENT where there is none (any more), or no process has it; another negative errno.
 */
int sockdiag_inode(int fd, int protocol, const struct ip_prefix *local, uint16_t local_port,
                   const struct ip_prefix *remote, uint16_t remote_port, uint32_t *ret);

/* What a connection has moved so far, as payload. */
struct sockdiag_flow {
        struct ip_prefix remote; /* of full length, IPv4 where it is mapped */
        uint16_t port;
        uint64_t sent_bytes; /* once, however often they were repeated */
        uint64_t received_bytes;
};

/* sockdiag_flows - call @fn for each connection of TCP that is open, as of sockdiag_remotes(). Since Linux 4.19; before
 * that, what was sent is 0. */
int sockdiag_flows(int fd, void (*fn)(const struct sockdiag_flow *flow, void *userdata), void *userdata,
                   struct err *err);

/* sockdiag_remotes - the far ends of all TCP and UDP sockets that have one
 * @fd: from sockdiag_open()
 * @fn: called for each socket, so an address comes as often as it has sockets; addresses are of full length, IPv4 where
 *      an IPv6 socket holds one mapped. A negative return ends the calls and becomes the result
 *
 * A connection counts from its first packet until both ends have closed it, also when no process holds it any more; one
 * that only waits for late packets (TIME-WAIT) does not. UDP sockets count where they are connected.
 * Return: 0; -EOPNOTSUPP, kind unsupported, where this kernel cannot tell; another negative errno.
 */
int sockdiag_remotes(int fd, int (*fn)(const struct ip_prefix *remote, void *userdata), void *userdata,
                     struct err *err);
