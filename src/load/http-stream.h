/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/span.h"
#include "load/http-tls.h"

/* The bytes of a connection. */
struct http_stream {
        int fd;                       /* -1: none */
        struct http_tls_session *tls; /* NULL: they are sent as they are */
};

/* http_stream_secure - let them be sent by TLS from now on. Return: 0 or -ENOMEM. */
int http_stream_secure(struct http_stream *s, struct http_tls *tls);

/* http_stream_read - bytes that came. Return: how many; 0 at the peer's end; -EAGAIN where nothing came yet; another
 * negative errno. */
ssize_t http_stream_read(struct http_stream *s, void *to, size_t size);

/* http_stream_write - hand over a head and what follows it, as far as they are taken; both may be empty, not each
 *
 * Return: how many bytes of the two were taken; -EAGAIN where there is no room; another negative errno.
 */
ssize_t http_stream_write(struct http_stream *s, struct span head, struct span body);

/* http_stream_has_more - whether bytes came that can be read without the descriptor becoming readable */
bool http_stream_has_more(const struct http_stream *s);

/* http_stream_close - close it; accepts one that is closed */
void http_stream_close(struct http_stream *s);
