/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Trials made up in a test: a trial.json and probe samples, as the campaign writes them. */

#include "archive/samples.h"
#include "base/json.h"
#include "base/macro.h"
#include "tests/test.h"

/* The columns of a probe, docs/formats/samples.md. */
static const struct column synthetic_columns[] = {
        {"slot", "index", SAMPLE_CLOCK_NONE, ""},      {"lateness_ns", "ns", SAMPLE_CLOCK_MONOTONIC, ""},
        {"ksend_ns", "ns", SAMPLE_CLOCK_REALTIME, ""}, {"precv_ns", "ns", SAMPLE_CLOCK_PEER, ""},
        {"residence_ns", "ns", SAMPLE_CLOCK_PEER, ""}, {"krtt_ns", "ns", SAMPLE_CLOCK_REALTIME, ""},
        {"urtt_ns", "ns", SAMPLE_CLOCK_MONOTONIC, ""},
};

enum { SLOT, LATENESS, KSEND, PRECV, RESIDENCE, KRTT, URTT, SYNTHETIC_COLUMNS };

struct synthetic_row {
        int64_t values[SYNTHETIC_COLUMNS];
};

/* An answered slot: 50 ns late, 5 us in the reflector, @rtt_ns between the kernel's stamps less that, and 10 us more
 * between the user's. */
static inline struct synthetic_row synthetic_answer(int64_t slot, int64_t rtt_ns)
{
        return (struct synthetic_row){{slot, 50, 3000, 9000, 5000, rtt_ns + 5000, rtt_ns + 15000}};
}

static inline struct synthetic_row synthetic_lost(int64_t slot)
{
        return (struct synthetic_row){{slot, 50, 3000, SAMPLE_MISSING, SAMPLE_MISSING, SAMPLE_MISSING, SAMPLE_MISSING}};
}

static inline struct synthetic_row synthetic_missed(int64_t slot)
{
        struct synthetic_row row;

        for (size_t c = 0; c < SYNTHETIC_COLUMNS; c++)
                row.values[c] = c == SLOT ? slot : SAMPLE_MISSING;
        return row;
}

static inline void synthetic_write(int dirfd, const struct column *columns, size_t n_columns, const int64_t *values,
                                   size_t n_rows)
{
        _cleanup_samples_writer_ struct samples_writer *writer = NULL;
        struct err err = {0};
        int r;

        r = samples_create(dirfd, "samples.csv.zst", columns, n_columns, &writer, &err);
        for (size_t i = 0; i < n_rows && r >= 0; i++)
                r = sample_write(samples_writer_base(writer), values + i * n_columns, &err);
        if (r >= 0)
                r = samples_finish(writer, &err);
        if (r < 0)
                fail_msg("%s", err.text);
}

static inline void synthetic_samples(int dirfd, const struct synthetic_row *rows, size_t n)
{
        synthetic_write(dirfd, synthetic_columns, SYNTHETIC_COLUMNS, rows[0].values, n);
}

/* Content of a valid trial.json of round 1 of the first campaign; a new reference. */
static inline json_t *synthetic_trial(const char *name, const char *cell, int slots, int warmup_slots)
{
        json_t *trial =
                json_pack("{s:i, s:s, s:i, s:s, s:i, s:i, s:i, s:s, s:s, s:s, s:I, s:I, s:{}, s:{s:i, s:i}, s:{}, s:{},"
                          " s:{s:{s:b}, s:{s:b}}, s:{s:i}, s:b, s:s}",
                          "assay", 1, "trial", name, "index", 1, "cell", cell, "round", 1, "extra", 0, "campaign", 1,
                          "seed", "0000000000000001", "host", "h", "failure", "", "started_realtime_ns", (json_int_t)5,
                          "ended_realtime_ns", (json_int_t)9, "boundary", "counts", "slots", slots, "warmup_slots",
                          warmup_slots, "notes", "background", "proof", "before", "holds", 1, "after", "holds", 1,
                          "clock", "realtime_step_ns", 0, "valid", 1, "reason", "");

        assert_non_null(trial);
        return trial;
}

/* Lays JSON text over @into. */
static inline void synthetic_patch(json_t *into, const char *patch)
{
        _cleanup_json_ json_t *over = NULL;
        struct err err = {0};

        if (json_parse(span_of_text(patch), "patch", &over, &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(json_object_update_recursive(into, over), 0);
}
