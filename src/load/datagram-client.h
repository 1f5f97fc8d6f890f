/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "load/address.h"
#include "load/datagram.h"
#include "sys/sched.h"

/* A client that measures round trips of datagrams: it sends one, waits for its answer, checks it, and sends the next.
 * An echo keeps one socket; a look-up has a socket of its own, as resolvers of programs do, and making it counts. What
 * was lost or wrong is named, and has no duration.
 *
 * Life of a client: as of one of HTTP (load/http-client.h). */

#define DATAGRAM_CLIENT_REQUESTS_MAX 10000000

enum datagram_failure {
        DATAGRAM_FAILURE_NONE,
        DATAGRAM_FAILURE_LOST,   /* no answer in time */
        DATAGRAM_FAILURE_WRONG,  /* an answer with other contents */
        DATAGRAM_FAILURE_SYSTEM, /* sending or receiving failed: the detail is an errno, such as ECONNREFUSED */
};

struct datagram_client_config {
        struct datagram_question question;
        union address peer;
        uint64_t n_warmup, n_requests; /* the first ones are the warm-up */
        int64_t timeout_ns;            /* of one */
        struct sched_request sched;
};

struct datagram_sample {
        int64_t round_trip_ns; /* SAMPLE_MISSING where it failed */
        uint8_t failure;       /* enum datagram_failure */
        int detail;
};

struct datagram_client_counts {
        uint64_t requests; /* done after the warm-up */
        uint64_t completed, failed;
};

struct datagram_client;

/* datagram_client_new - check @config and allocate. Return: 0; -EINVAL with the reason (kind usage), -ENOMEM. */
int datagram_client_new(const struct datagram_client_config *config, struct datagram_client **ret, struct err *err);
void datagram_client_free(struct datagram_client *c);

DEFINE_CLEANUP(struct datagram_client *, datagram_client_free)
#define _cleanup_datagram_client_ _cleanup_(datagram_client_free_cleanup)

/* datagram_client_open - ask for the scheduling. Return: 0 or a negative errno. */
int datagram_client_open(struct datagram_client *c, struct err *err);

/* datagram_client_run - ask all questions, from @start_ns (CLOCK_MONOTONIC) on, until they are answered or *@stop is
 * not 0. Return: 0; that some failed is a result. */
int datagram_client_run(struct datagram_client *c, int64_t start_ns, const volatile int *stop, struct err *err);

/* datagram_client_samples - what is known so far, in order; @ret_warmup of them are warm-up. By another process, too.
 */
const struct datagram_sample *datagram_client_samples(const struct datagram_client *c, size_t *ret_n,
                                                      size_t *ret_warmup);

/* datagram_client_count - the counts, without the warm-up */
void datagram_client_count(const struct datagram_client *c, struct datagram_client_counts *ret);

/* datagram_client_failures_json - the failures after the warm-up as an array of objects: "cause", "count", and "first",
 * the number of the first that failed so. Return: a new reference, or NULL if memory ran out. */
json_t *datagram_client_failures_json(const struct datagram_client *c);

/* datagram_client_notes_json - how it was scheduled. Return: a new reference, or NULL. */
json_t *datagram_client_notes_json(const struct datagram_client *c);
