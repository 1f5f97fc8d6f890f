/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Samples are rows of integers. Who measures describes the columns and writes rows; who stores them (the archive's
 * codec) implements the writer. Neither knows the other. */

/* A value that was not observed: an empty field in the file. Never 0, never a sample. */
#define SAMPLE_MISSING INT64_MIN

#define SAMPLE_COLUMNS_MAX 16

/* sample_interval - from one stamp to another of the same clock; missing where either is. Stamps of a peer may be
 * anything: an interval that does not fit is the longest, or the most negative, that does. */
static inline int64_t sample_interval(int64_t from_ns, int64_t to_ns)
{
        int64_t ns;

        if (from_ns == SAMPLE_MISSING || to_ns == SAMPLE_MISSING)
                return SAMPLE_MISSING;
        if (__builtin_sub_overflow(to_ns, from_ns, &ns))
                return to_ns > from_ns ? INT64_MAX : SAMPLE_MISSING + 1;
        return ns == SAMPLE_MISSING ? SAMPLE_MISSING + 1 : ns;
}

enum sample_clock {
        SAMPLE_CLOCK_NONE, /* a count or an index */
        SAMPLE_CLOCK_MONOTONIC,
        SAMPLE_CLOCK_REALTIME,
        SAMPLE_CLOCK_PEER, /* the clock of the other end, whatever it is */
};

struct column {
        const char *name; /* letters, digits and "_"; ends in its unit: "lateness_ns", "slot" */
        const char *unit; /* "ns", "count", "bytes", "index" */
        enum sample_clock clock;
        const char *meaning; /* one sentence, for the format's documentation */
};

struct sample_writer;

struct sample_writer_ops {
        /* one row of as many values as the writer has columns, in their order */
        int (*row)(struct sample_writer *w, const int64_t *values, struct err *err);
};

struct sample_writer {
        const struct sample_writer_ops *ops;
        const struct column *columns;
        size_t n_columns;
};

static inline int sample_write(struct sample_writer *w, const int64_t *values, struct err *err)
{
        return w->ops->row(w, values, err);
}
