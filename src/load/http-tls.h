/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "load/address.h"
#include "seal/digest.h"

/* TLS for the HTTP instruments, by libssl: no session is resumed, so that every connection has a handshake of its own.
 */

struct http_tls; /* what all connections of one end share */

/* http_tls_new_server - with a key and a certificate made now, for localhost and @address. A client trusts it by its
 * digest, or by taking it for an authority. Return: 0; a negative errno with what libssl says. */
int http_tls_new_server(const union address *address, struct http_tls **ret, struct err *err);

/* http_tls_new_client - that checks what it meets
 * @host: the name or address that the certificate has to be for, and that is asked for (SNI)
 * @authorities: file of certificates to trust, instead of the system's; may be NULL
 * @pin:  SHA-256 of the one certificate that is right, whoever made it and whatever it is for; may be NULL
 */
int http_tls_new_client(const char *host, const char *authorities, const struct digest *pin, struct http_tls **ret,
                        struct err *err);

void http_tls_free(struct http_tls *tls);

DEFINE_CLEANUP(struct http_tls *, http_tls_free)
#define _cleanup_http_tls_ _cleanup_(http_tls_free_cleanup)

/* http_tls_digest - SHA-256 of a server's certificate, as it is sent */
void http_tls_digest(const struct http_tls *tls, struct digest *ret);

/* One connection, over a descriptor that stays the caller's. */
struct http_tls_session;

int http_tls_session_new(struct http_tls *tls, int fd, struct http_tls_session **ret);
void http_tls_session_free(struct http_tls_session *session);

/* http_tls_handshake - go on with it. Return: 0 once it is done; -EAGAIN; -EKEYREJECTED where the certificate is not
 * right; -EPROTO; another negative errno. Reading and writing do it too. */
int http_tls_handshake(struct http_tls_session *session);

/* http_tls_read, http_tls_write - as http_stream_read() and http_stream_write(), of one piece. -EPROTO where what came
 * is not TLS. */
ssize_t http_tls_read(struct http_tls_session *session, void *to, size_t size);
ssize_t http_tls_write(struct http_tls_session *session, struct span data);

/* http_tls_has_more - whether bytes came that can be read without the descriptor becoming readable */
bool http_tls_has_more(const struct http_tls_session *session);
