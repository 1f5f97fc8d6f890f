/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/print-http.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/macro.h"
#include "base/number.h"
#include "cli/print-probe.h"
#include "cli/table.h"
#include "stats/quantile.h"
#include "stats/sort.h"

static const char *const names[] = {
        [PRINT_HTTP_REQUEST] = "request",
        [PRINT_HTTP_CONNECT] = "connect",
        [PRINT_HTTP_FIRST_BYTE] = "first_byte",
};

static int64_t value_of(const struct http_sample *s, enum print_http_figure figure)
{
        switch (figure) {
        case PRINT_HTTP_REQUEST:
                return s->request_ns;
        case PRINT_HTTP_CONNECT:
                return s->connect_ns;
        default:
                return s->first_byte_ns;
        }
}

static int64_t quantile_of(const uint64_t *sorted, size_t n, size_t failed, uint32_t ppm)
{
        uint64_t value;

        if (!quantile_publishable(n + failed, ppm) || quantile_at(sorted, n, failed, ppm, &value) < 0)
                return SAMPLE_MISSING;
        return value == QUANTILE_LOST ? FIGURE_LOST : (int64_t)value;
}

int print_http_take(const struct http_client *client, size_t from, size_t to, enum print_http_figure figure,
                    struct print_http_values *ret)
{
        size_t known, warmup, n = 0, failed = 0;
        const struct http_sample *s = http_client_samples(client, &known, &warmup);
        _cleanup_free_ uint64_t *values = calloc(2 * MAX(to - from, (size_t)1), sizeof(*values));

        if (!values)
                return -ENOMEM;
        for (size_t i = from; i < MIN(to, known); i++) {
                if (!__atomic_load_n(&s[i].is_done, __ATOMIC_ACQUIRE))
                        continue;
                if (s[i].failure != HTTP_FAILURE_NONE)
                        failed++;
                else if (value_of(&s[i], figure) != SAMPLE_MISSING)
                        values[n++] = (uint64_t)value_of(&s[i], figure);
        }
        if (n == 0)
                return -ENODATA;
        sort_u64(values, values + (to - from), n);
        *ret = (struct print_http_values){
                .n = n,
                .min = (int64_t)values[0],
                .max = failed > 0 ? FIGURE_LOST : (int64_t)values[n - 1],
                .p50 = quantile_of(values, n, failed, 500000),
                .p95 = quantile_of(values, n, failed, 950000),
                .p99 = quantile_of(values, n, failed, 990000),
        };
        return 0;
}

static void add_figures(const struct http_client *client, struct text *out)
{
        _cleanup_table_ struct table table;
        size_t n, warmup;

        http_client_samples(client, &n, &warmup);
        table_init(&table, "lrrrrrr");
        for (size_t i = 0; i < 7; i++)
                table_add(&table, (const char *const[]){"", "p50", "p95", "p99", "min", "max", "values"}[i]);
        for (int f = 0; f < PRINT_HTTP_FIGURES; f++) {
                struct print_http_values v;
                char buf[48];

                if (print_http_take(client, warmup, n, (enum print_http_figure)f, &v) < 0)
                        continue;
                table_add(&table, names[f]);
                table_add(&table, print_probe_ns(v.p50, buf));
                table_add(&table, print_probe_ns(v.p95, buf));
                table_add(&table, print_probe_ns(v.p99, buf));
                table_add(&table, print_probe_ns(v.min, buf));
                table_add(&table, print_probe_ns(v.max, buf));
                table_addf(&table, "%zu", v.n);
        }
        table_render(&table, 2, out);
}

static void add_failures(const struct http_client *client, struct text *out)
{
        _cleanup_json_ json_t *failures = http_client_failures_json(client);
        const json_t *one;
        size_t i;

        json_array_foreach(failures, i, one)
        {
                text_addf(out, "  failed %" JSON_INTEGER_FORMAT ": %s (first: request %" JSON_INTEGER_FORMAT ")\n",
                          json_integer_value(json_object_get(one, "count")),
                          json_string_value(json_object_get(one, "cause")),
                          json_integer_value(json_object_get(one, "first")));
        }
}

void print_http_text(const struct http_client *client, struct text *out)
{
        struct http_client_counts c;
        char rate[48], bits[48], hex[DIGEST_HEX_SIZE];
        struct digest digest;

        http_client_count(client, &c);
        add_figures(client, out);
        text_addf(out,
                  "\n  %" PRIu64 " requests: %" PRIu64 " completed on %" PRIu64 " new connections, %" PRIu64
                  " failed\n",
                  c.requests, c.completed, c.connections, c.failed);
        text_addf(out, "  %s requests/s; %" PRIu64 " bytes of body, %s mbit while a request was under way\n",
                  number_format_scaled((int64_t)c.requests_per_ks, 1000, 1, rate), c.body_bytes,
                  number_format_scaled((int64_t)c.throughput_bps, 1000000, 1, bits));
        if (http_client_digest(client, &digest))
                text_addf(out, "  SHA-256 of each body: %s\n", digest_format(&digest, hex));
        add_failures(client, out);
}

static json_t *value_json(int64_t ns)
{
        if (ns == SAMPLE_MISSING)
                return json_null();
        return ns == FIGURE_LOST ? json_string("lost") : json_integer(ns);
}

static json_t *figures_json(const struct http_client *client)
{
        _cleanup_json_ json_t *object = json_object();
        size_t n, warmup;

        http_client_samples(client, &n, &warmup);
        for (int f = 0; f < PRINT_HTTP_FIGURES; f++) {
                struct print_http_values v;

                if (print_http_take(client, warmup, n, (enum print_http_figure)f, &v) < 0)
                        continue;
                if (json_object_set_new(object, names[f],
                                        json_pack("{s:I,s:o,s:o,s:o,s:o,s:o}", "values", (json_int_t)v.n, "p50_ns",
                                                  value_json(v.p50), "p95_ns", value_json(v.p95), "p99_ns",
                                                  value_json(v.p99), "min_ns", value_json(v.min), "max_ns",
                                                  value_json(v.max))) < 0)
                        return NULL;
        }
        return TAKE_PTR(object);
}

/* In the order in which they were begun; one that was not brought to its end has no values. */
static json_t *samples_json(const struct http_client *client)
{
        _cleanup_json_ json_t *list = json_array();
        size_t n, warmup;
        const struct http_sample *s = http_client_samples(client, &n, &warmup);

        for (size_t i = 0; i < n; i++)
                if (json_array_append_new(list, json_pack("[o,o,o,o]", value_json(s[i].start_ns - s[0].start_ns),
                                                          value_json(s[i].connect_ns), value_json(s[i].first_byte_ns),
                                                          value_json(s[i].request_ns))) < 0)
                        return NULL;
        return TAKE_PTR(list);
}

json_t *print_http_json(const struct http_client *client, bool with_samples)
{
        _cleanup_json_ json_t *object = NULL;
        size_t n, warmup;

        http_client_samples(client, &n, &warmup);
        object = json_pack("{s:i,s:o,s:o,s:o,s:o,s:I}", "assay", 1, "counts", http_client_counts_json(client),
                           "figures", figures_json(client), "failures", http_client_failures_json(client), "notes",
                           http_client_notes_json(client), "warmup_requests", (json_int_t)warmup);
        if (with_samples && object && json_object_set_new(object, "samples", samples_json(client)) < 0)
                return NULL;
        return TAKE_PTR(object);
}
