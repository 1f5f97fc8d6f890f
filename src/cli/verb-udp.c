/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/sample.h"
#include "cli/instrument.h"
#include "cli/print-probe.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "load/datagram-client.h"
#include "load/datagram-origin.h"
#include "stats/quantile.h"
#include "stats/sort.h"
#include "wire/dns.h"

#define ECHO_PORT 7 /* RFC 862 */

/* What both ends take: without a name it is an echo. */
static int make_question(const char *name, const char *address, int64_t bytes, struct datagram_question *ret,
                         struct err *err)
{
        *ret = (struct datagram_question){.name = name, .bytes = (size_t)bytes};
        if (!name != !address)
                return err_set(err, ERR_USAGE, EINVAL, "--lookup and --address go together");
        if (address && inet_pton(AF_INET, address, &ret->address) != 1)
                return err_set(err, ERR_USAGE, EINVAL, "--address: \"%s\" is no IPv4 address", address);
        return 0;
}

/* ---- ask ---- */

struct ask_options {
        int64_t count, warmup, size_bytes, timeout_ns, cpu;
        const char *lookup, *address;
        struct instrument_families families;
        bool samples, quiet, json;
};

#define ASK(name) offsetof(struct ask_options, name)

static const struct option ask_option_table[] = {
        {"count", 'c', OPTION_QUANTITY, ASK(count), "N", "1000", UNIT_COUNT, 1, DATAGRAM_CLIENT_REQUESTS_MAX,
         .help = "how many datagrams, one after the other"},
        {"warmup", 'w', OPTION_QUANTITY, ASK(warmup), "N", "0", UNIT_COUNT, 0, DATAGRAM_CLIENT_REQUESTS_MAX,
         .help = "how many more come before, and count for nothing"},
        {"size", 's', OPTION_QUANTITY, ASK(size_bytes), "SIZE", "64B", UNIT_BYTES, DATAGRAM_BYTES_MIN,
         DATAGRAM_BYTES_MAX, .help = "payload of a datagram that is echoed"},
        {"lookup", 'l', OPTION_STRING, ASK(lookup), "NAME",
         .help = "ask for the IPv4 address of NAME by DNS, instead of an echo"},
        {"address", 0, OPTION_STRING, ASK(address), "ADDRESS", .help = "with --lookup: the one right answer"},
        {"timeout", 0, OPTION_QUANTITY, ASK(timeout_ns), "TIME", "1s", UNIT_DURATION, 1000000, INT64_C(3600000000000),
         .help = "when a datagram is lost"},
        INSTRUMENT_OPTIONS_PEER_FAMILY(ASK(families.only_v4), ASK(families.only_v6)),
        INSTRUMENT_OPTION_CPU(ASK(cpu)),
        INSTRUMENT_OPTION_QUIET(ASK(quiet)),
        {"json", 0, OPTION_FLAG, ASK(json), .help = "print the result as JSON"},
        {"samples", 0, OPTION_FLAG, ASK(samples), .help = "with --json: also each round trip"},
        {0},
};

static int ask_open(void *object, struct err *err)
{
        return datagram_client_open(object, err);
}

static int ask_run(void *object, int64_t start_ns, const volatile int *stop, struct err *err)
{
        return datagram_client_run(object, start_ns, stop, err);
}

static void ask_tick(void *object, int64_t elapsed_ns)
{
        struct datagram_client_counts c;

        datagram_client_count(object, &c);
        fprintf(stderr, "%4" PRId64 " s  completed %" PRIu64 "  failed %" PRIu64 "\n", elapsed_ns / NSEC_PER_SEC,
                c.completed, c.failed);
}

/* Of the round trips after the warm-up, where those that failed rank above all others: SAMPLE_MISSING where there are
 * too few to say. */
static int take_quantiles(const struct datagram_client *client, const uint32_t *ppm, int64_t *ret, size_t n_quantiles)
{
        size_t n, from, known = 0;
        const struct datagram_sample *s = datagram_client_samples(client, &n, &from);
        _cleanup_free_ uint64_t *values = calloc(2 * MAX(n, (size_t)1), sizeof(*values));

        if (!values)
                return -ENOMEM;
        for (size_t i = from; i < n; i++)
                if (s[i].failure == DATAGRAM_FAILURE_NONE)
                        values[known++] = (uint64_t)s[i].round_trip_ns;
        sort_u64(values, values + n, known);
        for (size_t i = 0; i < n_quantiles; i++) {
                uint64_t value;

                ret[i] = SAMPLE_MISSING;
                if (quantile_publishable(n - from, ppm[i]) &&
                    quantile_at(values, known, n - from - known, ppm[i], &value) == 0)
                        ret[i] = value == QUANTILE_LOST ? FIGURE_LOST : (int64_t)value;
        }
        return 0;
}

static json_t *value_json(int64_t ns)
{
        if (ns == SAMPLE_MISSING)
                return json_null();
        return ns == FIGURE_LOST ? json_string("lost") : json_integer(ns);
}

static json_t *samples_json(const struct datagram_client *client)
{
        _cleanup_json_ json_t *list = json_array();
        size_t n, warmup;
        const struct datagram_sample *s = datagram_client_samples(client, &n, &warmup);

        for (size_t i = 0; i < n; i++)
                if (json_array_append_new(list, value_json(s[i].round_trip_ns)) < 0)
                        return NULL;
        return TAKE_PTR(list);
}

static const uint32_t shown_ppm[] = {500000, 950000, 990000};

static json_t *ask_json(const struct datagram_client *client, const int64_t *shown, bool with_samples)
{
        _cleanup_json_ json_t *object = NULL;
        struct datagram_client_counts c;
        size_t n, warmup;

        datagram_client_count(client, &c);
        datagram_client_samples(client, &n, &warmup);
        object = json_pack("{s:i, s:{s:I, s:I, s:I}, s:{s:o, s:o, s:o}, s:o, s:o, s:I}", "assay", 1, "counts",
                           "requests", (json_int_t)c.requests, "completed", (json_int_t)c.completed, "failed",
                           (json_int_t)c.failed, "round_trip", "p50_ns", value_json(shown[0]), "p95_ns",
                           value_json(shown[1]), "p99_ns", value_json(shown[2]), "failures",
                           datagram_client_failures_json(client), "notes", datagram_client_notes_json(client),
                           "warmup_requests", (json_int_t)warmup);
        if (with_samples && object && json_object_set_new(object, "samples", samples_json(client)) < 0)
                return NULL;
        return TAKE_PTR(object);
}

static void ask_text(const struct datagram_client *client, const int64_t *shown, struct text *out)
{
        _cleanup_json_ json_t *failures = datagram_client_failures_json(client);
        struct datagram_client_counts c;
        char buf[3][48];
        json_t *one;
        size_t i;

        datagram_client_count(client, &c);
        text_addf(out, "  round trip p50 %s  p95 %s  p99 %s\n", print_probe_ns(shown[0], buf[0]),
                  print_probe_ns(shown[1], buf[1]), print_probe_ns(shown[2], buf[2]));
        text_addf(out, "  %" PRIu64 " datagrams: %" PRIu64 " answered, %" PRIu64 " failed\n", c.requests, c.completed,
                  c.failed);
        json_array_foreach(failures, i, one)
        {
                text_addf(out, "  failed %" JSON_INTEGER_FORMAT ": %s (first: datagram %" JSON_INTEGER_FORMAT ")\n",
                          json_integer_value(json_object_get(one, "count")),
                          json_string_value(json_object_get(one, "cause")),
                          json_integer_value(json_object_get(one, "first")));
        }
}

static int ask_print(const struct ask_options *o, const struct datagram_client *client, struct err *err)
{
        _cleanup_text_ struct text out = {0};
        int64_t shown[ARRAY_SIZE(shown_ppm)];

        if (take_quantiles(client, shown_ppm, shown, ARRAY_SIZE(shown_ppm)) < 0)
                return err_set_nomem(err);
        if (o->json)
                return print_json(ask_json(client, shown, o->samples), err);
        ask_text(client, shown, &out);
        return print_text(&out, err);
}

static int ask_run_verb(const void *options, int argc, char **argv, struct err *err)
{
        const struct ask_options *o = options;
        _cleanup_datagram_client_ struct datagram_client *client = NULL;
        struct datagram_client_config config = {.n_warmup = (uint64_t)o->warmup,
                                                .n_requests = (uint64_t)o->count,
                                                .timeout_ns = o->timeout_ns,
                                                .sched = {.cpu = (int)o->cpu, .precise_timers = true}};
        struct instrument instrument = {.name = "client",
                                        .open = ask_open,
                                        .run = ask_run,
                                        .tick = o->quiet ? NULL : ask_tick};
        struct datagram_client_counts counts;
        union address none;
        int r;

        if (o->samples && !o->json)
                return err_set(err, ERR_USAGE, EINVAL, "--samples needs --json");
        r = make_question(o->lookup, o->address, o->size_bytes, &config.question, err);
        if (r >= 0)
                r = instrument_peer(argv[0], o->lookup ? DNS_PORT : ECHO_PORT, NULL, o->families, &config.peer, &none,
                                    err);
        if (r >= 0)
                r = datagram_client_new(&config, &client, err);
        if (r < 0)
                return r;
        instrument.object = client;
        r = instrument_run(&instrument, err);
        if (r >= 0)
                r = ask_print(o, client, err);
        if (r < 0)
                return r;
        datagram_client_count(client, &counts);
        return counts.failed > 0;
}

static const struct verb ask_verb = {
        .name = "ask",
        .arguments = "HOST[:PORT]",
        .summary = "send datagrams, and time until each is answered",
        .description =
                "Sends a datagram to HOST, waits until it comes back, checks each byte, and sends the next. With\n"
                "--lookup it asks for a name by DNS instead. Exit 1 where one was lost or answered wrongly.",
        .min_args = 1,
        .max_args = 1,
        .options = ask_option_table,
        .options_size = sizeof(struct ask_options),
        .run = ask_run_verb,
};

/* ---- answer ---- */

struct answer_options {
        int64_t duration_ns, cpu;
        const char *lookup, *address;
        struct instrument_families families;
        bool quiet, json;
};

#define ANSWER(name) offsetof(struct answer_options, name)

static const struct option answer_option_table[] = {
        {"lookup", 'l', OPTION_STRING, ANSWER(lookup), "NAME", .help = "answer DNS for NAME, instead of echoing"},
        {"address", 0, OPTION_STRING, ANSWER(address), "ADDRESS", .help = "with --lookup: the IPv4 address of NAME"},
        {"duration", 't', OPTION_QUANTITY, ANSWER(duration_ns), "TIME", "0", UNIT_DURATION, 0, INT64_C(86400000000000),
         .help = "how long; 0 is until it is interrupted"},
        INSTRUMENT_OPTIONS_LOCAL_FAMILY(ANSWER(families.only_v4), ANSWER(families.only_v6)),
        INSTRUMENT_OPTION_CPU(ANSWER(cpu)),
        INSTRUMENT_OPTION_QUIET(ANSWER(quiet)),
        {"json", 0, OPTION_FLAG, ANSWER(json), .help = "print the counts as JSON"},
        {0},
};

static int answer_open(void *object, struct err *err)
{
        return datagram_origin_open(object, err);
}

static int answer_run(void *object, int64_t start_ns, const volatile int *stop, struct err *err)
{
        return datagram_origin_run(object, stop, err);
}

static void answer_opened(void *object)
{
        char text[ADDRESS_TEXT];

        fprintf(stderr, "answering at %s\n", address_format(datagram_origin_address(object), text));
}

static void answer_tick(void *object, int64_t elapsed_ns)
{
        struct datagram_origin_counts c;

        datagram_origin_count(object, &c);
        fprintf(stderr, "%4" PRId64 " s  answered %" PRIu64 "  ignored %" PRIu64 "\n", elapsed_ns / NSEC_PER_SEC,
                c.answered, c.ignored);
}

static int answer_run_verb(const void *options, int argc, char **argv, struct err *err)
{
        const struct answer_options *o = options;
        _cleanup_datagram_origin_ struct datagram_origin *origin = NULL;
        struct datagram_origin_config config = {.sched = {.cpu = (int)o->cpu, .precise_timers = true}};
        struct instrument instrument = {.name = "origin",
                                        .open = answer_open,
                                        .run = answer_run,
                                        .opened = answer_opened,
                                        .tick = o->quiet ? NULL : answer_tick,
                                        .duration_ns = o->duration_ns};
        struct datagram_origin_counts c;
        int r;

        r = make_question(o->lookup, o->address, 0, &config.question, err);
        if (r >= 0)
                r = instrument_local(argc > 0 ? argv[0] : NULL, o->lookup ? DNS_PORT : ECHO_PORT, o->families,
                                     &config.local, err);
        if (r >= 0)
                r = datagram_origin_new(&config, &origin, err);
        if (r < 0)
                return r;
        instrument.object = origin;
        r = instrument_run(&instrument, err);
        if (r < 0)
                return r;
        datagram_origin_count(origin, &c);
        if (o->json)
                return print_json(json_pack("{s:i, s:{s:I, s:I}}", "assay", 1, "counts", "answered",
                                            (json_int_t)c.answered, "ignored", (json_int_t)c.ignored),
                                  err);
        printf("  %" PRIu64 " datagrams answered, %" PRIu64 " ignored\n", c.answered, c.ignored);
        return 0;
}

static const struct verb answer_verb = {
        .name = "answer",
        .arguments = "[ADDRESS]",
        .summary = "echo datagrams, or answer DNS for one name",
        .description = "Sends each datagram back to where it came from, or with --lookup answers DNS for one name,\n"
                       "at ADDRESS, perhaps with :PORT, or at all addresses, until it is interrupted.",
        .max_args = 1,
        .options = answer_option_table,
        .options_size = sizeof(struct answer_options),
        .run = answer_run_verb,
};

const struct verb verb_udp = {
        .name = "udp",
        .summary = "measure round trips of datagrams, or answer them",
        .verbs = (const struct verb *const[]){&ask_verb, &answer_verb, NULL},
};
