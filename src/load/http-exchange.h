/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "load/address.h"
#include "load/http-stream.h"

/* One request and its response, timed. */

/* Why a request failed. */
enum http_failure {
        HTTP_FAILURE_NONE,
        HTTP_FAILURE_CONNECT, /* detail: errno */
        HTTP_FAILURE_TLS,     /* no handshake; detail: errno, EKEYREJECTED for the certificate */
        HTTP_FAILURE_SEND,    /* detail: errno */
        HTTP_FAILURE_RECEIVE, /* detail: errno */
        HTTP_FAILURE_ENDED,   /* the connection, before all of the response had come */
        HTTP_FAILURE_TIMEOUT,
        HTTP_FAILURE_STOPPED,  /* by who runs the client */
        HTTP_FAILURE_RESPONSE, /* is no response; detail: enum http1_fault */
        HTTP_FAILURE_STATUS,   /* is another one than 200; detail: status */
        HTTP_FAILURE_TOO_LONG, /* the body is longer than there is room for */
        HTTP_FAILURE_EXTRA,    /* octets after the response */
        HTTP_FAILURE_LENGTH,   /* the body has another length than expected */
        HTTP_FAILURE_DIGEST,   /* the body has another digest than expected */
};

#define HTTP_FAILURE_TEXT 96

/* http_failure_format - what a person should read: "connect: Connection refused", "status 403". Return: @buf. */
char *http_failure_format(enum http_failure failure, int detail, char buf[static HTTP_FAILURE_TEXT]);

/* What an exchange needs, and leaves for the next one. */
struct http_exchange {
        const union address *peer;
        struct http_tls *tls; /* NULL: plain */
        struct span request;  /* octets to send */
        bool is_kept;         /* use the connection again */
        bool is_head;         /* the response has no body */
        int64_t timeout_ns;
        const volatile int *stop; /* may be NULL */
        uint8_t *buffer;          /* for head and body of a response */
        size_t buffer_size;
        struct http_stream stream; /* open where it can be used again */
};

/* What came of one. Durations count from the moment before the connection was made, or, where one is used again, before
 * the request was sent; SAMPLE_MISSING where there is none. */
struct http_outcome {
        enum http_failure failure;
        int detail;
        int64_t start_ns;      /* CLOCK_MONOTONIC */
        int64_t connect_ns;    /* until the connection stood, with TLS after its handshake */
        int64_t first_byte_ns; /* until the first octet of the body had been read */
        int64_t request_ns;    /* until the last one had been */
        struct span body;      /* in the buffer */
};

/* http_exchange_run - send a request, and read its response to the end
 *
 * A connection that is used again and that the peer has closed meanwhile is made anew, once. One that cannot be used
 * again is closed after the response, which is not timed.
 */
void http_exchange_run(struct http_exchange *x, struct http_outcome *ret);

/* http_exchange_end - close the connection, if one is open */
void http_exchange_end(struct http_exchange *x);
