/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "evidence/plan.h"
#include "tests/fault.h"
#include "tests/test.h"
#include "tests/unit/evidence/manifest-kinds.h"

#define EXP_001 "../../experiments/exp-001.yaml"
#define EXP_000 "../../experiments/exp-000.yaml"
#define FORMS   "manifests/good-forms.yaml"

static struct manifest *load(const char *path, const struct manifest_options *options)
{
        char full[1024], text[2048];
        struct manifest *m = NULL;
        struct err err = {0};
        int r;

        snprintf(full, sizeof(full), "%s/%s", getenv("ASSAY_TEST_CASES"), path);
        r = manifest_load(AT_FDCWD, full, &test_kinds, options, &m, &err);
        err_format(&err, text, sizeof(text));
        if (r < 0)
                fail_msg("%s", text);
        return m;
}

static struct plan *make(const struct manifest *m, const struct manifest_options *options, const size_t *skipped,
                         size_t n_skipped)
{
        struct plan *plan = NULL;
        struct err err = {0};

        if (plan_make(m, &test_kinds, options, skipped, n_skipped, &plan, &err) < 0)
                fail_msg("%s", err.text);
        return plan;
}

/* The order and the seeds as another implementation derives them: xoshiro256** and SplitMix64 in Python, written from
 * their published definitions, with the streams of docs/formats/plan.md. */
static void test_order(void **state)
{
        static const size_t first[] = {7, 5, 0, 2, 9, 3, 12, 10, 6, 11, 4, 1, 8};
        static const size_t eighth[] = {4, 7, 10, 0, 5, 1, 6, 11, 2, 3, 12, 8, 9};
        _cleanup_manifest_ struct manifest *m = load(EXP_001, NULL);
        _cleanup_plan_ struct plan *plan = make(m, NULL, NULL, 0);

        assert_int_equal(plan->n_trials, 312);
        for (size_t i = 0; i < 13; i++) {
                assert_int_equal(plan->trials[i].cell, first[i]);
                assert_int_equal(plan->trials[(size_t)7 * 13 + i].cell, eighth[i]);
        }
        assert_true(plan->trials[0].seed == UINT64_C(0x0486b71089b905e4));
        assert_true(plan->trials[12].seed == UINT64_C(0x67168907972ce5cc));
        assert_true(plan->trials[103].seed == UINT64_C(0xde06522c8e6d980d));
        assert_string_equal(plan->trials[0].name, "0001-per-queue-250mbit-r1");
        assert_string_equal(plan->trials[91].name, "0092-tree-600mbit-r8");
}

static void test_rounds(void **state)
{
        _cleanup_manifest_ struct manifest *m = load(EXP_001, NULL);
        _cleanup_plan_ struct plan *plan = make(m, NULL, NULL, 0);

        for (size_t round = 1; round <= 24; round++) {
                bool seen[13] = {false};

                for (size_t i = 0; i < 13; i++) {
                        const struct plan_trial *trial = &plan->trials[(round - 1) * 13 + i];

                        assert_int_equal(trial->index, (round - 1) * 13 + i + 1);
                        assert_int_equal(trial->round, round);
                        assert_int_equal(trial->campaign, 1);
                        assert_int_equal(trial->extra, 0);
                        assert_false(seen[trial->cell]);
                        seen[trial->cell] = true;
                }
        }
}

static void test_expected(void **state)
{
        _cleanup_manifest_ struct manifest *m = load(EXP_001, NULL);
        _cleanup_plan_ struct plan *plan = make(m, NULL, NULL, 0);

        /* the estimate of these kinds is the duration, and 1000 bytes a trial */
        assert_int_equal(plan->expected_duration_ns, INT64_C(312) * 5 * 1000000000);
        assert_int_equal(plan->expected_disk_bytes, 312000);
}

static void test_campaigns(void **state)
{
        _cleanup_manifest_ struct manifest *m = load(EXP_000, NULL);
        _cleanup_plan_ struct plan *plan = make(m, NULL, NULL, 0);

        assert_int_equal(plan->n_trials, 960);
        for (size_t i = 0; i < plan->n_trials; i++)
                assert_int_equal(plan->trials[i].campaign, (plan->trials[i].round - 1) / 8 + 1);
        assert_int_equal(plan->trials[959].campaign, 60);
}

static void test_warmup(void **state)
{
        static const char *const overrides[] = {"seed=1"};
        const struct manifest_options options = {.n_overrides = 1, .overrides = overrides};
        _cleanup_manifest_ struct manifest *m = load(FORMS, &options);
        _cleanup_plan_ struct plan *plan = make(m, &options, NULL, 0);

        assert_int_equal(plan->n_trials, 7 * 6);
        for (size_t i = 0; i < 6; i++) {
                assert_int_equal(plan->trials[i].round, 0);
                assert_int_equal(plan->trials[i].campaign, 0);
                assert_non_null(strstr(plan->trials[i].name, "-w1"));
        }
        assert_int_equal(plan->trials[6].round, 1);
        assert_int_equal(plan->trials[6].index, 7);
}

/* The streams of warm-up and extra rounds, again as the other implementation derives them. */
static void test_streams(void **state)
{
        static const char *const overrides[] = {"seed=1"};
        static const size_t warmup[] = {1, 0, 2, 3}, extra[] = {1, 2, 0, 3};
        const struct manifest_options options = {.is_short = true, .n_overrides = 1, .overrides = overrides};
        _cleanup_manifest_ struct manifest *m = load(FORMS, &options);
        _cleanup_plan_ struct plan *plan = make(m, &options, NULL, 0);
        _cleanup_free_ struct plan_trial *trials = NULL;
        size_t n = 0;

        assert_int_equal(m->n_cells, 4);
        assert_int_equal(plan_round(plan, 1, &trials, &n, NULL), 0);
        assert_int_equal(n, 4);
        for (size_t i = 0; i < 4; i++) {
                assert_int_equal(plan->trials[i].cell, warmup[i]);
                assert_int_equal(trials[i].cell, extra[i]);
        }
        assert_true(plan->trials[0].seed == UINT64_C(0xadbe1f3fca575547));
        assert_true(trials[3].seed == UINT64_C(0x2769f1bb546d20eb));
}

static void test_extra_rounds(void **state)
{
        _cleanup_manifest_ struct manifest *m = load(EXP_001, NULL);
        _cleanup_plan_ struct plan *plan = make(m, NULL, NULL, 0);
        _cleanup_free_ struct plan_trial *trials = NULL;
        struct plan_trial *none = NULL;
        size_t n = 0;

        assert_int_equal(plan_extra_rounds_max(plan), 4);
        assert_int_equal(plan_round(plan, 2, &trials, &n, NULL), 0);
        assert_int_equal(n, 13);
        assert_int_equal(trials[0].index, 312 + 13 + 1);
        assert_int_equal(trials[0].round, 0);
        assert_int_equal(trials[0].extra, 2);
        assert_int_equal(trials[0].campaign, 0);
        assert_non_null(strstr(trials[0].name, "-x2"));
        assert_int_equal(plan_round(plan, 5, &none, &n, NULL), -EINVAL);
        assert_int_equal(plan_round(plan, 0, &none, &n, NULL), -EINVAL);
}

/* max(2, 20% of the rounds), whole rounds */
static void test_extra_rounds_max(void **state)
{
        static const struct {
                uint32_t rounds, extra;
        } cases[] = {{6, 2}, {8, 2}, {14, 2}, {15, 3}, {20, 4}, {480, 96}};
        struct manifest m = {0};
        const struct plan plan = {.manifest = &m};

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                m.rounds = cases[i].rounds;
                assert_int_equal(plan_extra_rounds_max(&plan), cases[i].extra);
        }
}

static void test_skipped(void **state)
{
        const size_t skipped[] = {0, 12, 12}, all[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
        _cleanup_manifest_ struct manifest *m = load(EXP_001, NULL);
        _cleanup_plan_ struct plan *plan = make(m, NULL, skipped, ARRAY_SIZE(skipped));
        struct plan *none = NULL;
        struct err err = {0};

        assert_int_equal(plan->n_skipped, 2);
        assert_int_equal(plan->n_trials, 24 * 11);
        for (size_t i = 0; i < plan->n_trials; i++)
                assert_true(plan->trials[i].cell != 0 && plan->trials[i].cell != 12);
        assert_int_equal(plan_make(m, &test_kinds, NULL, all, ARRAY_SIZE(all), &none, &err), -ENOTSUP);
        assert_int_equal(err_exit_code(err.kind), 6);
        assert_string_equal(err.text, "no cell of exp-001 can run on this host");
}

static char *to_text(const struct plan *plan)
{
        _cleanup_json_ json_t *json = NULL;
        char *text;

        assert_int_equal(plan_to_json(plan, &json, NULL), 0);
        text = json_format(json);
        assert_non_null(text);
        return text;
}

/* What a verifier does: from the stored text and the manifest to the same text. */
static char *made_again(const char *stored, const char *path)
{
        _cleanup_json_ json_t *json = NULL;
        _cleanup_manifest_ struct manifest *m = NULL;
        _cleanup_plan_ struct plan *plan = NULL;
        _cleanup_free_ const char **overrides = NULL;
        _cleanup_free_ size_t *skipped = NULL;
        struct manifest_options options;
        size_t n_skipped;

        assert_int_equal(json_parse(span_of_text(stored), "plan.json", &json, NULL), 0);
        assert_int_equal(plan_options_from_json(json, &options, &overrides, NULL), 0);
        m = load(path, &options);
        assert_int_equal(plan_skipped_from_json(json, m, &skipped, &n_skipped, NULL), 0);
        plan = make(m, &options, skipped, n_skipped);
        return to_text(plan);
}

static void test_made_again(void **state)
{
        static const char *const overrides[] = {"workload.duration=5s", "rounds=12", "seed=9007199254740993"};
        const struct manifest_options options = {.is_short = true, .n_overrides = 3, .overrides = overrides};
        const size_t skipped[] = {3};
        _cleanup_manifest_ struct manifest *m = load(EXP_001, &options), *other = load(EXP_000, NULL);
        _cleanup_plan_ struct plan *plan = make(m, &options, skipped, 1), *plain = make(other, NULL, NULL, 0);
        _cleanup_free_ char *text = to_text(plan), *again = made_again(text, EXP_001);
        _cleanup_free_ char *text_plain = to_text(plain), *again_plain = made_again(text_plain, EXP_000);

        assert_string_equal(text, again);
        assert_string_equal(text_plain, again_plain);
        assert_string_not_equal(text, text_plain);
}

static const char *string_at(const json_t *json, const char *key, size_t i, const char *member)
{
        return json_string_value(json_object_get(json_array_get(json_object_get(json, key), i), member));
}

static void test_json(void **state)
{
        const size_t skipped[] = {1};
        const struct manifest_options options = {.is_short = true};
        _cleanup_manifest_ struct manifest *m = load(EXP_000, &options);
        _cleanup_plan_ struct plan *plan = make(m, &options, skipped, 1);
        _cleanup_json_ json_t *json = NULL;
        const json_t *cell, *trial;

        assert_int_equal(plan_to_json(plan, &json, NULL), 0);
        assert_int_equal(json_integer_value(json_object_get(json, "assay")), 1);
        assert_string_equal(json_string_value(json_object_get(json_object_get(json, "manifest"), "sha256")), m->sha256);
        assert_true(json_is_true(json_object_get(json, "short")));
        assert_string_equal(json_string_value(json_array_get(json_object_get(json, "skipped"), 0)), "b/idle");
        assert_string_equal(string_at(json, "inputs", 0, "path"), "exp-001.yaml");
        assert_int_equal(strlen(string_at(json, "inputs", 0, "sha256")), 64);

        /* a skipped cell is described, but has no trial */
        cell = json_array_get(json_object_get(json, "cells"), 1);
        assert_string_equal(json_string_value(json_object_get(cell, "control")), "same-same");
        assert_string_equal(json_string_value(
                                    json_object_get(json_object_get(json_object_get(cell, "config"), "workload"),
                                                    "duration")),
                            "100ms");
        assert_int_equal(json_array_size(json_object_get(json, "trials")), 480);
        trial = json_array_get(json_object_get(json, "trials"), 479);
        assert_string_equal(json_string_value(json_object_get(trial, "trial")), "0480-a-idle-r480");
        assert_string_equal(json_string_value(json_object_get(trial, "cell")), "a/idle");
        assert_int_equal(strlen(json_string_value(json_object_get(trial, "seed"))), 16);
        assert_int_equal(json_integer_value(json_object_get(trial, "campaign")), 60);
}

static void test_json_refused(void **state)
{
        static const struct {
                const char *text, *reason;
        } cases[] = {
                {"{}", "plan.json: \"assay\" is missing, expected an integer"},
                {"{\"assay\": 2}", "plan.json: version 2 of the format, expected 1"},
                {"{\"assay\": 1, \"short\": 1}", "plan.json: \"short\" is not a boolean, expected true or false"},
                {"{\"assay\": 1, \"short\": true}", "plan.json: \"overrides\" is missing, expected an array"},
                {"{\"assay\": 1, \"short\": true, \"overrides\": [1]}",
                 "plan.json: \"overrides\" holds something that is not a string"},
        };
        _cleanup_manifest_ struct manifest *m = load(EXP_000, NULL);
        _cleanup_json_ json_t *json = NULL;
        size_t *skipped = NULL, n;
        struct err err = {0};

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *bad = NULL;
                struct manifest_options options;
                const char **overrides = NULL;

                assert_int_equal(json_parse(span_of_text(cases[i].text), "f", &bad, NULL), 0);
                assert_int_equal(plan_options_from_json(bad, &options, &overrides, &err), -EINVAL);
                assert_string_equal(err.text, cases[i].reason);
                assert_null(overrides);
        }
        assert_int_equal(json_parse(span_of_text("{\"skipped\": [\"c/idle\"]}"), "f", &json, NULL), 0);
        assert_int_equal(plan_skipped_from_json(json, m, &skipped, &n, &err), -EINVAL);
        assert_string_equal(err.text, "plan.json: \"skipped\" names c/idle, which is no cell");
}

/* Every trial is found by its name, and nothing by another one. */
static void test_find(void **state)
{
        static const char *const others[] = {"",
                                             "0001",
                                             "0000-tree-idle-r1",
                                             "9999-tree-idle-r1",
                                             "0001-tree-idle-r99",
                                             "1-tree-idle-r1",
                                             "18446744073709551617-tree-idle-r1",
                                             "x"};
        _cleanup_manifest_ struct manifest *m = load(EXP_001, NULL);
        _cleanup_plan_ struct plan *plan = make(m, NULL, NULL, 0);
        struct plan_trial found;

        for (size_t i = 0; i < plan->n_trials; i++) {
                assert_int_equal(plan_find(plan, plan->trials[i].name, &found, NULL), 1);
                assert_memory_equal(&found, &plan->trials[i], sizeof(found));
        }
        for (uint32_t extra = 1; extra <= plan_extra_rounds_max(plan); extra++) {
                _cleanup_free_ struct plan_trial *trials = NULL;
                size_t n;

                assert_int_equal(plan_round(plan, extra, &trials, &n, NULL), 0);
                for (size_t i = 0; i < n; i++) {
                        assert_int_equal(plan_find(plan, trials[i].name, &found, NULL), 1);
                        assert_memory_equal(&found, &trials[i], sizeof(found));
                }
        }
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (plan_find(plan, others[i], &found, NULL) != 0)
                        fail_msg("\"%s\" was found", others[i]);
}

static int endless(const struct node *config, struct trial_estimate *ret, struct err *err)
{
        *ret = (struct trial_estimate){.duration_ns = INT64_MAX / 100};
        return 0;
}

static void test_too_long(void **state)
{
        _cleanup_manifest_ struct manifest *m = load(EXP_001, NULL);
        struct kinds kinds = test_kinds;
        struct plan *plan = NULL;
        struct err err = {0};

        kinds.estimate = endless;
        assert_int_equal(plan_make(m, &kinds, NULL, NULL, 0, &plan, &err), -ERANGE);
        assert_int_equal(err.kind, ERR_USAGE);
}

/* All that stands between a manifest's bytes and a plan's text. */
static int to_plan(int dirfd, char **ret, struct err *err)
{
        const struct manifest_options options = {.is_short = true};
        _cleanup_manifest_ struct manifest *m = NULL;
        _cleanup_plan_ struct plan *plan = NULL;
        _cleanup_json_ json_t *json = NULL;
        int r;

        r = manifest_load(dirfd, "good-small.yaml", &test_kinds, &options, &m, err);
        if (r == 0)
                r = plan_make(m, &test_kinds, &options, NULL, 0, &plan, err);
        if (r == 0)
                r = plan_to_json(plan, &json, err);
        if (r < 0)
                return r;
        *ret = json_format(json);
        return *ret ? 0 : -ENOMEM;
}

static void test_memory_runs_out(void **state)
{
        _cleanup_close_ int dirfd = -1;
        char path[1024];
        unsigned n;

        snprintf(path, sizeof(path), "%s/manifests", getenv("ASSAY_TEST_CASES"));
        dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(dirfd >= 0);
        for (n = 1;; n++) {
                _cleanup_free_ char *text = NULL;
                struct err err = {0};
                int r;

                fault_arm(FAULT_ALLOCATION, n);
                r = to_plan(dirfd, &text, &err);
                if (!fault_disarm()) {
                        assert_int_equal(r, 0);
                        break;
                }
                assert_int_equal(r, -ENOMEM);
        }
        assert_true(n > 500);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_rounds),
                cmocka_unit_test(test_expected),
                cmocka_unit_test(test_campaigns),
                cmocka_unit_test(test_warmup),
                cmocka_unit_test(test_streams),
                cmocka_unit_test(test_extra_rounds),
                cmocka_unit_test(test_extra_rounds_max),
                cmocka_unit_test(test_skipped),
                cmocka_unit_test(test_made_again),
                cmocka_unit_test(test_json),
                cmocka_unit_test(test_json_refused),
                cmocka_unit_test(test_find),
                cmocka_unit_test(test_too_long),
                cmocka_unit_test(test_memory_runs_out),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
