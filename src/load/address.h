/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "sys/ip.h"

/* An address with port; the length follows from the family. */
union address {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
};

/* address_parse - read "192.0.2.1", "192.0.2.1:862", "2001:db8::1", "[2001:db8::1]:862", "fe80::1%eth0"
 * @port: where the text has none; a port of 0 is let through, for the kernel to choose
 *
 * Return: 0; -EINVAL with the reason (kind usage).
 */
int address_parse(const char *text, uint16_t port, union address *ret, struct err *err);

/* address_resolve - as address_parse(), or a name that is looked up
 * @family: AF_UNSPEC, or the only family to take
 */
int address_resolve(const char *text, uint16_t port, int family, union address *ret, struct err *err);

#define ADDRESS_TEXT 80

/* address_format - "192.0.2.1:862", "[2001:db8::1]:862". Return: @buf. */
char *address_format(const union address *address, char buf[static ADDRESS_TEXT]);

/* What the socket calls want to know of an address, and its port in the order of this host. */
socklen_t address_len(const union address *address);
uint16_t address_port(const union address *address);
void address_set_port(union address *address, uint16_t port);

/* address_is_unspecified - 0.0.0.0 or :: */
bool address_is_unspecified(const union address *address);

/* address_is_unicast - an IPv4 or IPv6 address to which packets may be sent as to one host: not unspecified,
 * multicast or the limited broadcast address */
bool address_is_unicast(const union address *address);

/* address_equal - whether address, port and (of IPv6) scope are the same */
bool address_equal(const union address *a, const union address *b);

/* address_prefix - without the port, as what sys/ip.h works with; its length is that of the address alone */
void address_prefix(const union address *address, struct ip_prefix *ret);
