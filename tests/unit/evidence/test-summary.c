/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "evidence/summary.h"
#include "stats/bounds.h"
#include "tests/unit/evidence/synthetic.h"

/* Archives made up in a test: cells a/idle and b/idle, trials of SLOTS slots. */

#define SLOTS  320
#define WARMUP 20

struct fixture {
        struct scratch scratch;
        struct archive *archive;
        struct manifest manifest;
        struct manifest_cell cells[2];
        struct plan plan;
};

static int setup(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));

        if (!f)
                return -1;
        f->scratch = scratch_make();
        f->cells[0].name = (char *)"a/idle";
        f->cells[1].name = (char *)"b/idle";
        f->manifest = (struct manifest){.sha256 = "0123", .n_cells = 2, .cells = f->cells, .rounds = 8, .campaigns = 1};
        f->plan = (struct plan){.manifest = &f->manifest};
        *state = f;
        return archive_create(f->scratch.fd, "archive", &f->archive, NULL);
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        archive_free(f->archive);
        scratch_remove(&f->scratch);
        free(f);
        return 0;
}

/* One trial to be made: all slots answered in @rtt_ns, but the last @lost of them. */
struct made {
        const char *cell;
        int round, extra;
        int64_t rtt_ns;
        size_t lost;
        const char *patch; /* laid over its trial.json; NULL: none */
};

static void make_named(struct fixture *f, const char *name, const struct made *made)
{
        _cleanup_json_ json_t *trial = synthetic_trial(name, made->cell, SLOTS, WARMUP);
        _cleanup_json_ json_t *line = json_pack("{s:s, s:s}", "event", "trial", "trial", name);
        struct synthetic_row rows[SLOTS];
        _cleanup_close_ int dirfd = -1;
        struct err err = {0};

        json_object_set_new(trial, "round", json_integer(made->round));
        json_object_set_new(trial, "extra", json_integer(made->extra));
        if (made->patch)
                synthetic_patch(trial, made->patch);
        for (int64_t i = 0; i < SLOTS; i++)
                rows[i] = i < SLOTS - (int64_t)made->lost ? synthetic_answer(i, made->rtt_ns) : synthetic_lost(i);
        dirfd = archive_trial_begin(f->archive, name, &err);
        assert_true(dirfd >= 0);
        synthetic_samples(dirfd, rows, SLOTS);
        assert_int_equal(json_save(dirfd, "trial.json", trial, &err), 0);
        if (archive_trial_commit(f->archive, name, line, &err) < 0)
                fail_msg("%s", err.text);
}

static void make(struct fixture *f, struct made made)
{
        char name[64];

        snprintf(name, sizeof(name), "%c-r%d-x%d", made.cell[0], made.round, made.extra);
        make_named(f, name, &made);
}

/* Rounds @first to @last of both cells, valid, round r in r us. */
static void make_rounds(struct fixture *f, int first, int last)
{
        for (int r = first; r <= last; r++) {
                make(f, (struct made){.cell = "a/idle", .round = r, .rtt_ns = r * 1000});
                make(f, (struct made){.cell = "b/idle", .round = r, .rtt_ns = r * 2000});
        }
}

static json_t *summarise(struct fixture *f)
{
        struct err err = {0};
        json_t *summary = NULL;

        if (summary_make(f->archive, &f->plan, &summary, &err) < 0)
                fail_msg("%s", err.text);
        return summary;
}

static void expect_error(struct fixture *f, const char *part)
{
        struct err err = {0};
        json_t *summary = NULL;

        assert_true(summary_make(f->archive, &f->plan, &summary, &err) < 0);
        assert_null(summary);
        assert_int_equal(err.kind, ERR_DATA);
        if (!strstr(err.text, part))
                fail_msg("\"%s\" is not in \"%s\"", part, err.text);
}

/* The value at a path of keys and indices: "cells.0.loss.ppb". Keys hold no full stop but those of quantiles
 * ("p99.9_ns"), which are not asked for here. */
static const json_t *at(const json_t *json, const char *path)
{
        char copy[128], *rest = copy, *part;

        snprintf(copy, sizeof(copy), "%s", path);
        while ((part = strsep(&rest, ".")))
                json = json_is_array(json) ? json_array_get(json, (size_t)atoi(part)) : json_object_get(json, part);
        return json;
}

static int64_t number(const json_t *json, const char *path)
{
        const json_t *value = at(json, path);

        if (!json_is_integer(value))
                fail_msg("%s is no integer", path);
        return json_integer_value(value);
}

static void test_cells_and_rounds(void **state)
{
        struct fixture *f = *state;
        _cleanup_json_ json_t *s = NULL;

        make_rounds(f, 1, 8);
        s = summarise(f);
        assert_int_equal(number(s, "rounds.planned"), 8);
        assert_int_equal(number(s, "rounds.counted"), 8);
        assert_string_equal(json_string_value(at(s, "cells.0.cell")), "a/idle");
        assert_string_equal(json_string_value(at(s, "cells.1.cell")), "b/idle");
        assert_int_equal(json_array_size(at(s, "invalid")), 0);
        assert_int_equal(json_array_size(at(s, "disputed")), 0);
        assert_int_equal(number(s, "cells.0.trials.2.sent"), SLOTS - WARMUP);
        assert_int_equal(number(s, "cells.0.trials.2.series.rtt.p99_ns"), 3000);
        assert_int_equal(number(s, "cells.0.trials.2.series.rtt_user.p50_ns"), 13000 + 5000);
        assert_int_equal(number(s, "cells.0.trials.2.series.lateness.p50_ns"), 50);
        assert_null(json_object_get(at(s, "cells.0.trials.2.series.rtt"), "p99.9_ns")); /* 300 of 2995 */
        assert_int_equal(number(s, "cells.0.series.rtt.p99_ns.rounds"), 8);
        assert_int_equal(number(s, "cells.0.series.rtt.p99_ns.median"), 4000);
        assert_int_equal(number(s, "cells.0.series.rtt.p99_ns.lower"), 2000);
        assert_int_equal(number(s, "cells.0.series.rtt.p99_ns.upper"), 7000);
        assert_int_equal(number(s, "cells.1.series.rtt.p99_ns.median"), 8000);
}

/* 8 of 2400 lost: 3333333 ppb, exact bounds from scipy.stats.beta 1.10.1. */
static void test_losses(void **state)
{
        struct fixture *f = *state;
        _cleanup_json_ json_t *s = NULL;

        make(f, (struct made){.cell = "a/idle", .round = 1, .rtt_ns = 1000, .lost = 4});
        make(f, (struct made){.cell = "a/idle", .round = 2, .rtt_ns = 1000, .lost = 4});
        make(f, (struct made){.cell = "b/idle", .round = 1, .rtt_ns = 1000});
        make(f, (struct made){.cell = "b/idle", .round = 2, .rtt_ns = 1000});
        make_rounds(f, 3, 8);
        s = summarise(f);
        assert_int_equal(number(s, "cells.0.pooled.sent"), 2400);
        assert_int_equal(number(s, "cells.0.pooled.lost"), 8);
        assert_int_equal(number(s, "cells.0.pooled.received"), 2392);
        assert_int_equal(number(s, "cells.0.loss.ppb"), 3333333);
        assert_int_equal(number(s, "cells.0.loss.lower_ppb"), 1659720);
        assert_int_equal(number(s, "cells.0.loss.upper_ppb"), 6006376);
        assert_string_equal(json_string_value(at(s, "cells.0.trials.0.series.rtt.p99_ns")),
                            "lost"); /* rank 297 of 300 */
        assert_int_equal(number(s, "cells.0.trials.0.series.rtt.p95_ns"), 1000);
        assert_int_equal(number(s, "cells.1.loss.ppb"), 0);
}

static void test_invalid_trial_and_extra_round(void **state)
{
        struct fixture *f = *state;
        _cleanup_json_ json_t *s = NULL;

        f->manifest.campaigns = 2;
        make_rounds(f, 1, 2);
        make(f, (struct made){.cell = "a/idle", .round = 3, .rtt_ns = 77, .lost = 10});
        make(f, (struct made){.cell = "b/idle",
                              .round = 3,
                              .rtt_ns = 77,
                              .patch = "{\"failure\": \"the reflector died\", \"valid\": false}"});
        make_rounds(f, 4, 8);
        make(f, (struct made){.cell = "b/idle", .extra = 1, .rtt_ns = 5000});
        make(f, (struct made){.cell = "a/idle", .extra = 1, .rtt_ns = 6000});
        s = summarise(f);
        assert_int_equal(number(s, "rounds.counted"), 8);
        assert_int_equal(json_array_size(at(s, "invalid")), 1);
        assert_string_equal(json_string_value(at(s, "invalid.0.trial")), "b-r3-x0");
        assert_string_equal(json_string_value(at(s, "invalid.0.reason")), "the reflector died");
        assert_int_equal(number(s, "cells.0.trials.2.extra"), 1); /* stands for round 3, in its campaign */
        assert_int_equal(number(s, "cells.0.trials.2.position"), 3);
        assert_int_equal(number(s, "cells.0.trials.2.campaign"), 1);
        assert_int_equal(number(s, "cells.0.trials.4.campaign"), 2);
        assert_int_equal(number(s, "cells.0.trials.2.series.rtt.p99_ns"), 6000);
        assert_int_equal(json_array_size(at(s, "cells.1.trials")), 8); /* the invalid one is no sample */
        assert_int_equal(json_array_size(at(s, "cells.0.trials")), 9); /* round 3 of a is valid, but does not count */
        assert_int_equal(number(s, "cells.0.trials.8.position"), 0);
        assert_int_equal(number(s, "cells.0.trials.8.campaign"), 0);
        assert_int_equal(number(s, "cells.0.pooled.lost"), 10); /* except for its losses */
        assert_int_equal(number(s, "cells.0.series.rtt.p99_ns.rounds"), 8);
}

/* Each extra round takes one place, the first whole one the first place. */
static void test_extra_rounds_take_one_place_each(void **state)
{
        struct fixture *f = *state;
        _cleanup_json_ json_t *s = NULL;

        make_rounds(f, 1, 5);
        make(f,
             (struct made){.cell = "a/idle", .round = 6, .rtt_ns = 1000}); /* its b, and rounds 7 and 8, were not run */
        make(f, (struct made){.cell = "a/idle", .extra = 1, .rtt_ns = 1000}); /* not whole either */
        make(f, (struct made){.cell = "a/idle", .extra = 2, .rtt_ns = 2000});
        make(f, (struct made){.cell = "b/idle", .extra = 2, .rtt_ns = 2000});
        s = summarise(f);
        assert_int_equal(number(s, "rounds.counted"), 6);
        assert_int_equal(number(s, "cells.0.trials.5.position"), 6);
        assert_int_equal(number(s, "cells.0.trials.5.extra"), 2);
        assert_int_equal(number(s, "cells.0.trials.6.position"), 0);
        assert_int_equal(number(s, "cells.0.trials.7.position"), 0);
}

static void test_rounds_that_are_lacking(void **state)
{
        struct fixture *f = *state;
        _cleanup_json_ json_t *s = NULL;

        make_rounds(f, 1, 6);
        make(f, (struct made){.cell = "a/idle", .round = 7, .rtt_ns = 1000});
        s = summarise(f);
        assert_int_equal(number(s, "rounds.counted"), 6);
        assert_int_equal(number(s, "cells.0.series.rtt.p50_ns.rounds"), 6);
}

static void test_no_trials(void **state)
{
        struct fixture *f = *state;
        _cleanup_json_ json_t *s = summarise(f);

        assert_int_equal(number(s, "rounds.counted"), 0);
        assert_null(at(s, "cells.0.loss"));
        assert_int_equal(json_object_size(at(s, "cells.0.series")), 0);
}

static void test_warmup_rounds_are_left_out(void **state)
{
        struct fixture *f = *state;
        _cleanup_json_ json_t *s = NULL;

        make(f, (struct made){.cell = "a/idle", .rtt_ns = 999});
        make_rounds(f, 1, 8);
        s = summarise(f);
        assert_int_equal(number(s, "warmup_trials"), 1);
        assert_int_equal(json_array_size(at(s, "cells.0.trials")), 8);
}

static void test_skipped_cells(void **state)
{
        struct fixture *f = *state;
        _cleanup_json_ json_t *s = NULL;
        size_t skipped = 0;

        f->plan.n_skipped = 1;
        f->plan.skipped = &skipped;
        for (int r = 1; r <= 8; r++)
                make(f, (struct made){.cell = "b/idle", .round = r, .rtt_ns = 1000});
        s = summarise(f);
        assert_int_equal(number(s, "rounds.counted"), 8);
        assert_int_equal(json_array_size(at(s, "cells")), 1);
        assert_null(summary_cell(s, "a/idle"));
        assert_non_null(summary_cell(s, "b/idle"));
        make(f, (struct made){.cell = "a/idle", .round = 1, .rtt_ns = 1000});
        expect_error(f, "the plan has no cell \"a/idle\"");
}

/* What trial.json says of its own validity is compared, not believed. */
static void test_disputed(void **state)
{
        struct fixture *f = *state;
        _cleanup_json_ json_t *s = NULL;

        make_rounds(f, 1, 7);
        make(f, (struct made){.cell = "a/idle", .round = 8, .patch = "{\"proof\": {\"after\": {\"holds\": false}}}"});
        make(f, (struct made){.cell = "b/idle", .round = 8, .rtt_ns = 1000, .patch = "{\"valid\": false}"});
        s = summarise(f);
        assert_int_equal(number(s, "rounds.counted"), 7);
        assert_string_equal(json_string_value(at(s, "invalid.0.trial")), "a-r8-x0");
        assert_int_equal(json_array_size(at(s, "disputed")), 2);
}

static void test_background(void **state)
{
        static const char load[] = "{\"background\": {\"noise\": {\"duration_ns\": 2000000000, \"ceiling_bps\": 1,"
                                   " \"offered_bytes\": 150000000, \"sent_bytes\": 149000000, \"delivered_bytes\":"
                                   " 125000000, \"dropped_packets\": 17, \"notes\": {}}}}";
        struct fixture *f = *state;
        _cleanup_json_ json_t *s = NULL;

        for (int r = 1; r <= 8; r++) {
                make(f, (struct made){.cell = "a/idle", .round = r, .rtt_ns = 1000, .patch = load});
                make(f, (struct made){.cell = "b/idle", .round = r, .rtt_ns = 1000});
        }
        s = summarise(f);
        assert_int_equal(number(s, "cells.0.background.noise.offered_bps"), 600000000);
        assert_int_equal(number(s, "cells.0.background.noise.sent_bps"), 596000000);
        assert_int_equal(number(s, "cells.0.background.noise.delivered_bps"), 500000000);
        assert_int_equal(number(s, "cells.0.background.noise.dropped_packets"), 8 * 17);
        assert_int_equal(json_object_size(at(s, "cells.1.background")), 0);
}

static void test_background_of_rounds_that_count(void **state)
{
        static const char load[] = "{\"background\": {\"noise\": {\"dropped_packets\": 1}}}";
        struct fixture *f = *state;
        _cleanup_json_ json_t *s = NULL;

        for (int r = 1; r <= 8; r++) {
                make(f, (struct made){.cell = "a/idle", .round = r, .rtt_ns = 1000, .patch = load});
                if (r < 8)
                        make(f, (struct made){.cell = "b/idle", .round = r, .rtt_ns = 1000});
        }
        s = summarise(f);
        assert_int_equal(number(s, "cells.0.background.noise.dropped_packets"), 7);
}

/* Where one round has no value, no median is made of the others. */
static void test_a_round_without_value(void **state)
{
        struct fixture *f = *state;
        _cleanup_json_ json_t *s = NULL;

        make_rounds(f, 1, 7);
        make(f, (struct made){.cell = "a/idle", .round = 8, .patch = "{\"counts\": {\"warmup_slots\": 100}}"});
        make(f, (struct made){.cell = "b/idle", .round = 8, .rtt_ns = 1000});
        s = summarise(f);
        assert_int_equal(number(s, "cells.0.series.rtt.p99_ns.rounds"), 7); /* 220 of 299 */
        assert_null(at(s, "cells.0.series.rtt.p99_ns.median"));
        assert_int_equal(number(s, "cells.0.series.rtt.p95_ns.rounds"), 8);
        assert_non_null(at(s, "cells.0.series.rtt.p95_ns.median"));
}

static void test_counts(void **state)
{
        struct fixture *f = *state;
        _cleanup_json_ json_t *s = NULL;

        for (int r = 1; r <= 8; r++) {
                char patch[64];

                snprintf(patch, sizeof(patch), "{\"counts\": {\"throughput_bps\": %d, \"duplicates\": 1}}", r);
                make(f, (struct made){.cell = "a/idle", .round = r, .rtt_ns = 1000, .patch = patch});
                make(f, (struct made){.cell = "b/idle", .round = r, .rtt_ns = 1000});
        }
        s = summarise(f);
        assert_int_equal(number(s, "cells.0.counts.throughput_bps.median"), 4);
        assert_int_equal(number(s, "cells.0.counts.throughput_bps.upper"), 7);
        assert_int_equal(number(s, "cells.0.pooled.counts.throughput_bps"), 36);
        assert_int_equal(number(s, "cells.0.pooled.duplicates"), 8);
        assert_int_equal(number(s, "cells.0.loss.ppb"), 0); /* duplicates are no negative loss */
}

static void test_clusters_have_no_median(void **state)
{
        struct fixture *f = *state;
        _cleanup_json_ json_t *s = NULL;

        f->manifest.rounds = 12;
        for (int r = 1; r <= 12; r++) {
                make(f, (struct made){.cell = "a/idle", .round = r, .rtt_ns = r <= 6 ? 1000 + r : 5000 + r});
                make(f, (struct made){.cell = "b/idle", .round = r, .rtt_ns = 1000 + r});
        }
        s = summarise(f);
        assert_int_equal(number(s, "cells.0.series.rtt.p99_ns.clusters.0.median"), 1003);
        assert_int_equal(number(s, "cells.0.series.rtt.p99_ns.clusters.1.rounds"), 6);
        assert_null(at(s, "cells.0.series.rtt.p99_ns.median"));
        assert_int_equal(number(s, "cells.1.series.rtt.p99_ns.median"), 1006);
}

static void test_round_value(void **state)
{
        static const struct metric p99 = {.source = METRIC_QUANTILE, .series = "rtt", .ppm = 990000};
        static const struct metric p999 = {.source = METRIC_QUANTILE, .series = "rtt", .ppm = 999000};
        static const struct metric p98 = {.source = METRIC_QUANTILE, .series = "rtt", .ppm = 980000};
        static const struct metric other = {.source = METRIC_QUANTILE, .series = "other", .ppm = 990000};
        static const struct metric slots = {.source = METRIC_NUMBER, .series = "slots"};
        static const struct metric per_slot = {
                .unit = METRIC_PS, .source = METRIC_QUANTILE, .series = "rtt", .ppm = 990000, .per = "slots"};
        static const struct metric per_other = {
                .unit = METRIC_PS, .source = METRIC_QUANTILE, .series = "rtt", .ppm = 990000, .per = "other"};
        struct fixture *f = *state;
        _cleanup_json_ json_t *s = NULL;
        int64_t value;

        make_rounds(f, 1, 7);
        make(f, (struct made){.cell = "a/idle", .round = 8, .rtt_ns = 1000, .lost = 100});
        make(f, (struct made){.cell = "b/idle", .round = 8, .rtt_ns = 1000});
        s = summarise(f);
        assert_int_equal(summary_round_value(at(s, "cells.0.trials.0"), &p99, &value), 0);
        assert_int_equal(value, 1000);
        assert_int_equal(summary_round_value(at(s, "cells.0.trials.7"), &p99, &value), 0);
        assert_true(value == BOUNDS_INFINITE);
        assert_int_equal(summary_round_value(at(s, "cells.0.trials.0"), &slots, &value), 0);
        assert_int_equal(value, SLOTS);
        assert_int_equal(summary_round_value(at(s, "cells.0.trials.0"), &per_slot, &value), 0);
        assert_int_equal(value, 3125); /* 1000 ns by 320 */
        assert_int_equal(summary_round_value(at(s, "cells.0.trials.7"), &per_slot, &value), 0);
        assert_true(value == BOUNDS_INFINITE);
        assert_int_equal(summary_round_value(at(s, "cells.0.trials.0"), &per_other, &value), 1);
        assert_int_equal(summary_round_value(at(s, "cells.0.trials.0"), &p999, &value), 1);
        assert_int_equal(summary_round_value(at(s, "cells.0.trials.0"), &p98, &value), 1);
        assert_int_equal(summary_round_value(at(s, "cells.0.trials.0"), &other, &value), 1);
        assert_int_equal(summary_round_value(NULL, &p99, &value), 1);
}

static void test_same_bytes_again(void **state)
{
        struct fixture *f = *state;
        _cleanup_json_ json_t *first = NULL, *again = NULL;
        _cleanup_free_ char *a = NULL, *b = NULL;

        make_rounds(f, 1, 8);
        first = summarise(f);
        again = summarise(f);
        a = json_format(first);
        b = json_format(again);
        assert_non_null(a);
        assert_string_equal(a, b);
}

static void test_unknown_cell(void **state)
{
        make(*state, (struct made){.cell = "c/idle", .round = 1});
        expect_error(*state, "the plan has no cell \"c/idle\"");
}

static void test_unknown_round(void **state)
{
        make(*state, (struct made){.cell = "a/idle", .round = 9});
        expect_error(*state, "round 9 and extra round 0, the plan has 8 rounds and at most 2 extra ones");
}

static void test_unknown_extra_round(void **state)
{
        make(*state, (struct made){.cell = "a/idle", .extra = 3});
        expect_error(*state, "round 0 and extra round 3");
}

static void test_twice(void **state)
{
        make_named(*state, "one", &(struct made){.cell = "a/idle", .round = 1});
        make_named(*state, "two", &(struct made){.cell = "a/idle", .round = 1});
        expect_error(*state, "trial two: its round has another trial of cell a/idle");
}

static void test_trial_of_another_name(void **state)
{
        make_named(*state, "one", &(struct made){.cell = "a/idle", .round = 1, .patch = "{\"trial\": \"two\"}"});
        expect_error(*state, "trial one: its trial.json is that of two");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_cells_and_rounds),
                TEST(test_losses),
                TEST(test_invalid_trial_and_extra_round),
                TEST(test_extra_rounds_take_one_place_each),
                TEST(test_rounds_that_are_lacking),
                TEST(test_no_trials),
                TEST(test_warmup_rounds_are_left_out),
                TEST(test_skipped_cells),
                TEST(test_disputed),
                TEST(test_background),
                TEST(test_background_of_rounds_that_count),
                TEST(test_a_round_without_value),
                TEST(test_counts),
                TEST(test_clusters_have_no_median),
                TEST(test_round_value),
                TEST(test_same_bytes_again),
                TEST(test_unknown_cell),
                TEST(test_unknown_round),
                TEST(test_unknown_extra_round),
                TEST(test_twice),
                TEST(test_trial_of_another_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
