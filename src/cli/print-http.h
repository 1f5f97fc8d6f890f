/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "load/http-client.h"

/* The result of `assay http get`. */

/* One of the durations of a request. */
enum print_http_figure { PRINT_HTTP_REQUEST, PRINT_HTTP_CONNECT, PRINT_HTTP_FIRST_BYTE, PRINT_HTTP_FIGURES };

struct print_http_values {
        size_t n;
        int64_t min, max, p50, p95, p99; /* SAMPLE_MISSING where there are too few; FIGURE_LOST on a failed request */
};

/* print_http_take - the figure over samples @from to @to - 1, as far as they are done; failed requests rank above all
 *
 * Return: 0; -ENODATA where there is not one value; -ENOMEM.
 */
int print_http_take(const struct http_client *client, size_t from, size_t to, enum print_http_figure figure,
                    struct print_http_values *ret);

/* print_http_text - for people: figures, counts, and what failed */
void print_http_text(const struct http_client *client, struct text *out);

/* print_http_json - the same as an object, durations in ns
 * @with_samples: also "samples", for each request an array of its start (from the first one's), connect, first byte and
 *                request; a duration that there is none of is null
 *
 * Return: a new reference, or NULL if memory ran out.
 */
json_t *print_http_json(const struct http_client *client, bool with_samples);
