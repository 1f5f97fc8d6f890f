/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/number.h"
#include "cli/instrument.h"
#include "cli/print-http.h"
#include "cli/print-probe.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "load/http-origin.h"

#define HTTP_PORT   80 /* of a URL without one */
#define HTTPS_PORT  443
#define ORIGIN_PORT 8080 /* where the origin is told no other one */

/* ---- get ---- */

struct get_options {
        int64_t count, warmup, threads, timeout_ns, length, body_max, cpu, priority;
        const char *proxy, *digest, *authorities, *pin;
        struct instrument_families families;
        bool keep_alive, samples, quiet, json;
};

#define GET(name) offsetof(struct get_options, name)

static const struct option get_option_table[] = {
        {"count", 'c', OPTION_QUANTITY, GET(count), "N", "1000", UNIT_COUNT, 1, HTTP_CLIENT_REQUESTS_MAX,
         .help = "how many requests, of all threads together"},
        {"warmup", 'w', OPTION_QUANTITY, GET(warmup), "N", "0", UNIT_COUNT, 0, HTTP_CLIENT_REQUESTS_MAX,
         .help = "how many more come before, and count for nothing"},
        {"threads", 'T', OPTION_QUANTITY, GET(threads), "N", "1", UNIT_COUNT, 1, HTTP_CLIENT_THREADS_MAX,
         .help = "how many send at the same time, each one request after the other"},
        {"keep-alive", 'k', OPTION_FLAG, GET(keep_alive),
         .help = "use connections again, instead of one for each request"},
        {"timeout", 0, OPTION_QUANTITY, GET(timeout_ns), "TIME", "10s", UNIT_DURATION, 1000000, INT64_C(3600000000000),
         .help = "when a request has failed"},
        {"length", 0, OPTION_QUANTITY, GET(length), "SIZE", "-1", UNIT_COUNT, -1, HTTP_BODY_BYTES_MAX,
         .help = "bytes that every body has to have; -1 takes any"},
        {"sha256", 0, OPTION_STRING, GET(digest), "HEX",
         .help = "digest that every body has to have, instead of that of the first"},
        {"body-max", 0, OPTION_QUANTITY, GET(body_max), "SIZE", "64MiB", UNIT_BYTES, 0, HTTP_BODY_BYTES_MAX,
         .help = "a longer body is a failure"},
        {"proxy", 0, OPTION_STRING, GET(proxy), "ADDRESS", .help = "an HTTP proxy to send the requests to, with :PORT"},
        {"authorities", 0, OPTION_STRING, GET(authorities), "FILE",
         .help = "of https: certificates to trust, instead of the system's"},
        {"pin", 0, OPTION_STRING, GET(pin), "HEX",
         .help = "of https: SHA-256 of the one certificate to trust, whoever made it"},
        INSTRUMENT_OPTIONS_PEER_FAMILY(GET(families.only_v4), GET(families.only_v6)),
        INSTRUMENT_OPTION_CPU(GET(cpu)),
        INSTRUMENT_OPTION_PRIORITY(GET(priority), "0"),
        INSTRUMENT_OPTION_QUIET(GET(quiet)),
        {"json", 0, OPTION_FLAG, GET(json), .help = "print the result as JSON"},
        {"samples", 0, OPTION_FLAG, GET(samples), .help = "with --json: also the durations of each request"},
        {0},
};

/* What the line a second remembers between two of them. */
struct get_job {
        struct http_client *client;
        size_t shown;
};

static void get_tick(void *object, int64_t elapsed_ns)
{
        struct get_job *job = object;
        struct print_http_values v;
        struct http_client_counts c;
        char p50[48], p99[48], max[48];
        size_t n, warmup;

        http_client_count(job->client, &c);
        http_client_samples(job->client, &n, &warmup);
        fprintf(stderr, "%4" PRId64 " s  completed %" PRIu64 "  failed %" PRIu64, elapsed_ns / NSEC_PER_SEC,
                c.completed, c.failed);
        if (print_http_take(job->client, job->shown, n, PRINT_HTTP_REQUEST, &v) == 0)
                fprintf(stderr, "  request p50 %s  p99 %s  max %s", print_probe_ns(v.p50, p50),
                        print_probe_ns(v.p99, p99), print_probe_ns(v.max, max));
        fputc('\n', stderr);
        job->shown = n;
}

static int get_open(void *object, struct err *err)
{
        return http_client_open(((struct get_job *)object)->client, err);
}

static int get_run(void *object, int64_t start_ns, const volatile int *stop, struct err *err)
{
        return http_client_run(((struct get_job *)object)->client, start_ns, stop, err);
}

static int get_config(const struct get_options *o, const char *url, struct http_client_config *c, struct err *err)
{
        union address none;
        int r;

        *c = (struct http_client_config){
                .is_proxied = o->proxy != NULL,
                .is_kept = o->keep_alive,
                .threads = (unsigned)o->threads,
                .n_warmup = (uint64_t)o->warmup,
                .n_requests = (uint64_t)o->count,
                .timeout_ns = o->timeout_ns,
                .body_max = (size_t)o->body_max,
                .has_length = o->length >= 0,
                .length = (uint64_t)o->length,
                .has_digest = o->digest != NULL,
                .authorities = o->authorities,
                .has_pin = o->pin != NULL,
                .sched = {.cpu = (int)o->cpu, .fifo_priority = (int)o->priority, .precise_timers = true},
        };
        if (o->digest && digest_parse(span_of_text(o->digest), &c->digest) < 0)
                return err_set(err, ERR_USAGE, EINVAL, "--sha256: \"%s\" is not 64 hexadecimal digits", o->digest);
        if (o->pin && digest_parse(span_of_text(o->pin), &c->pin) < 0)
                return err_set(err, ERR_USAGE, EINVAL, "--pin: \"%s\" is not 64 hexadecimal digits", o->pin);
        if (o->samples && !o->json)
                return err_set(err, ERR_USAGE, EINVAL, "--samples needs --json");
        r = http_url_parse(url, &c->url, err);
        if (r >= 0)
                r = instrument_peer(o->proxy ? o->proxy : c->url.authority, c->url.is_secure ? HTTPS_PORT : HTTP_PORT,
                                    NULL, o->families, &c->peer, &none, err);
        return r;
}

static int get_print(const struct get_options *o, const struct http_client *client, struct err *err)
{
        _cleanup_text_ struct text out = {0};

        if (o->json)
                return print_json(print_http_json(client, o->samples), err);
        print_http_text(client, &out);
        return print_text(&out, err);
}

static int get_run_verb(const void *options, int argc, char **argv, struct err *err)
{
        const struct get_options *o = options;
        _cleanup_http_client_ struct http_client *client = NULL;
        struct get_job job = {0};
        struct instrument instrument = {
                .name = "client", .object = &job, .open = get_open, .run = get_run, .tick = o->quiet ? NULL : get_tick};
        struct http_client_config config;
        struct http_client_counts counts;
        int r;

        r = get_config(o, argv[0], &config, err);
        if (r >= 0)
                r = http_client_new(&config, &client, err);
        if (r < 0)
                return r;
        job.client = client;
        r = instrument_run(&instrument, err);
        if (r >= 0)
                r = get_print(o, client, err);
        if (r < 0)
                return r;
        http_client_count(client, &counts);
        return counts.failed == 0 && counts.completed > 0 ? 0 : 1;
}

static const struct verb get_verb = {
        .name = "get",
        .arguments = "URL",
        .summary = "fetch a URL many times and show how long it takes",
        .description =
                "Fetches URL (http:// or https://HOST[:PORT]/...) many times over HTTP/1.1, checks every body, and "
                "shows how long\n"
                "requests take: until the connection stood, until the first byte of the body, and until the last one.\n"
                "Exit 1 where a request failed.",
        .min_args = 1,
        .max_args = 1,
        .options = get_option_table,
        .options_size = sizeof(struct get_options),
        .run = get_run_verb,
};

/* ---- origin ---- */

struct origin_options {
        int64_t body_bytes, write_bytes, events, event_bytes, every_ns, threads, duration_ns, cpu;
        struct instrument_families families;
        bool tls, quiet, json;
};

#define ORIGIN(name) offsetof(struct origin_options, name)

static const struct option origin_option_table[] = {
        {"body", 'b', OPTION_QUANTITY, ORIGIN(body_bytes), "SIZE", "1KiB", UNIT_BYTES, 0, HTTP_BODY_BYTES_MAX,
         .help = "length of the body that / has"},
        {"write", 0, OPTION_QUANTITY, ORIGIN(write_bytes), "SIZE", "0", UNIT_BYTES, 0, HTTP_BODY_BYTES_MAX,
         .help = "how much of it is handed to the kernel at once; 0 is all of it"},
        {"events", 0, OPTION_QUANTITY, ORIGIN(events), "N", "10", UNIT_COUNT, 0, HTTP_EVENTS_MAX,
         .help = "how many events /events has"},
        {"event", 0, OPTION_QUANTITY, ORIGIN(event_bytes), "SIZE", "13B", UNIT_BYTES, HTTP_EVENT_BYTES_MIN,
         HTTP_EVENT_BYTES_MAX, .help = "length of an event"},
        {"every", 0, OPTION_QUANTITY, ORIGIN(every_ns), "TIME", "2ms", UNIT_DURATION, 0, INT64_C(60000000000),
         .help = "time between two events"},
        {"threads", 'T', OPTION_QUANTITY, ORIGIN(threads), "N", "1", UNIT_COUNT, 1, HTTP_ORIGIN_THREADS_MAX,
         .help = "how many answer"},
        {"tls", 0, OPTION_FLAG, ORIGIN(tls), .help = "serve HTTPS, with a certificate made now"},
        {"duration", 't', OPTION_QUANTITY, ORIGIN(duration_ns), "TIME", "0", UNIT_DURATION, 0, INT64_C(86400000000000),
         .help = "how long; 0 is until it is interrupted"},
        INSTRUMENT_OPTIONS_LOCAL_FAMILY(ORIGIN(families.only_v4), ORIGIN(families.only_v6)),
        INSTRUMENT_OPTION_CPU(ORIGIN(cpu)),
        INSTRUMENT_OPTION_QUIET(ORIGIN(quiet)),
        {"json", 0, OPTION_FLAG, ORIGIN(json), .help = "print the counts as JSON"},
        {0},
};

/* What the verb's own process knows of it. */
struct origin_job {
        struct http_origin *origin;
        bool is_secure;
};

static int origin_open(void *object, struct err *err)
{
        return http_origin_open(((struct origin_job *)object)->origin, err);
}

static int origin_run(void *object, int64_t start_ns, const volatile int *stop, struct err *err)
{
        return http_origin_run(((struct origin_job *)object)->origin, stop, err);
}

static void origin_opened(void *object)
{
        const struct origin_job *job = object;
        char text[ADDRESS_TEXT], hex[DIGEST_HEX_SIZE];

        fprintf(stderr, "serving at %s\n", address_format(http_origin_address(job->origin), text));
        if (job->is_secure)
                fprintf(stderr, "SHA-256 of its certificate: %s\n",
                        digest_format(http_origin_certificate(job->origin), hex));
}

static void origin_tick(void *object, int64_t elapsed_ns)
{
        struct http_origin_counts c;

        http_origin_counts(((struct origin_job *)object)->origin, &c);
        fprintf(stderr, "%4" PRId64 " s  answered %" PRIu64 "  refused %" PRIu64 "  lost %" PRIu64 "\n",
                elapsed_ns / NSEC_PER_SEC, c.requests, c.refused, c.lost);
}

static int origin_config(const struct origin_options *o, const char *address, struct http_origin_config *ret,
                         struct err *err)
{
        struct http_origin_config c = {
                .body_bytes = (size_t)o->body_bytes,
                .write_bytes = (size_t)o->write_bytes,
                .events = (uint64_t)o->events,
                .event_bytes = (size_t)o->event_bytes,
                .every_ns = o->every_ns,
                .threads = (unsigned)o->threads,
                .is_secure = o->tls,
                .sched = {.cpu = (int)o->cpu, .precise_timers = true},
        };
        int r;

        r = instrument_local(address, ORIGIN_PORT, o->families, &c.local, err);
        if (r >= 0)
                *ret = c;
        return r;
}

static void origin_print(const struct http_origin *origin)
{
        struct http_origin_counts c;

        http_origin_counts(origin, &c);
        printf("  %" PRIu64 " requests answered on %" PRIu64 " connections, %" PRIu64 " bytes of body\n", c.requests,
               c.connections, c.body_bytes);
        if (c.refused > 0)
                printf("  %" PRIu64 " requests refused\n", c.refused);
        if (c.lost > 0)
                printf("  %" PRIu64 " answers were not taken to their end\n", c.lost);
        if (c.turned_away > 0)
                printf("  %" PRIu64 " connections turned away: there were too many\n", c.turned_away);
}

static int origin_run_verb(const void *options, int argc, char **argv, struct err *err)
{
        const struct origin_options *o = options;
        _cleanup_http_origin_ struct http_origin *origin = NULL;
        struct origin_job job = {.is_secure = o->tls};
        struct instrument instrument = {.name = "origin",
                                        .object = &job,
                                        .open = origin_open,
                                        .run = origin_run,
                                        .opened = origin_opened,
                                        .tick = o->quiet ? NULL : origin_tick,
                                        .duration_ns = o->duration_ns};
        struct http_origin_config config;
        int r;

        r = origin_config(o, argc > 0 ? argv[0] : NULL, &config, err);
        if (r >= 0)
                r = http_origin_new(&config, &origin, err);
        if (r < 0)
                return r;
        job.origin = origin;
        r = instrument_run(&instrument, err);
        if (r < 0)
                return r;
        if (o->json)
                return print_json(json_pack("{s:i,s:o,s:o}", "assay", 1, "counts", http_origin_counts_json(origin),
                                            "notes", http_origin_notes_json(origin)),
                                  err);
        origin_print(origin);
        return 0;
}

static const struct verb origin_verb = {
        .name = "origin",
        .arguments = "[ADDRESS]",
        .summary = "serve a body and a stream of events",
        .description =
                "Serves HTTP/1.1 at ADDRESS, perhaps with :PORT (8080), or at all addresses, until it is interrupted:\n"
                "/ is a body of one length, /events a stream of server-sent events.",
        .max_args = 1,
        .options = origin_option_table,
        .options_size = sizeof(struct origin_options),
        .run = origin_run_verb,
};

const struct verb verb_http = {
        .name = "http",
        .summary = "measure HTTP requests, or answer them",
        .verbs = (const struct verb *const[]){&get_verb, &origin_verb, NULL},
};
