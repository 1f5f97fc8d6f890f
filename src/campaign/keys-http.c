/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "campaign/cpu.h"
#include "campaign/kind-http.h"
#include "campaign/quantiles.h"
#include "load/http-client.h"
#include "load/http-origin.h"

/* Of a small request and of a byte, on a slow host: an estimate only. */
#define REQUEST_GUESS_NS (500 * NSEC_PER_USEC)
#define BYTE_GUESS_NS    2

#define FIELD(name) offsetof(struct http_keys, name)

static const char *const connections[] = {"fresh", "keep-alive", NULL};

static const struct key keys[] = {
        {.name = "threads",
         .type = KEY_QUANTITY,
         .offset = FIELD(threads),
         .fallback = "8",
         .unit = UNIT_COUNT,
         .min = 1,
         .max = HTTP_CLIENT_THREADS_MAX,
         .help = "How many of the client send at the same time, each one request after the other."},
        {.name = "requests",
         .type = KEY_QUANTITY,
         .offset = FIELD(requests),
         .fallback = "256",
         .unit = UNIT_COUNT,
         .min = 1,
         .max = 100000,
         .help = "How many requests are measured, of all threads together."},
        {.name = "warmup",
         .type = KEY_QUANTITY,
         .offset = FIELD(warmup),
         .fallback = "16",
         .unit = UNIT_COUNT,
         .max = 100000,
         .help = "How many more come before them; they are stored and left out of every number."},
        {.name = "connection",
         .type = KEY_CHOICE,
         .offset = FIELD(connection),
         .fallback = "fresh",
         .choices = connections,
         .help = "One connection for each request, or one for each thread."},
        {.name = "tls",
         .type = KEY_BOOL,
         .offset = FIELD(tls),
         .fallback = "false",
         .help = "HTTPS, with a certificate made for the trial, and a whole handshake for each connection."},
        {.name = "body",
         .type = KEY_QUANTITY,
         .offset = FIELD(body_bytes),
         .fallback = "1KiB",
         .unit = UNIT_BYTES,
         .max = HTTP_BODY_BYTES_MAX,
         .help = "Length of the body."},
        {.name = "write",
         .type = KEY_QUANTITY,
         .offset = FIELD(write_bytes),
         .fallback = "0",
         .unit = UNIT_BYTES,
         .max = HTTP_BODY_BYTES_MAX,
         .help = "How much of it the origin hands to the kernel at once; 0 is all of it."},
        {.name = "events",
         .type = KEY_QUANTITY,
         .offset = FIELD(events),
         .fallback = "0",
         .unit = UNIT_COUNT,
         .max = 10000,
         .help = "Over 0: instead of the body a stream of so many server-sent events, in chunks."},
        {.name = "event",
         .type = KEY_QUANTITY,
         .offset = FIELD(event_bytes),
         .fallback = "13B",
         .unit = UNIT_BYTES,
         .min = HTTP_EVENT_BYTES_MIN,
         .max = HTTP_EVENT_BYTES_MAX,
         .help = "Length of an event."},
        {.name = "every",
         .type = KEY_QUANTITY,
         .offset = FIELD(every_ns),
         .fallback = "2ms",
         .unit = UNIT_DURATION,
         .max = INT64_C(60000000000),
         .help = "Time between two events; the first comes with the head."},
        {.name = "timeout",
         .type = KEY_QUANTITY,
         .offset = FIELD(timeout_ns),
         .fallback = "5s",
         .unit = UNIT_DURATION,
         .min = 1000000,
         .max = INT64_C(60000000000),
         .help = "When a request has failed."},
        {.name = "cpu",
         .type = KEY_QUANTITY,
         .offset = FIELD(cpu),
         .fallback = "0",
         .unit = UNIT_COUNT,
         .max = 1023,
         .help = "Processor that all threads of the client are pinned to."},
        {.name = "origin-cpu",
         .type = KEY_QUANTITY,
         .offset = FIELD(origin_cpu),
         .fallback = "1",
         .unit = UNIT_COUNT,
         .max = 1023,
         .help = "Processor that the origin is pinned to."},
        {},
};

const struct key_table http_table = {
        .name = "http",
        .help = "An HTTP/1.1 client inside the boundary, and an origin outside; every body is checked.",
        .size = sizeof(struct http_keys),
        .has_kind = true,
        .keys = keys,
};

const struct metric http_metrics[] = {
        QUANTILES("request"),
        QUANTILES("connect"),
        QUANTILES("first_byte"),
        {.name = "throughput", .unit = METRIC_BPS, .source = METRIC_NUMBER, .series = "throughput_bps"},
        {.name = "failed", .unit = METRIC_COUNT, .source = METRIC_COUNTER, .series = "failed"},
        {},
};

int http_size(const struct node *map, struct workload_size *ret, struct err *err)
{
        struct http_keys k = {0};
        int r = key_table_read(&http_table, map, "workload", &k, err);

        if (r >= 0) {
                int64_t one_ns = REQUEST_GUESS_NS / k.threads +
                                 (k.events > 0 ? k.events * k.every_ns / k.threads : k.body_bytes * BYTE_GUESS_NS);

                ret->values = k.requests;
                ret->rows = k.requests + k.warmup;
                ret->duration_ns = ret->rows * one_ns;
        }
        key_table_done(&http_table, &k);
        return r;
}

int http_missing(const struct node *map, struct err *err)
{
        struct http_keys k = {0};
        int r = key_table_read(&http_table, map, "workload", &k, err);

        if (r >= 0)
                r = cpu_missing("workload.cpu", k.cpu, err);
        if (r >= 0)
                r = cpu_missing("workload.origin-cpu", k.origin_cpu, err);
        key_table_done(&http_table, &k);
        return r;
}
