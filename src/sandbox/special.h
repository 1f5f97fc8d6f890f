/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sys/ip.h"

/* Addresses that are not of the public network: those of the registries of special-purpose addresses (RFC 6890 and what
 * was added to them), multicast, and the well-known ones at which clouds hand out credentials. A name that resolves to
 * one of them is how a server is made to talk to what only it can reach.
 *
 * Ranges for documentation (RFC 5737, RFC 3849, RFC 9637) are not here: nothing is there to be reached. */

enum special_kind {
        SPECIAL_LOOPBACK,   /* the host itself, "this network" and the unspecified address among them */
        SPECIAL_PRIVATE,    /* of a site, an operator or a laboratory */
        SPECIAL_LINK_LOCAL, /* of one link */
        SPECIAL_METADATA,   /* a service that tells a virtual machine its secrets */
        SPECIAL_MULTICAST,  /* not one host; broadcast among them */
        SPECIAL_TUNNEL,     /* holds another address, at which a gateway would deliver */
        SPECIAL_RESERVED,   /* for protocols, or for nobody yet */
};

/* special_kind_text - for people: "a private address" */
const char *special_kind_text(enum special_kind kind);

struct special {
        struct ip_prefix prefix; /* the narrowest that is listed */
        enum special_kind kind;
        const char *name; /* "10.0.0.0/8 (RFC 1918)" */
};

/* special_find - what @address (of full length, normal form) is besides an ordinary one
 *
 * One of IPv4 behind a translator's well-known prefix (64:ff9b::/96, RFC 6052) is what its IPv4 address is.
 * Return: whether it is special; only then @ret is set.
 */
bool special_find(const struct ip_prefix *address, struct special *ret);

/* special_embedded - the address of IPv4 that a translator delivers to for @address; false where it is no such one */
bool special_embedded(const struct ip_prefix *address, struct ip_prefix *ret);

/* special_translated - what a range of IPv4 is behind the translator's prefix */
struct ip_prefix special_translated(const struct ip_prefix *prefix);

/* special_at - the entries of the table, in no order, for who needs them all; NULL after the last */
const struct special *special_at(size_t i);
