/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "load/address.h"
#include "load/http-exchange.h"
#include "seal/digest.h"
#include "sys/sched.h"

/* An HTTP/1.1 client that measures: threads that send one request after the other, each on a connection of its own or
 * on one that is kept, and check every body. Of each request it is known when the connection stood, when the first
 * octet of the body and when the last one had been read. What failed is named, and has no duration.
 *
 * Life of a client: http_client_new() makes memory that children forked later share; http_client_open() and
 * http_client_run() belong to one process. */

#define HTTP_CLIENT_THREADS_MAX  1024
#define HTTP_CLIENT_REQUESTS_MAX 10000000
#define HTTP_CLIENT_TARGET_MAX   4096

/* Where a request goes, of a text such as "http://192.0.2.1:8080/events". */
struct http_url {
        bool is_secure;      /* https */
        char authority[256]; /* as in the Host field */
        char target[HTTP_CLIENT_TARGET_MAX];
};

/* http_url_parse - take a URL apart. Return: 0; -EINVAL with the reason (kind usage). */
int http_url_parse(const char *text, struct http_url *ret, struct err *err);

struct http_client_config {
        struct http_url url;
        union address peer; /* where to connect to: the URL's host, or a proxy */
        bool is_proxied;    /* the target is sent in absolute form, as proxies want it */
        bool is_kept;       /* requests of a thread share a connection */
        unsigned threads;
        uint64_t n_warmup, n_requests; /* of all threads together; the first ones are the warm-up */
        int64_t timeout_ns;            /* of a request */
        size_t body_max;               /* a longer body is a failure */
        bool has_length, has_digest;   /* what the body has to be; without a digest all have to be like the first */
        uint64_t length;
        struct digest digest;
        const char *authorities; /* of HTTPS: file of certificates to trust, instead of the system's; may be NULL */
        bool has_pin;            /* of HTTPS: trust the one certificate of this digest, and no other */
        struct digest pin;
        struct sched_request sched; /* of each thread */
};

/* What became of one request; SAMPLE_MISSING where there is no such time. */
struct http_sample {
        int64_t connect_ns, first_byte_ns, request_ns;
        int64_t start_ns; /* CLOCK_MONOTONIC; 0: not begun */
        uint64_t body_bytes;
        uint16_t thread;
        uint8_t failure; /* enum http_failure */
        uint8_t is_done; /* set last, atomically */
        int detail;
};

struct http_client_counts {
        uint64_t requests; /* begun after the warm-up */
        uint64_t completed, failed;
        uint64_t connections;     /* that the completed ones made */
        uint64_t body_bytes;      /* of the completed ones */
        uint64_t throughput_bps;  /* bits of body a second while a request was under way, added up over the threads */
        uint64_t requests_per_ks; /* completed requests in a thousand seconds, from the first's start to the last's end
                                   */
};

struct http_client;

/* http_client_new - check @config and allocate. Return: 0; -EINVAL with the reason (kind usage), -ENOMEM. */
int http_client_new(const struct http_client_config *config, struct http_client **ret, struct err *err);
void http_client_free(struct http_client *c);

DEFINE_CLEANUP(struct http_client *, http_client_free)
#define _cleanup_http_client_ _cleanup_(http_client_free_cleanup)

/* http_client_open - make what each thread needs, and ask for the scheduling. Return: 0 or a negative errno. */
int http_client_open(struct http_client *c, struct err *err);

/* http_client_run - send all requests, from @start_ns (CLOCK_MONOTONIC) on, until they are answered or *@stop is not 0
 *
 * Starts threads, and ends them. Return: 0; a negative errno with the reason where they cannot be started. That
 * requests failed is a result.
 */
int http_client_run(struct http_client *c, int64_t start_ns, const volatile int *stop, struct err *err);

/* http_client_samples - what is known so far, in the order in which the requests were begun; @ret_warmup of them are
 * warm-up. May be called by another process at any time; then a sample counts once its is_done is set. */
const struct http_sample *http_client_samples(const struct http_client *c, size_t *ret_n, size_t *ret_warmup);

/* http_client_count - the counts, without the warm-up */
void http_client_count(const struct http_client *c, struct http_client_counts *ret);

/* http_client_digest - that of the first body, or of what was expected. Return: false where there was none. */
bool http_client_digest(const struct http_client *c, struct digest *ret);

/* http_client_failures_json - the failures after the warm-up as an array of objects: "cause", "count", and "first", the
 * number of the first request that failed so. Return: a new reference, or NULL if memory ran out. */
json_t *http_client_failures_json(const struct http_client *c);

/* http_client_counts_json, http_client_notes_json - as an object. Return: a new reference, or NULL. */
json_t *http_client_counts_json(const struct http_client *c);
json_t *http_client_notes_json(const struct http_client *c);
