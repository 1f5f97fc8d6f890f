/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kind-datagram.h"

#include <arpa/inet.h>

#include "base/clock.h"
#include "campaign/client.h"
#include "campaign/cpu.h"
#include "campaign/enclosure.h"
#include "campaign/quantiles.h"
#include "campaign/watch.h"
#include "load/datagram-client.h"
#include "load/datagram-origin.h"
#include "wire/dns.h"

#define READY_NS      (10 * NSEC_PER_SEC)
#define STUCK_NS      (120 * NSEC_PER_SEC) /* a client that runs so long does not end any more */
#define REQUEST_GUESS (100 * NSEC_PER_USEC)

/* What is looked up. A policy has to allow the name; nothing is ever sent to the address, which is one for documents.
 */
#define NAME    "origin.test"
#define ADDRESS "192.0.2.1"

#define FIELD(name) offsetof(struct datagram_keys, name)

enum { ASK_ECHO, ASK_LOOKUP };

static const char *const asks[] = {"echo", "lookup", NULL};

static const struct key keys[] = {
        {.name = "ask",
         .type = KEY_CHOICE,
         .offset = FIELD(ask),
         .is_required = true,
         .choices = asks,
         .help = "For the same bytes back (echo), or by DNS for the address of " NAME
                 " (lookup), which a policy has to allow: the origin is the name server that a sandbox's resolver "
                 "asks."},
        {.name = "requests",
         .type = KEY_QUANTITY,
         .offset = FIELD(requests),
         .fallback = "1000",
         .unit = UNIT_COUNT,
         .min = 1,
         .max = 100000,
         .help = "How many datagrams are measured, one after the other."},
        {.name = "warmup",
         .type = KEY_QUANTITY,
         .offset = FIELD(warmup),
         .fallback = "16",
         .unit = UNIT_COUNT,
         .max = 100000,
         .help = "How many more come before them; they are stored and left out of every number."},
        {.name = "size",
         .type = KEY_QUANTITY,
         .offset = FIELD(bytes),
         .fallback = "64B",
         .unit = UNIT_BYTES,
         .min = DATAGRAM_BYTES_MIN,
         .max = DATAGRAM_BYTES_MAX,
         .help = "Payload of a datagram that is echoed."},
        {.name = "timeout",
         .type = KEY_QUANTITY,
         .offset = FIELD(timeout_ns),
         .fallback = "1s",
         .unit = UNIT_DURATION,
         .min = 1000000,
         .max = INT64_C(60000000000),
         .help = "When a datagram is lost; it ranks above every duration."},
        {.name = "cpu",
         .type = KEY_QUANTITY,
         .offset = FIELD(cpu),
         .fallback = "0",
         .unit = UNIT_COUNT,
         .max = 1023,
         .help = "Processor that the client is pinned to."},
        {.name = "origin-cpu",
         .type = KEY_QUANTITY,
         .offset = FIELD(origin_cpu),
         .fallback = "1",
         .unit = UNIT_COUNT,
         .max = 1023,
         .help = "Processor that the origin is pinned to."},
        {},
};

const struct key_table datagram_table = {
        .name = "datagram",
        .help = "A client inside the boundary that sends datagrams and waits for each answer, and an origin outside; "
                "every answer is checked.",
        .size = sizeof(struct datagram_keys),
        .has_kind = true,
        .keys = keys,
};

const struct metric datagram_metrics[] = {
        QUANTILES("round_trip"),
        {.name = "failed", .unit = METRIC_COUNT, .source = METRIC_COUNTER, .series = "failed"},
        {},
};

static const struct column columns[] = {
        {"slot", "index", SAMPLE_CLOCK_NONE, "number of the datagram, from 0"},
        {"round_trip_ns", "ns", SAMPLE_CLOCK_MONOTONIC,
         "from before it is sent (of a look-up, before its socket is made) until its answer has come; empty: it was "
         "lost, or the answer was wrong"},
};

struct datagram {
        struct workload base;
        struct enclosure *enclosure;
        struct datagram_keys keys;
        struct datagram_origin *origin;
        struct child origin_child;
        struct command client;
        char server[INET_ADDRSTRLEN]; /* of names */
        struct watch watch;           /* on both */
};

static struct datagram *datagram_of(struct workload *w)
{
        return (struct datagram *)w; /* the first member */
}

static uint16_t port_of(const struct datagram *d)
{
        return d->keys.ask == ASK_LOOKUP ? DNS_PORT : STAGE_ORIGIN_PORT;
}

/* Answers until it is killed; what it counts lies in shared memory. */
static int run_origin(struct child_side *side, void *userdata)
{
        struct datagram_origin *origin = userdata;
        struct err err = {0};
        int64_t start_ns;

        if (datagram_origin_open(origin, &err) < 0)
                return child_failed(side, &err);
        if (child_ready(side) < 0 || child_wait_go(side, &start_ns) < 0)
                return 1;
        return datagram_origin_run(origin, NULL, &err) < 0;
}

static int start_origin(struct datagram *d, struct err *err)
{
        const struct stage *stage = &d->enclosure->stage;
        const struct child_options options = {.name = "origin", .netns = &stage->netns};
        struct datagram_origin_config config = {.local = stage->origin,
                                                .sched = {.cpu = (int)d->keys.origin_cpu, .precise_timers = true}};
        int r;

        if (d->keys.ask == ASK_LOOKUP) {
                config.question.name = NAME;
                inet_pton(AF_INET, ADDRESS, &config.question.address);
        }
        address_set_port(&config.local, port_of(d));
        r = datagram_origin_new(&config, &d->origin, err);
        if (r >= 0)
                r = child_start(&options, run_origin, d->origin, &d->origin_child, err);
        if (r >= 0)
                r = child_wait_ready(&d->origin_child, READY_NS, err);
        if (r < 0)
                err_prefix(err, "the origin");
        return r;
}

static void add_words(const struct datagram *d, struct command_line *line)
{
        static const char *const lookup[] = {"--lookup", NAME, "--address", ADDRESS};
        const struct datagram_keys *k = &d->keys;
        union address peer = d->enclosure->stage.origin;
        char text[ADDRESS_TEXT];

        client_add_quantity(line, "--count", k->requests, "");
        client_add_quantity(line, "--warmup", k->warmup, "");
        client_add_quantity(line, "--timeout", k->timeout_ns, "ns");
        client_add_quantity(line, "--cpu", k->cpu, "");
        client_add_quantity(line, "--size", k->bytes, "B");
        for (size_t i = 0; k->ask == ASK_LOOKUP && i < ARRAY_SIZE(lookup); i++)
                command_line_add(line, "%s", lookup[i]);
        address_set_port(&peer, port_of(d));
        command_line_add(line, "%s", address_format(&peer, text));
}

static int prepare_client(struct datagram *d, struct err *err)
{
        _cleanup_command_line_ struct command_line line = {0};
        int r = client_line("udp", "ask", &line, err);

        if (r < 0)
                return r;
        add_words(d, &line);
        r = enclosure_wrap(d->enclosure, &line, err);
        if (r < 0)
                return r;
        inet_ntop(AF_INET, &d->enclosure->stage.origin.v4.sin_addr, d->server, sizeof(d->server));
        d->client.name_server = d->keys.ask == ASK_LOOKUP ? d->server : NULL;
        return command_prepare("client", &d->enclosure->stage.netns, &line, &d->client, err);
}

static void datagram_free(struct workload *w)
{
        struct datagram *d = datagram_of(w);

        if (!d)
                return;
        command_done(&d->client);
        child_done(&d->origin_child);
        datagram_origin_free(d->origin);
        watch_done(&d->watch);
        key_table_done(&datagram_table, &d->keys);
        free(d);
}

static int datagram_build(struct datagram *d, const struct node *config, struct err *err)
{
        int r;

        r = key_table_read(&datagram_table, config, "workload", &d->keys, err);
        if (r >= 0)
                r = enclosure_stage(d->enclosure, err);
        if (r >= 0)
                r = start_origin(d, err);
        if (r >= 0)
                r = prepare_client(d, err);
        if (r < 0)
                return r;
        return watch_open(&d->watch, (const int[]){d->origin_child.pidfd, d->client.child.pidfd}, 2, STUCK_NS, err);
}

static int datagram_prepare(struct boundary *b, const char *name, const struct node *config, struct workload **ret,
                            struct err *err)
{
        struct datagram *d = calloc(1, sizeof(*d));
        int r;

        if (!d)
                return err_set_nomem(err);
        d->base.ops = &datagram_ops;
        d->enclosure = enclosure_of(b);
        d->origin_child = (struct child)CHILD_INIT;
        d->client = (struct command)COMMAND_INIT;
        d->watch = (struct watch)WATCH_INIT;
        r = datagram_build(d, config, err);
        if (r < 0) {
                datagram_free(&d->base);
                return r;
        }
        *ret = &d->base;
        return 0;
}

static int datagram_start(struct workload *w, int64_t start_ns, struct err *err)
{
        struct datagram *d = datagram_of(w);
        int r = child_go(&d->origin_child, 0, err);

        return r < 0 ? r : child_go(&d->client.child, start_ns, err);
}

static int datagram_event_fd(const struct workload *w)
{
        return ((const struct datagram *)w)->watch.epoll;
}

static int datagram_stop(struct workload *w, struct err *err)
{
        struct datagram *d = datagram_of(w);
        int r = client_wait(&d->client, err);

        if (r < 0)
                return r;
        if (!child_is_alive(&d->origin_child))
                return err_set(err, ERR_ENVIRONMENT, EPIPE, "the origin ended in mid-trial");
        child_stop(&d->origin_child, NSEC_PER_SEC, NULL);
        return 0;
}

static int write_samples(const json_t *samples, struct sample_writer *out, struct err *err)
{
        json_t *sample;
        size_t i;

        json_array_foreach(samples, i, sample)
        {
                int64_t row[] = {(int64_t)i, 0};
                int r;

                if (client_sample_ns(sample, &row[1]) < 0)
                        return err_set(err, ERR_ENVIRONMENT, EINVAL, "the client's sample %zu is no duration", i);
                r = sample_write(out, row, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int datagram_collect(struct workload *w, struct sample_writer *out, struct workload_result *ret, struct err *err)
{
        _cleanup_client_result_ struct client_result result = {0};
        struct datagram *d = datagram_of(w);
        struct datagram_origin_counts c;
        int r;

        r = client_read(&d->client, (size_t)(d->keys.warmup + d->keys.requests), &result, err);
        if (r >= 0)
                r = write_samples(result.samples, out, err);
        if (r < 0)
                return r;
        datagram_origin_count(d->origin, &c);
        ret->counts = client_counts(&result, d->keys.requests, d->keys.warmup);
        ret->notes = json_pack("{s:O, s:O, s:{s:I, s:I}}", "client", result.notes, "failures", result.failures,
                               "origin_counts", "answered", (json_int_t)c.answered, "ignored", (json_int_t)c.ignored);
        return ret->counts && ret->notes ? 0 : err_set_nomem(err);
}

const struct workload_ops datagram_ops = {
        .columns = columns,
        .n_columns = ARRAY_SIZE(columns),
        .prepare = datagram_prepare,
        .start = datagram_start,
        .event_fd = datagram_event_fd,
        .stop = datagram_stop,
        .collect = datagram_collect,
        .free = datagram_free,
};

int datagram_size(const struct node *map, struct workload_size *ret, struct err *err)
{
        struct datagram_keys k = {0};
        int r = key_table_read(&datagram_table, map, "workload", &k, err);

        if (r >= 0)
                *ret = (struct workload_size){.duration_ns = (k.requests + k.warmup) * REQUEST_GUESS,
                                              .rows = k.requests + k.warmup,
                                              .values = k.requests};
        key_table_done(&datagram_table, &k);
        return r;
}

int datagram_missing(const struct node *map, struct err *err)
{
        struct datagram_keys k = {0};
        int r = key_table_read(&datagram_table, map, "workload", &k, err);

        if (r >= 0)
                r = cpu_missing("workload.cpu", k.cpu, err);
        if (r >= 0)
                r = cpu_missing("workload.origin-cpu", k.origin_cpu, err);
        key_table_done(&datagram_table, &k);
        return r;
}
