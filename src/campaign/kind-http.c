/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kind-http.h"

#include "base/clock.h"
#include "campaign/client.h"
#include "campaign/enclosure.h"
#include "campaign/origin.h"
#include "campaign/watch.h"

#define STUCK_NS (120 * NSEC_PER_SEC) /* a client that runs so long does not end any more */

static const struct column columns[] = {
        {"slot", "index", SAMPLE_CLOCK_NONE, "number of the request, from 0, in the order in which they were begun"},
        {"request_ns", "ns", SAMPLE_CLOCK_MONOTONIC, "from its begin to the last byte of the body; empty: it failed"},
        {"first_byte_ns", "ns", SAMPLE_CLOCK_MONOTONIC, "from its begin to the first byte of the body"},
        {"connect_ns", "ns", SAMPLE_CLOCK_MONOTONIC,
         "from its begin until the connection stood; empty: an earlier one was used again"},
};

struct http {
        struct workload base;
        struct enclosure *enclosure;
        struct http_keys keys;
        struct origin origin;
        struct command client;
        struct watch watch; /* on both */
};

static struct http *http_of(struct workload *w)
{
        return (struct http *)w; /* the first member */
}

static int start_origin(struct http *h, struct err *err)
{
        const struct http_keys *k = &h->keys;
        const struct http_origin_config config = {
                .body_bytes = (size_t)k->body_bytes,
                .write_bytes = (size_t)k->write_bytes,
                .events = (uint64_t)k->events,
                .event_bytes = (size_t)k->event_bytes,
                .every_ns = k->every_ns,
                .threads = 1,
                .is_secure = k->tls,
                .sched = {.cpu = (int)k->origin_cpu, .precise_timers = true},
        };

        return origin_start(&h->enclosure->stage, &config, &h->origin, err);
}

/* What every body has to be is told to the client, which cannot find it out from the origin. */
static int add_expectation(const struct http_keys *k, struct command_line *line, struct err *err)
{
        char hex[DIGEST_HEX_SIZE];
        struct digest digest;
        int r;

        if (k->events > 0)
                r = http_body_events_digest((uint64_t)k->events, (size_t)k->event_bytes, &digest, err);
        else
                r = http_body_digest((size_t)k->body_bytes, &digest, err);
        if (r < 0)
                return r;
        command_line_add(line, "--length");
        command_line_add(line, "%lld", (long long)(k->events > 0 ? k->events * k->event_bytes : k->body_bytes));
        command_line_add(line, "--sha256");
        command_line_add(line, "%s", digest_format(&digest, hex));
        return 0;
}

static void add_target(const struct http *h, struct command_line *line)
{
        const struct enclosure *e = h->enclosure;
        const char *path = h->keys.events > 0 ? "events" : "";
        char origin[ADDRESS_TEXT], proxy[ADDRESS_TEXT], pin[DIGEST_HEX_SIZE];

        address_format(&e->stage.origin, origin);
        address_format(&e->stage.proxy, proxy);
        if (e->has_own_peer && e->is_forward_proxy) {
                command_line_add(line, "--proxy");
                command_line_add(line, "%s", proxy);
        }
        if (h->keys.tls) {
                command_line_add(line, "--pin");
                command_line_add(line, "%s", digest_format(http_origin_certificate(h->origin.http), pin));
        }
        command_line_add(line, "http%s://%s/%s", h->keys.tls ? "s" : "",
                         e->has_own_peer && !e->is_forward_proxy ? proxy : origin, path);
}

static int prepare_client(struct http *h, struct err *err)
{
        _cleanup_command_line_ struct command_line line = {0};
        const struct http_keys *k = &h->keys;
        int r = client_line("http", "get", &line, err);

        if (r < 0)
                return r;
        if (k->connection > 0)
                command_line_add(&line, "--keep-alive");
        client_add_quantity(&line, "--count", k->requests, "");
        client_add_quantity(&line, "--warmup", k->warmup, "");
        client_add_quantity(&line, "--threads", k->threads, "");
        client_add_quantity(&line, "--timeout", k->timeout_ns, "ns");
        client_add_quantity(&line, "--cpu", k->cpu, "");
        r = add_expectation(k, &line, err);
        if (r < 0)
                return r;
        add_target(h, &line);
        r = enclosure_wrap(h->enclosure, &line, err);
        return r < 0 ? r : command_prepare("client", &h->enclosure->stage.netns, &line, &h->client, err);
}

static void http_free(struct workload *w)
{
        struct http *h = http_of(w);

        if (!h)
                return;
        command_done(&h->client);
        origin_done(&h->origin);
        watch_done(&h->watch);
        key_table_done(&http_table, &h->keys);
        free(h);
}

static int http_build(struct http *h, const struct node *config, struct err *err)
{
        int r;

        r = key_table_read(&http_table, config, "workload", &h->keys, err);
        if (r >= 0)
                r = enclosure_stage(h->enclosure, err);
        if (r >= 0)
                r = start_origin(h, err);
        if (r >= 0)
                r = prepare_client(h, err);
        if (r < 0)
                return r;
        return watch_open(&h->watch, (const int[]){h->origin.child.pidfd, h->client.child.pidfd}, 2, STUCK_NS, err);
}

static int http_prepare(struct boundary *b, const char *name, const struct node *config, struct workload **ret,
                        struct err *err)
{
        struct http *h = calloc(1, sizeof(*h));
        int r;

        if (!h)
                return err_set_nomem(err);
        h->base.ops = &http_ops;
        h->enclosure = enclosure_of(b);
        h->origin = (struct origin)ORIGIN_INIT;
        h->client = (struct command)COMMAND_INIT;
        h->watch = (struct watch)WATCH_INIT;
        r = http_build(h, config, err);
        if (r < 0) {
                http_free(&h->base);
                return r;
        }
        *ret = &h->base;
        return 0;
}

static int http_start(struct workload *w, int64_t start_ns, struct err *err)
{
        struct http *h = http_of(w);
        int r = child_go(&h->origin.child, 0, err);

        return r < 0 ? r : child_go(&h->client.child, start_ns, err);
}

static int http_event_fd(const struct workload *w)
{
        return ((const struct http *)w)->watch.epoll;
}

static int http_stop(struct workload *w, struct err *err)
{
        struct http *h = http_of(w);
        int r = client_wait(&h->client, err);

        if (origin_stop(&h->origin, r < 0 ? NULL : err) < 0 && r >= 0)
                r = -EPIPE;
        return r;
}

/* Each sample is start, connect, first byte and request. */
static int write_samples(const json_t *samples, struct sample_writer *out, struct err *err)
{
        json_t *sample;
        size_t i;

        json_array_foreach(samples, i, sample)
        {
                int64_t row[] = {(int64_t)i, 0, 0, 0};
                int r;

                for (size_t j = 1; j < ARRAY_SIZE(row); j++)
                        if (client_sample_ns(json_array_get(sample, ARRAY_SIZE(row) - j), &row[j]) < 0)
                                return err_set(err, ERR_ENVIRONMENT, EINVAL,
                                               "the client's sample %zu is not four durations", i);
                r = sample_write(out, row, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int http_collect(struct workload *w, struct sample_writer *out, struct workload_result *ret, struct err *err)
{
        _cleanup_client_result_ struct client_result result = {0};
        struct http *h = http_of(w);
        int r;

        r = client_read(&h->client, (size_t)(h->keys.warmup + h->keys.requests), &result, err);
        if (r >= 0)
                r = write_samples(result.samples, out, err);
        if (r < 0)
                return r;
        ret->counts = client_counts(&result, h->keys.requests, h->keys.warmup);
        ret->notes = json_pack("{s:O, s:O, s:o*, s:o*}", "client", result.notes, "failures", result.failures, "origin",
                               http_origin_notes_json(h->origin.http), "origin_counts",
                               http_origin_counts_json(h->origin.http));
        return ret->counts && ret->notes ? 0 : err_set_nomem(err);
}

const struct workload_ops http_ops = {
        .columns = columns,
        .n_columns = ARRAY_SIZE(columns),
        .prepare = http_prepare,
        .start = http_start,
        .event_fd = http_event_fd,
        .stop = http_stop,
        .collect = http_collect,
        .free = http_free,
};
