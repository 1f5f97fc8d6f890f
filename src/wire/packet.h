/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

/* Whose an IP packet is: what stands in the headers of IPv4 (RFC 791), IPv6 (RFC 8200), TCP and UDP. */

struct packet_flow {
        int family;                          /* AF_INET, AF_INET6 */
        uint8_t source[16], destination[16]; /* of IPv4: the first 4 */
        uint8_t protocol;                    /* of IPv6: that of the first header which is no extension */
        bool has_options;                    /* options of IPv4, extension headers of IPv6 */
        bool is_fragment;
        bool has_ports; /* TCP or UDP, and the packet (or the first of its fragments) shows them */
        uint16_t source_port, destination_port;
        size_t ports_at; /* where the header with the ports begins */
};

/* packet_flow_parse - read the headers of a packet, which may be cut off after them
 *
 * Nothing but the headers is looked at; checksums and lengths are not checked.
 * Return: 0; -EINVAL where these are no headers of IPv4 or IPv6, or they are cut off before the protocol is known.
 */
int packet_flow_parse(struct span packet, struct packet_flow *ret);

/* packet_checksum - of RFC 1071, over the pseudo-header of an address family and @len bytes from the transport's header
 * on
 * @source, @destination: 4 or 16 bytes each
 *
 * In the header its own field has to be 0. Return: what to write there, in the host's byte order.
 */
uint16_t packet_checksum(int family, const uint8_t *source, const uint8_t *destination, uint8_t protocol,
                         const uint8_t *segment, size_t len);

#define PACKET_RESET_BYTES 60 /* at most */

/* packet_reset - the packet that answers a request to open a connection as a host does where nobody listens (RFC 9293,
 * 3.5.2)
 * @syn:    that request, from its IP header on, cut off after its sequence number or later
 * @flow:   packet_flow_parse() of it
 * @ret:    IPv4's checksum and identification are left to who sends it
 *
 * Return: its length; 0 where @syn is no request to open a connection of TCP, or is cut off.
 */
size_t packet_reset(struct span syn, const struct packet_flow *flow, uint8_t ret[static PACKET_RESET_BYTES]);
