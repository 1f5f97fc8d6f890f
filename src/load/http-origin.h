/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "load/address.h"
#include "load/http-body.h"
#include "sys/sched.h"

/* An HTTP/1.1 origin that is to be measured against, not to be measured itself: it answers GET and HEAD for "/", a body
 * of one length, and "/events", server-sent events in chunks, one a chunk. Connections are kept where the client keeps
 * them. What else is asked is refused with the status that says why.
 *
 * Life of an origin: http_origin_new() makes the counters shared with children forked later; http_origin_open() and
 * http_origin_run() belong to one process. */

#define HTTP_ORIGIN_THREADS_MAX 64

struct http_origin_config {
        union address local;        /* the unspecified address listens on all; port 0 lets the kernel choose */
        size_t body_bytes;          /* of "/": at most HTTP_BODY_BYTES_MAX */
        size_t write_bytes;         /* of it are handed to the kernel at once; 0: all that is left */
        uint64_t events;            /* of "/events": at most HTTP_EVENTS_MAX */
        size_t event_bytes;         /* of each: HTTP_EVENT_BYTES_MIN to HTTP_EVENT_BYTES_MAX */
        int64_t every_ns;           /* event i is due at the request + i * every_ns; the first comes with the head */
        unsigned threads;           /* 1 to HTTP_ORIGIN_THREADS_MAX */
        bool is_secure;             /* HTTPS, with a certificate made by http_origin_open() */
        struct sched_request sched; /* of each thread */
};

struct http_origin_counts {
        uint64_t connections; /* taken */
        uint64_t turned_away; /* closed at once, for there were too many */
        uint64_t requests;    /* answered to the end with 200 */
        uint64_t refused;     /* answered with another status */
        uint64_t lost;        /* of which the peer did not take all of the answer */
        uint64_t body_bytes;  /* of whole and lost answers, without what carries them */
};

struct http_origin;

/* http_origin_new - check @config and allocate. Return: 0; -EINVAL with the reason (kind usage), -ENOMEM. */
int http_origin_new(const struct http_origin_config *config, struct http_origin **ret, struct err *err);
void http_origin_free(struct http_origin *o);

DEFINE_CLEANUP(struct http_origin *, http_origin_free)
#define _cleanup_http_origin_ _cleanup_(http_origin_free_cleanup)

/* http_origin_open - listen, in the caller's network namespace; from now on connections are queued. Return: 0 or a
 * negative errno with the reason. */
int http_origin_open(struct http_origin *o, struct err *err);

/* http_origin_run - answer until *@stop becomes non-zero, which is looked at every 100 ms. Starts threads.
 *
 * Return: 0, or a negative errno with the reason where the kernel fails.
 */
int http_origin_run(struct http_origin *o, const volatile int *stop, struct err *err);

/* http_origin_address - where it listens, port included; after http_origin_open() */
const union address *http_origin_address(const struct http_origin *o);

/* http_origin_certificate - the digest of its certificate; after http_origin_open(), where it is secure */
const struct digest *http_origin_certificate(const struct http_origin *o);

/* http_origin_counts - what happened so far; may be called by another process at any time */
void http_origin_counts(const struct http_origin *o, struct http_origin_counts *ret);

/* http_origin_counts_json, http_origin_notes_json - the counts, and how it ran, as an object. Return: a new reference,
 * or NULL if memory ran out. */
json_t *http_origin_counts_json(const struct http_origin *o);
json_t *http_origin_notes_json(const struct http_origin *o);
