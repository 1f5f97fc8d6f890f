/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

/* The host in an HTTP authority, a TLS server name, a DNS question and a policy, in one normal form, so that all of
 * them can be compared byte by byte.
 *
 * A name: lower case, no trailing dot, labels of [a-z0-9_-], 1 to 63 octets each and 253 in all. International names
 * arrive as A-labels (xn--...) and stay so; U-labels and percent-encoding are refused, never converted.
 * An address: its octets, however it was written. Whatever ends in a number is an address or nothing, since resolvers
 * read 2130706433, 0x7f.1 and 0177.0.0.1 as addresses too. An IPv4 address mapped into IPv6 is the IPv4 one. */

#define HOST_NAME_TEXT 254 /* 253 octets and the terminator */

enum host_name_kind {
        HOST_NAME_IS_NAME,
        HOST_NAME_IS_V4,
        HOST_NAME_IS_V6,
};

struct host_name {
        enum host_name_kind kind;
        char text[HOST_NAME_TEXT]; /* the normal form, of addresses too: "192.0.2.1", "2001:db8::1" */
        uint8_t address[16];       /* of addresses: the first 4 octets of IPv4, all 16 of IPv6 */
        bool is_plain;             /* no address, or one written in the usual way: four decimal numbers, or IPv6 */
};

/* host_name_parse - a host as RFC 3986 writes it: a name, an IPv4 address, or an IPv6 address in brackets
 *
 * Return: 0; -EINVAL where it is none of these, such as an empty label, two trailing dots, another character, a number
 * that is no address, or an IPv6 address with a zone; -ENAMETOOLONG.
 */
int host_name_parse(struct span text, struct host_name *ret);

/* host_name_parse_bare - as host_name_parse(), but IPv6 stands without brackets, as on command lines and in policies */
int host_name_parse_bare(struct span text, struct host_name *ret);

/* host_name_equal - whether two normal forms are of the same host */
bool host_name_equal(const struct host_name *a, const struct host_name *b);
