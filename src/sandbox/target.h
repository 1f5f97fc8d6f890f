/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/ip.h"
#include "wire/host-name.h"

/* What a program asks of the network: one destination, as far as it is known at the time of asking. */

enum transport { TRANSPORT_TCP, TRANSPORT_UDP, N_TRANSPORTS };

extern const char *const transport_names[N_TRANSPORTS + 1]; /* "tcp", "udp"; ended by NULL */

struct target {
        enum transport transport;
        uint16_t port;
        struct ip_prefix address; /* of full length; family 0: not known */
        const char *name;         /* in normal form (wire/host-name.h), borrowed; NULL: none is known */

        /* What the flow says of itself, in normal form, borrowed. NULL: it has not been looked at. "": it has, and
         * there is none, such as the server name of what is not TLS. */
        const char *sni, *http_host;
};

/* target_address_normalise - the address that is meant: one of IPv4 mapped into IPv6 (::ffff:0:0/96) is that of IPv4 */
void target_address_normalise(struct ip_prefix *address);

/* target_address_is_own - whether an address that is normalised is loopback's, or the one of all zeros, which means it,
 * too */
bool target_address_is_own(const struct ip_prefix *address);

/* target_address_of - the address of a parsed host; family 0 where it is a name */
struct ip_prefix target_address_of(const struct host_name *host);

/* target_parse - read a destination as a person writes it: "HOST:PORT" (tcp), "tcp://HOST:PORT", "udp://HOST:PORT",
 * "http://HOST[:PORT]/...", "https://HOST[:PORT]/..."; IPv6 in brackets
 * @host:  where the host is kept, to which @ret->name points
 *
 * Of http and https it is known what the flow will say of itself. Return: 0; -EINVAL with the reason (kind usage).
 */
int target_parse(const char *text, struct host_name *host, struct target *ret, struct err *err);

#define TARGET_TEXT (HOST_NAME_TEXT + 64)

/* target_format - "tcp example.org:443", "udp [2001:db8::1]:53"; the name where there is one. Return: @buf. */
char *target_format(const struct target *target, char buf[static TARGET_TEXT]);
