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
};

/* packet_flow_parse - read the headers of a packet, which may be cut off after them
 *
 * Nothing but the headers is looked at; checksums and lengths are not checked.
 * Return: 0; -EINVAL where these are no headers of IPv4 or IPv6, or they are cut off before the protocol is known.
 */
int packet_flow_parse(struct span packet, struct packet_flow *ret);
