/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "wire/host-name.h"

/* The ClientHello that begins a TLS connection (RFC 8446, 4.1.2), as far as it tells where the connection is to go: the
 * server's name (RFC 6066), the protocols (RFC 7301), and whether another hello is hidden in it. Nothing else is looked
 * at, and nothing is decrypted. */

#define TLS_HELLO_MAX      ((size_t)64 * 1024) /* of a hello, with the headers of its records */
#define TLS_HELLO_ALPN_MAX 256

/* Why octets are not taken for a ClientHello. */
enum tls_hello_fault {
        TLS_HELLO_FAULT_NONE,
        TLS_HELLO_FAULT_INCOMPLETE, /* no fault so far: more octets are needed */
        TLS_HELLO_FAULT_RECORD,     /* no record of TLS's handshake: another protocol, SSL 2, an empty record */
        TLS_HELLO_FAULT_TYPE,       /* a handshake message other than ClientHello */
        TLS_HELLO_FAULT_LENGTH,     /* over TLS_HELLO_MAX, or parts that do not fill the whole */
        TLS_HELLO_FAULT_TWICE,      /* an extension twice */
        TLS_HELLO_FAULT_NAME,       /* a server name that is none: several, an address, octets that no host name has */
        TLS_HELLO_FAULT_ALPN,       /* a malformed or over-long list of protocols */
        N_TLS_HELLO_FAULTS,
};

/* tls_hello_fault_name - stable lower-case name, such as "record" */
const char *tls_hello_fault_name(enum tls_hello_fault fault);

struct tls_hello {
        bool has_name;
        struct host_name name; /* in its normal form; always a name, never an address */

        /* An Encrypted ClientHello (RFC 9849, and the drafts before it) or something that looks like one: browsers send
         * random octets in its place. Where it is real, @name is not where the connection goes. */
        bool has_encrypted_hello;

        uint8_t alpn[TLS_HELLO_ALPN_MAX]; /* the offered protocols, each after an octet of length */
        size_t alpn_len;
};

/* tls_hello_parse - read the first octets of a connection
 * @stream: all that has arrived so far; may be cut anywhere, and go on after the hello
 * @ret:    empty unless there is no fault
 */
enum tls_hello_fault tls_hello_parse(struct span stream, struct tls_hello *ret);

/* tls_hello_offers - whether @protocol, such as "h2", is among those offered */
bool tls_hello_offers(const struct tls_hello *hello, const char *protocol);
