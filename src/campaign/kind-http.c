/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kind-http.h"

#include <limits.h>

#include "base/clock.h"
#include "campaign/enclosure.h"
#include "campaign/origin.h"
#include "campaign/watch.h"

#define EXIT_NS      (2 * NSEC_PER_SEC)
#define STUCK_NS     (120 * NSEC_PER_SEC) /* a client that runs so long does not end any more */
#define RESULT_BYTES ((size_t)64 << 20)

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

static void add_quantity(struct command_line *line, const char *option, int64_t value, const char *unit)
{
        command_line_add(line, "%s", option);
        command_line_add(line, "%lld%s", (long long)value, unit);
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
        char self[PATH_MAX];
        int r;

        r = command_self(self, sizeof(self), err);
        if (r < 0)
                return r;
        command_line_add(&line, "%s", self);
        command_line_add(&line, "http");
        command_line_add(&line, "get");
        command_line_add(&line, "--quiet");
        command_line_add(&line, "--json");
        command_line_add(&line, "--samples");
        if (k->connection > 0)
                command_line_add(&line, "--keep-alive");
        add_quantity(&line, "--count", k->requests, "");
        add_quantity(&line, "--warmup", k->warmup, "");
        add_quantity(&line, "--threads", k->threads, "");
        add_quantity(&line, "--timeout", k->timeout_ns, "ns");
        add_quantity(&line, "--cpu", k->cpu, "");
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

/* The client says by 1 that a request failed: then its result names the failures. */
static int http_stop(struct workload *w, struct err *err)
{
        struct http *h = http_of(w);
        char complaint[400];
        int r, code = 0;

        r = command_wait(&h->client, EXIT_NS, &code, err);
        if (origin_stop(&h->origin, r < 0 ? NULL : err) < 0 && r >= 0)
                r = -EPIPE;
        if (r < 0 || code == 0 || code == 1)
                return r;
        command_complaint(&h->client, complaint, sizeof(complaint));
        return err_set(err, ERR_ENVIRONMENT, EIO, "the client exited with status %d: %s", code, complaint);
}

static int take_ns(const json_t *sample, size_t i, int64_t *ret)
{
        const json_t *value = json_array_get(sample, i);

        if (json_is_null(value)) {
                *ret = SAMPLE_MISSING;
                return 0;
        }
        *ret = json_integer_value(value);
        return json_is_integer(value) && *ret >= 0 ? 0 : -EINVAL;
}

/* Each sample is start, connect, first byte and request. */
static int write_samples(const struct http *h, json_t *samples, struct sample_writer *out, struct err *err)
{
        size_t expected = (size_t)(h->keys.warmup + h->keys.requests), i;
        json_t *sample;

        if (json_array_size(samples) != expected)
                return err_set(err, ERR_ENVIRONMENT, ENODATA, "the client made %zu of %zu requests",
                               json_array_size(samples), expected);
        json_array_foreach(samples, i, sample)
        {
                int64_t row[] = {(int64_t)i, 0, 0, 0};
                int r;

                if (take_ns(sample, 3, &row[1]) < 0 || take_ns(sample, 2, &row[2]) < 0 ||
                    take_ns(sample, 1, &row[3]) < 0)
                        return err_set(err, ERR_ENVIRONMENT, EINVAL, "the client's sample %zu is not four durations",
                                       i);
                r = sample_write(out, row, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int collect_result(const struct http *h, json_t *result, struct sample_writer *out, struct workload_result *ret,
                          struct err *err)
{
        json_t *counts, *notes, *failures, *samples;
        int r;

        r = json_get_object(result, "the client's result", "counts", &counts, err);
        if (r >= 0)
                r = json_get_object(result, "the client's result", "notes", &notes, err);
        if (r >= 0)
                r = json_get_array(result, "the client's result", "failures", &failures, err);
        if (r >= 0)
                r = json_get_array(result, "the client's result", "samples", &samples, err);
        if (r >= 0)
                r = write_samples(h, samples, out, err);
        if (r < 0)
                return r;
        ret->counts = json_pack("{s:I, s:I}", "slots", (json_int_t)h->keys.warmup + h->keys.requests, "warmup_slots",
                                (json_int_t)h->keys.warmup);
        ret->notes = json_pack("{s:O, s:O, s:o*, s:o*}", "client", notes, "failures", failures, "origin",
                               http_origin_notes_json(h->origin.http), "origin_counts",
                               http_origin_counts_json(h->origin.http));
        if (!ret->counts || !ret->notes || json_object_update_missing(ret->counts, counts) < 0)
                return err_set_nomem(err);
        return 0;
}

static int http_collect(struct workload *w, struct sample_writer *out, struct workload_result *ret, struct err *err)
{
        struct http *h = http_of(w);
        _cleanup_json_ json_t *result = NULL;
        _cleanup_free_ char *text = NULL;
        size_t len;
        int r;

        r = command_output(&h->client, RESULT_BYTES, &text, &len, err);
        if (r >= 0)
                r = json_parse(span_of(text, len), "the client's result", &result, err);
        return r < 0 ? r : collect_result(h, result, out, ret, err);
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
