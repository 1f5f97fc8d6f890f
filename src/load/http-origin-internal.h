/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdatomic.h>

#include "base/span.h"
#include "load/http-origin.h"
#include "load/http-stream.h"

/* One connection of an origin, and what it has of the origin. */

#define HTTP_REPLY_HEAD_MAX 16384 /* of a request's head; a longer one is refused */

struct http_reply_totals {
        atomic_ullong connections, turned_away, requests, refused, lost, body_bytes;
};

/* What all connections of an origin serve. */
struct http_reply_source {
        const struct http_origin_config *config;
        const uint8_t *body;
        struct http_tls *tls; /* NULL: plain */
        struct http_reply_totals *totals;
};

enum http_reply_state {
        HTTP_REPLY_READING, /* wants bytes of a request */
        HTTP_REPLY_WRITING, /* wants room */
        HTTP_REPLY_WAITING, /* until @due_ns */
        HTTP_REPLY_ENDED,   /* to be closed */
};

struct http_reply {
        struct http_stream stream;
        const struct http_reply_source *source;
        struct span head, body; /* what is left to hand over */
        uint64_t event;         /* number of the next one */
        int64_t asked_ns, due_ns;
        bool is_stream, is_chunked, is_kept, is_refusal;
        size_t in_len;
        uint8_t *chunk; /* of the event that is on its way */
        char head_text[256];
        uint8_t in[HTTP_REPLY_HEAD_MAX];
};

/* http_reply_start - a connection that was accepted; @fd is taken. Return: 0 or -ENOMEM; then http_reply_done() is to
 * be called all the same. */
int http_reply_start(struct http_reply *reply, const struct http_reply_source *source, int fd);

/* http_reply_go - do what can be done: read, answer, go on with the next request. To be called when the descriptor is
 * ready for what the state wants, or when it is due. Return: the state, which is never READING with room left. */
enum http_reply_state http_reply_go(struct http_reply *reply, enum http_reply_state state, int64_t now_ns);

/* http_reply_done - close it */
void http_reply_done(struct http_reply *reply);
