/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "evidence/summary.h"
#include "evidence/verdict.h"
#include "tests/test.h"
#include "tests/unit/evidence/manifest-kinds.h"

/* A manifest with one hypothesis, both controls, and a summary in which every cell has an rtt.p99 of 100 us in every
 * round, but harm/load has ten times that. Tests change what they are about. */
static const char manifest_text[] =
        "assay: 1\n"
        "id: t\n"
        "title: T\n"
        "hypotheses:\n"
        "  h: {claim: C, rules: [%s]}\n"
        "base: {boundary: {kind: none}, workload: {kind: stamp-probe, duration: 1s}}\n"
        "arms: {a: {}, b: {workload: {warmup: 1s}}, harm: {control: harm, workload: {warmup: 2s}},"
        " same: {control: same-same}}\n"
        "points: {idle: {}, load: {workload: {duration: 2s}}}\n"
        "control-rules:\n"
        "  same: {of: [same, idle], versus: [a, idle], metric: rtt.p99, ratio_within: [0.8, 1.25]}\n"
        "  harm: {of: [harm, load], versus: [harm, idle], metric: rtt.p99, ratio_at_least: 2.0}\n"
        "rounds: %u\n"
        "campaigns: %u\n"
        "seed: 1\n";

#define RATIO_RULE "{of: [a, load], versus: [a, idle], metric: rtt.p99, ratio_at_most: 1.25}"

struct fixture {
        struct manifest *manifest;
        json_t *summary, *verdict;
};

static json_t *default_trial(unsigned position, int p99)
{
        return json_pack("{s:i, s:i, s:i, s:{s:i}, s:{s:{s:i, s:i, s:i, s:i, s:i}}}", "position", position, "sent",
                         30000, "lost", 0, "counts", "reordered", 0, "series", "rtt", "values", 30000, "lost", 0,
                         "unstamped", 0, "p50_ns", 50000, "p99_ns", p99);
}

static json_t *default_summary(const struct manifest *m)
{
        json_t *cells = json_array();

        for (size_t c = 0; c < m->n_cells; c++) {
                json_t *trials = json_array();

                for (unsigned round = 1; round <= m->rounds; round++)
                        json_array_append_new(trials,
                                              default_trial(round,
                                                            streq(m->cells[c].name, "harm/load") ? 1000000 : 100000));
                json_array_append_new(cells, json_pack("{s:s, s:o}", "cell", m->cells[c].name, "trials", trials));
        }
        return json_pack("{s:{s:i, s:i}, s:o}", "rounds", "planned", m->rounds, "counted", m->rounds, "cells", cells);
}

static struct fixture fixture_make(const char *rules, unsigned rounds, unsigned campaigns)
{
        _cleanup_free_ char *text = NULL;
        struct fixture f = {0};
        struct err err = {0};

        assert_true(asprintf(&text, manifest_text, rules, rounds, campaigns) > 0);
        if (manifest_parse(span_of_text(text), "test", AT_FDCWD, &test_kinds, NULL, &f.manifest, &err) < 0)
                fail_msg("%u:%u: %s", err.position.line, err.position.column, err.text);
        f.summary = default_summary(f.manifest);
        return f;
}

static void fixture_done(struct fixture *f)
{
        manifest_free(f->manifest);
        json_decref(f->summary);
        json_decref(f->verdict);
}

#define _cleanup_fixture_ _cleanup_(fixture_done)

/* The trial of @cell that counts as round @position. */
static json_t *trial_of(const struct fixture *f, const char *cell, size_t position)
{
        json_t *trials = json_object_get(summary_cell(f->summary, cell), "trials");

        assert_non_null(trials);
        return json_array_get(trials, position - 1);
}

static json_t *rtt_of(const struct fixture *f, const char *cell, size_t position)
{
        return json_object_get(json_object_get(trial_of(f, cell, position), "series"), "rtt");
}

#define LOST (-1)

/* Sets rtt.p99 of rounds 1 to @n; LOST for a value that fell on a lost packet. */
static void set_p99(const struct fixture *f, const char *cell, const int *values, size_t n)
{
        for (size_t i = 0; i < n; i++)
                json_object_set_new(rtt_of(f, cell, i + 1), "p99_ns",
                                    values[i] == LOST ? json_string("lost") : json_integer(values[i]));
}

#define SET_P99(f, cell, ...)                                                                                          \
        set_p99(f, cell, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static void judge(struct fixture *f)
{
        json_decref(f->verdict);
        f->verdict = NULL;
        assert_int_equal(verdict_make(f->manifest, f->summary, &f->verdict, NULL), 0);
}

static json_t *hypothesis(const struct fixture *f)
{
        return json_array_get(json_object_get(f->verdict, "hypotheses"), 0);
}

static json_t *rule(const struct fixture *f, size_t i)
{
        return json_array_get(json_object_get(hypothesis(f), "rules"), i);
}

static const char *text_of(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

static int64_t number_of(const json_t *object, const char *key)
{
        assert_true(json_is_integer(json_object_get(object, key)));
        return json_integer_value(json_object_get(object, key));
}

/* Outcome of the hypothesis and of its first rule, and the exit code. */
static void expect(struct fixture *f, const char *outcome, const char *of_rule, int exit_code)
{
        judge(f);
        assert_string_equal(text_of(rule(f, 0), "outcome"), of_rule);
        assert_string_equal(text_of(hypothesis(f), "outcome"), outcome);
        assert_int_equal(number_of(f->verdict, "exit_code"), exit_code);
        assert_int_equal(verdict_exit_code(f->verdict), exit_code);
}

static void expect_reason(const struct fixture *f, const char *part)
{
        if (!strstr(text_of(rule(f, 0), "reason"), part))
                fail_msg("\"%s\" is not in \"%s\"", part, text_of(rule(f, 0), "reason"));
}

/* With 8 rounds the upper bound is the second largest: one bad round of eight does not decide. */
static void test_holds(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(RATIO_RULE, 8, 1);

        SET_P99(&f, "a/load", 90000, 99000, 101000, 104000, 108000, 110000, 125000, 999000);
        expect(&f, "holds", "holds", 0);
        assert_int_equal(number_of(rule(&f, 0), "value"), 1040000);
        assert_int_equal(number_of(rule(&f, 0), "lower"), 990000);
        assert_int_equal(number_of(rule(&f, 0), "upper"), 1250000);
        assert_int_equal(number_of(rule(&f, 0), "at_most"), 1250000);
        assert_int_equal(number_of(rule(&f, 0), "rounds"), 8);
        expect_reason(&f, "the upper bound 1.25 is at most 1.25");
}

static void test_fails(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(RATIO_RULE, 8, 1);

        SET_P99(&f, "a/load", 90000, 125001, 130000, 130000, 130000, 130000, 130000, 130000);
        expect(&f, "fails", "fails", 3);
        expect_reason(&f, "the lower bound 1.25001 is above 1.25");
}

static void test_inconclusive(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(RATIO_RULE, 8, 1);

        SET_P99(&f, "a/load", 90000, 99000, 130000, 130000, 130000, 130000, 130000, 140000);
        expect(&f, "inconclusive", "inconclusive", 4);
        expect_reason(&f, "1.25 lies between the bounds 0.99 and 1.3");
}

/* Ratios are taken within the round: what moves both cells together is no effect. */
static void test_is_paired(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(RATIO_RULE, 8, 1);

        SET_P99(&f, "a/idle", 100000, 200000, 300000, 400000, 500000, 600000, 700000, 800000);
        SET_P99(&f, "a/load", 110000, 220000, 330000, 440000, 550000, 660000, 770000, 880000);
        SET_P99(&f, "same/idle", 100000, 200000, 300000, 400000, 500000, 600000, 700000, 800000);
        expect(&f, "holds", "holds", 0);
        assert_int_equal(number_of(rule(&f, 0), "upper"), 1100000);
}

static void test_at_least_is_mirrored(void **state)
{
        _cleanup_fixture_ struct fixture f =
                fixture_make("{of: [a, load], versus: [a, idle], metric: rtt.p99, ratio_at_least: 2.0}", 8, 1);

        SET_P99(&f, "a/load", 100000, 200000, 300000, 300000, 300000, 300000, 300000, 300000);
        expect(&f, "holds", "holds", 0);
        SET_P99(&f, "a/load", 100000, 100000, 100000, 100000, 100000, 100000, 199999, 300000);
        expect(&f, "fails", "fails", 3);
        expect_reason(&f, "the upper bound 1.99999 is below 2");
}

static void test_difference(void **state)
{
        _cleanup_fixture_ struct fixture f =
                fixture_make("{of: [a, load], versus: [a, idle], metric: rtt.p99, difference_within: [-2us, 2us]}", 8,
                             1);

        SET_P99(&f, "a/load", 98000, 98000, 100000, 100000, 100000, 102000, 102000, 102000);
        expect(&f, "holds", "holds", 0);
        assert_int_equal(number_of(rule(&f, 0), "lower"), -2000);
        SET_P99(&f, "a/load", 95000, 95000, 95000, 95000, 95000, 95000, 97999, 102000);
        expect(&f, "fails", "fails", 3);
        expect_reason(&f, "the upper bound -2.001 us is below -2 us");
}

static void test_value(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make("{of: [a, load], metric: rtt.p99, at_most: 100us}", 8, 1);

        expect(&f, "holds", "holds", 0);
        SET_P99(&f, "a/load", LOST, LOST, LOST, LOST, LOST, LOST, LOST, 100001);
        expect(&f, "fails", "fails", 3);
        assert_string_equal(text_of(rule(&f, 0), "value"), "lost");
        expect_reason(&f, "the lower bound lost is above 100 us");
}

static void test_growth(void **state)
{
        _cleanup_fixture_ struct fixture f =
                fixture_make("{of: {growth: [[b, load], [b, idle]]}, versus: {growth: [[a, load], [a, idle]]},"
                             " metric: rtt.p99, ratio_at_most: 1.1}",
                             8, 1);

        SET_P99(&f, "a/load", 200000, 200000, 200000, 200000, 200000, 200000, 200000, 200000);
        SET_P99(&f, "b/load", 210000, 210000, 210000, 210000, 210000, 210000, 210000, 210000);
        expect(&f, "holds", "holds", 0);
        assert_int_equal(number_of(rule(&f, 0), "value"), 1050000);
}

/* Of 240000 packets 93 lost are within 5e-4 with 95% confidence (upper bound 4.604e-4, scipy.stats.beta), 120 are not
 * known to be (5.818e-4), 150 are not (lower bound 5.435e-4). */
static void test_loss_is_pooled(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make("{of: [a, load], metric: loss, at_most: 5e-4}", 8, 1);

        json_object_set_new(trial_of(&f, "a/load", 3), "lost", json_integer(93));
        expect(&f, "holds", "holds", 0);
        assert_int_equal(number_of(rule(&f, 0), "value"), 387500);
        assert_int_equal(number_of(rule(&f, 0), "upper"), 460381);
        json_object_set_new(trial_of(&f, "a/load", 3), "lost", json_integer(120));
        expect(&f, "inconclusive", "inconclusive", 4);
        json_object_set_new(trial_of(&f, "a/load", 1), "lost", json_integer(30));
        expect(&f, "fails", "fails", 3);
        expect_reason(&f, "the lower bound 0.0543517% is above 0.05%");
}

/* A valid trial of a round that does not count still counts for losses. */
static void test_loss_of_a_round_that_does_not_count(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make("{of: [a, load], metric: loss, at_most: 5e-4}", 8, 1);
        json_t *more = default_trial(0, 1);

        json_object_set_new(more, "lost", json_integer(30000));
        json_array_append_new(json_object_get(summary_cell(f.summary, "a/load"), "trials"), more);
        expect(&f, "fails", "fails", 3);
}

static void test_counts_are_exact(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make("{of: [a, load], metric: reordered, at_most: 1}", 8, 1);

        json_object_set_new(json_object_get(trial_of(&f, "a/load", 2), "counts"), "reordered", json_integer(1));
        expect(&f, "holds", "holds", 0);
        json_object_set_new(json_object_get(trial_of(&f, "a/load", 8), "counts"), "reordered", json_integer(1));
        expect(&f, "fails", "fails", 3);
        expect_reason(&f, "2 is above 1");
        json_object_del(json_object_get(trial_of(&f, "a/load", 5), "counts"), "reordered");
        expect(&f, "inconclusive", "inconclusive", 4);
        expect_reason(&f, "no data");
}

static void test_infinite_over_finite(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(RATIO_RULE, 8, 1);

        SET_P99(&f, "a/load", 100000, LOST, LOST, LOST, LOST, LOST, LOST, LOST);
        expect(&f, "fails", "fails", 3);
        assert_string_equal(text_of(rule(&f, 0), "lower"), "lost");
        SET_P99(&f, "a/load", LOST, 100000, 100000, 100000, 100000, 100000, 100000, 100000);
        expect(&f, "holds", "holds", 0); /* one round of eight */
}

static void test_infinite_denominator(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(RATIO_RULE, 8, 1);

        SET_P99(&f, "a/idle", 100000, 100000, LOST);
        expect(&f, "inconclusive", "inconclusive", 4);
        expect_reason(&f, "undefined: what it is compared with, a/idle, is lost or 0 in round 3");
        assert_null(json_object_get(rule(&f, 0), "value"));
        SET_P99(&f, "a/idle", 100000, 100000, 0);
        expect(&f, "inconclusive", "inconclusive", 4);
}

static void test_too_few_samples(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(RATIO_RULE, 8, 1);

        json_object_del(rtt_of(&f, "a/load", 2), "p99_ns");
        json_object_set_new(rtt_of(&f, "a/load", 2), "values", json_integer(200));
        json_object_set_new(rtt_of(&f, "a/load", 2), "lost", json_integer(3));
        expect(&f, "inconclusive", "inconclusive", 4);
        expect_reason(&f, "too few samples: a/load has 203 in round 2, rtt.p99 needs 299");
}

static void test_unstamped(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(RATIO_RULE, 8, 1);

        json_object_del(rtt_of(&f, "a/load", 2), "p99_ns");
        json_object_set_new(rtt_of(&f, "a/load", 2), "unstamped", json_integer(77));
        expect(&f, "inconclusive", "inconclusive", 4);
        expect_reason(&f, "77 packets of a/load in round 2 have no kernel stamp");
}

static void test_no_data(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(RATIO_RULE, 8, 1);

        json_object_set_new(f.summary, "cells", json_array());
        expect(&f, "inconclusive", "inconclusive", 4);
        expect_reason(&f, "no data");
        json_object_clear(f.summary);
        expect(&f, "inconclusive", "inconclusive", 1);
}

static void test_lacking_rounds_make_it_invalid(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(RATIO_RULE, 8, 1);

        json_object_set_new(json_object_get(f.summary, "rounds"), "counted", json_integer(7));
        SET_P99(&f, "a/load", 9000000, 9000000, 9000000, 9000000, 9000000, 9000000, 9000000, 9000000);
        expect(&f, "inconclusive", "fails", 1);
        assert_false(json_is_true(json_object_get(json_object_get(f.verdict, "campaign"), "valid")));
        assert_non_null(strstr(text_of(hypothesis(&f), "reason"), "7 of 8 rounds"));
}

static void test_harm_control_must_hold(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(RATIO_RULE, 8, 1);

        SET_P99(&f, "harm/load", 100000, 100000, 900000, 900000, 900000, 900000, 900000, 900000); /* inconclusive */
        expect(&f, "inconclusive", "holds", 4);
        assert_string_equal(text_of(hypothesis(&f), "reason"), "the harm control harm is inconclusive");
        SET_P99(&f, "harm/load", 100000, 100000, 100000, 100000, 100000, 100000, 100000, 100000);
        expect(&f, "inconclusive", "holds", 4);
        SET_P99(&f, "a/load", 900000, 900000, 900000, 900000, 900000, 900000, 900000, 900000);
        expect(&f, "inconclusive", "fails",
               4); /* a claim's failure means nothing either; a control's is no exit code */
}

static void test_same_same_spoils_only_when_it_fails(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(RATIO_RULE, 8, 1);

        SET_P99(&f, "a/load", 70000, 70000, 70000, 70000, 70000, 70000, 70000, 70000);
        SET_P99(&f, "same/idle", 100000, 100000, 100000, 100000, 120000, 120000, 126000, 126000); /* inconclusive */
        expect(&f, "holds", "holds", 0);
        SET_P99(&f, "same/idle", 126000, 126000, 126000, 126000, 126000, 126000, 126000, 126000);
        expect(&f, "inconclusive", "holds", 4);
        assert_non_null(strstr(text_of(hypothesis(&f), "reason"), "the same-same control same fails"));
}

static void test_noise_floor(void **state)
{
        _cleanup_fixture_ struct fixture f =
                fixture_make("{of: [a, load], versus: [a, idle], metric: rtt.p99, ratio_at_most: 1.05}", 8, 1);
        const json_t *floor;

        SET_P99(&f, "a/load", 104000, 104000, 104000, 104000, 104000, 104000, 104000, 104000);
        expect(&f, "holds", "holds", 0);
        SET_P99(&f, "same/idle", 90000, 94000, 100000, 100000, 100000, 100000, 106000, 110000);
        expect(&f, "inconclusive", "inconclusive", 4);
        expect_reason(&f, "inside the noise floor");
        floor = json_object_get(rule(&f, 0), "floor");
        assert_int_equal(number_of(floor, "lower"), 940000);
        assert_int_equal(number_of(floor, "upper"), 1060000);
        SET_P99(&f, "a/load", 110000, 110000, 110000, 110000, 110000, 110000, 110000, 110000); /* out of the noise */
        expect(&f, "fails", "fails", 3);
}

/* A floor is of one metric and one form. */
static void test_no_floor(void **state)
{
        _cleanup_fixture_ struct fixture f =
                fixture_make("{of: [a, load], versus: [a, idle], metric: rtt.p50, ratio_at_most: 1.05},"
                             "{of: [a, load], versus: [a, idle], metric: rtt.p99, difference_at_most: 5us}",
                             8, 1);

        expect(&f, "holds", "holds", 0);
        assert_null(json_object_get(rule(&f, 0), "floor"));
        assert_null(json_object_get(rule(&f, 1), "floor"));
}

/* 17 rounds near 32.6 and 13 near 74.9: no median, the clusters instead. */
static void test_clusters(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(RATIO_RULE, 30, 1);
        const json_t *clusters, *low, *high;

        for (int i = 0; i < 30; i++) {
                int value = i < 17 ? 32600 + (i - 8) * 100 : 74900 + (i - 23) * 100;

                json_object_set_new(rtt_of(&f, "a/load", (size_t)i + 1), "p99_ns", json_integer(value));
        }
        expect(&f, "inconclusive", "inconclusive", 4);
        expect_reason(&f, "clusters");
        clusters = json_array_get(json_object_get(rule(&f, 0), "clusters"), 0);
        assert_string_equal(text_of(clusters, "cell"), "a/load");
        low = json_array_get(json_object_get(clusters, "clusters"), 0);
        high = json_array_get(json_object_get(clusters, "clusters"), 1);
        assert_int_equal(number_of(low, "rounds"), 17);
        assert_int_equal(number_of(low, "median"), 32600);
        assert_int_equal(number_of(high, "rounds"), 13);
        assert_int_equal(number_of(high, "median"), 74900);
}

static void test_bootstrap_from_twenty_rounds_on(void **state)
{
        _cleanup_fixture_ struct fixture twenty = fixture_make(RATIO_RULE, 20, 1);
        _cleanup_fixture_ struct fixture fewer = fixture_make(RATIO_RULE, 19, 1);
        const json_t *interval;

        expect(&fewer, "holds", "holds", 0);
        assert_null(json_object_get(rule(&fewer, 0), "bootstrap"));
        expect(&twenty, "holds", "holds", 0);
        interval = json_object_get(rule(&twenty, 0), "bootstrap");
        assert_int_equal(number_of(interval, "point"), 1000000);
        assert_int_equal(number_of(interval, "low"), 1000000);
        assert_int_equal(number_of(interval, "high"), 1000000);
        assert_true(json_is_true(json_object_get(interval, "degenerate")));
}

static void test_advisory_decides_nothing(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(
                "{of: [a, load], versus: [a, idle], metric: rtt.p99, ratio_at_most: 0.5, advisory: true}," RATIO_RULE,
                8, 1);

        expect(&f, "holds", "fails", 0);
}

static void test_one_failing_rule_fails_the_hypothesis(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(
                "{of: [a, load], metric: reordered, at_most: 0}, {of: [b, load], metric: loss, at_most: 0}," RATIO_RULE,
                8, 1);

        expect(&f, "inconclusive", "holds", 4); /* no loss seen is not no loss */
        assert_string_equal(text_of(rule(&f, 1), "outcome"), "inconclusive");
        SET_P99(&f, "a/load", 900000, 900000, 900000, 900000, 900000, 900000, 900000, 900000);
        expect(&f, "fails", "holds", 3);
}

/* exp-000: b is a again; in @failing of 60 campaigns it measures twice as much. */
static struct fixture campaigns_with(size_t failing)
{
        struct fixture f = fixture_make("{of: [a, load], versus: [a, idle], metric: rtt.p99, ratio_at_most: 1.5,"
                                        " campaigns-that-fail-at-most: 0.15}",
                                        480, 60);

        for (size_t round = 1; round <= failing * 8; round++)
                json_object_set_new(rtt_of(&f, "a/load", round), "p99_ns", json_integer(200000));
        return f;
}

static void test_campaigns_that_fail(void **state)
{
        _cleanup_fixture_ struct fixture four = campaigns_with(4), five = campaigns_with(5), many = campaigns_with(20);
        const json_t *tally;

        expect(&four, "holds", "holds", 0);
        tally = json_object_get(rule(&four, 0), "campaigns");
        assert_int_equal(number_of(tally, "judged"), 60);
        assert_int_equal(number_of(tally, "failed"), 4);
        assert_int_equal(number_of(tally, "upper_ppb"), 146097206);
        expect(&five, "inconclusive", "inconclusive", 4);
        expect_reason(&five, "5 of 60 campaigns fail, 0 are inconclusive: the upper bound 16.7263077% is above 15%");
        expect(&many, "fails", "fails", 3);
}

/* Each campaign has the noise of its own: in the first one the same differs from itself by more than the rule's bound.
 */
static void test_floor_of_a_campaign(void **state)
{
        _cleanup_fixture_ struct fixture f = campaigns_with(4);
        const json_t *tally;

        SET_P99(&f, "same/idle", 50000, 50000, 100000, 100000, 100000, 100000, 250000, 250000);
        expect(&f, "holds", "holds", 0);
        tally = json_object_get(rule(&f, 0), "campaigns");
        assert_int_equal(number_of(tally, "failed"), 3);
        assert_int_equal(number_of(tally, "inconclusive"), 1);
}

/* An outcome does not depend on what came before it, and neither do the bytes. */
static void test_is_a_pure_function(void **state)
{
        _cleanup_fixture_ struct fixture f = fixture_make(RATIO_RULE "," RATIO_RULE, 20, 1);
        _cleanup_free_ char *first = NULL, *again = NULL;

        for (int i = 1; i <= 20; i++)
                json_object_set_new(rtt_of(&f, "a/load", (size_t)i), "p99_ns", json_integer(90000 + i * i * 10));
        judge(&f);
        first = json_format(f.verdict);
        judge(&f);
        again = json_format(f.verdict);
        assert_non_null(first);
        assert_string_equal(first, again);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_holds),
                cmocka_unit_test(test_fails),
                cmocka_unit_test(test_inconclusive),
                cmocka_unit_test(test_is_paired),
                cmocka_unit_test(test_at_least_is_mirrored),
                cmocka_unit_test(test_difference),
                cmocka_unit_test(test_value),
                cmocka_unit_test(test_growth),
                cmocka_unit_test(test_loss_is_pooled),
                cmocka_unit_test(test_loss_of_a_round_that_does_not_count),
                cmocka_unit_test(test_counts_are_exact),
                cmocka_unit_test(test_infinite_over_finite),
                cmocka_unit_test(test_infinite_denominator),
                cmocka_unit_test(test_too_few_samples),
                cmocka_unit_test(test_unstamped),
                cmocka_unit_test(test_no_data),
                cmocka_unit_test(test_lacking_rounds_make_it_invalid),
                cmocka_unit_test(test_harm_control_must_hold),
                cmocka_unit_test(test_same_same_spoils_only_when_it_fails),
                cmocka_unit_test(test_noise_floor),
                cmocka_unit_test(test_no_floor),
                cmocka_unit_test(test_clusters),
                cmocka_unit_test(test_bootstrap_from_twenty_rounds_on),
                cmocka_unit_test(test_advisory_decides_nothing),
                cmocka_unit_test(test_one_failing_rule_fails_the_hypothesis),
                cmocka_unit_test(test_campaigns_that_fail),
                cmocka_unit_test(test_floor_of_a_campaign),
                cmocka_unit_test(test_is_a_pure_function),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
