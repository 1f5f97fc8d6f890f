/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "base/text.h"

/* Scrapes: counters and gauges with integer values, in the text format of OpenMetrics 1.0, without timestamps. */

enum openmetrics_type { OPENMETRICS_GAUGE, OPENMETRICS_COUNTER };

struct openmetrics_label {
        const char *name; /* [a-zA-Z][a-zA-Z0-9_]* */
        const char *value;
};

#define OPENMETRICS_LABELS_MAX 8
#define OPENMETRICS_NAME_MAX   120

/* Writes one scrape. Initialise with .out alone; the first mistake (a bad name, text that is not UTF-8, a counter below
 * 0) is kept, and openmetrics_end() reports it. */
struct openmetrics_writer {
        struct text *out;
        enum openmetrics_type type;
        char family[OPENMETRICS_NAME_MAX + 1];
        const char *fault;
};

/* openmetrics_family - start a family of metrics; its samples follow
 * @name:  without "_total", which a counter's samples get; it ends in the unit where there is one: "assay_sent_bytes".
 *         No other family has it.
 * @unit:  such as "bytes"; NULL for none
 * @help:  one sentence
 */
void openmetrics_family(struct openmetrics_writer *w, enum openmetrics_type type, const char *name, const char *unit,
                        const char *help);

/* openmetrics_sample - one value of the family
 * @labels:  at most OPENMETRICS_LABELS_MAX; their values may hold any UTF-8
 */
void openmetrics_sample(struct openmetrics_writer *w, const struct openmetrics_label *labels, size_t n_labels,
                        int64_t value);

/* openmetrics_end - end the scrape
 *
 * Return: 0; -EINVAL with the reason (kind bug) where something was not writable; -ENOMEM.
 */
int openmetrics_end(struct openmetrics_writer *w, struct err *err);

/* A scrape that was read back. Strings live as long as it does. */
struct openmetrics_set {
        char *data;
        size_t n_families, families_allocated;
        struct openmetrics_metadata {
                const char *name;
                const char *unit, *help; /* "" where there is none */
                enum openmetrics_type type;
                bool has_type, has_unit, has_help;
                size_t first_sample, n_samples;
        } * families;
        size_t n_samples, samples_allocated;
        struct openmetrics_point {
                size_t n_labels;
                struct openmetrics_label labels[OPENMETRICS_LABELS_MAX]; /* sorted by name */
                int64_t value;
        } * samples;
};

#define OPENMETRICS_BYTES_MAX   (4u << 20)
#define OPENMETRICS_SAMPLES_MAX 4096

/* openmetrics_parse - read a scrape as strictly as OpenMetrics 1.0 is written, and of it only what the writer writes:
 * gauges and counters, integers, no timestamps, no exemplars
 * @name: what to call it in an error
 *
 * Return: 0, and openmetrics_done() releases @ret; a negative errno with the reason (kind data, with the line).
 */
int openmetrics_parse(struct span s, const char *name, struct openmetrics_set *ret, struct err *err);

void openmetrics_done(struct openmetrics_set *set);

#define _cleanup_openmetrics_ _cleanup_(openmetrics_done)

/* openmetrics_value - the value of the sample of @family that has exactly @labels. Return: 0 or -ENOENT. */
int openmetrics_value(const struct openmetrics_set *set, const char *family, const struct openmetrics_label *labels,
                      size_t n_labels, int64_t *ret);
