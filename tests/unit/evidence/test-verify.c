/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/stat.h>

#include "evidence/verify.h"
#include "tests/unit/evidence/synthetic-archive.h"

struct fixture {
        struct scratch scratch;
        struct archive *archive;
        struct verify_report report;
};

static int setup(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));

        if (!f)
                return -1;
        f->scratch = scratch_make();
        f->archive = synthetic_archive(f->scratch.fd, NULL);
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        verify_report_done(&f->report);
        archive_free(f->archive);
        scratch_remove(&f->scratch);
        free(f);
        return 0;
}

static void verify(struct fixture *f)
{
        struct err err = {0};

        verify_report_done(&f->report);
        synthetic_must(verify_archive(f->archive, &test_kinds, &f->report, &err), &err);
}

/* A file of the first trial of a cell; its name depends on the seed. */
static const char *trial_of(const struct fixture *f, const char *cell, const char *file)
{
        static char path[256];
        const json_t *trials, *trial;
        json_t *summary = NULL;

        assert_int_equal(json_load(archive_dirfd(f->archive), ARCHIVE_SUMMARY, 1 << 24, &summary, NULL), 0);
        trials = json_object_get(summary_cell(summary, cell), "trials");
        trial = json_array_get(trials, 0);
        snprintf(path, sizeof(path), ARCHIVE_TRIALS "/%s/%s", json_string_value(json_object_get(trial, "trial")), file);
        json_decref(summary);
        return path;
}

static bool differs_at(const struct fixture *f, const char *file, const char *path)
{
        for (size_t i = 0; i < f->report.differences.n; i++)
                if (streq(f->report.differences.items[i].file, file) &&
                    streq(f->report.differences.items[i].path, path))
                        return true;
        return false;
}

/* Where a difference of the journal from a trial.json stands. */
static const char *journal_path(const char *trial, const char *key)
{
        static char path[256];
        const char *name = trial + strlen(ARCHIVE_TRIALS "/");

        snprintf(path, sizeof(path), "%.*s.%s", (int)strcspn(name, "/"), name, key);
        return path;
}

static bool has_fault(const struct fixture *f, enum bag_fault_kind kind, const char *path)
{
        for (size_t i = 0; i < f->report.bag.n_faults; i++)
                if (f->report.bag.faults[i].kind == kind && streq(f->report.bag.faults[i].path, path))
                        return true;
        return false;
}

static void test_verifies(void **state)
{
        struct fixture *f = *state;

        synthetic_freeze(f->archive);
        synthetic_seal(f->archive);
        verify(f);
        assert_true(verify_passed(&f->report));
        assert_int_equal(f->report.class, CLASS_ATTRIBUTABLE);
        assert_int_equal(json_array_size(f->report.reasons), 0);
        assert_int_equal(verdict_exit_code(f->report.verdict), 0);
        assert_non_null(summary_cell(f->report.summary, "same/idle"));
}

/* One file deleted, one added, one byte flipped: all three, by name. */
static void test_changed_missing_and_extra_files(void **state)
{
        struct fixture *f = *state;
        char samples[256], trial[256];

        synthetic_freeze(f->archive);
        synthetic_seal(f->archive);
        snprintf(samples, sizeof(samples), "%s", trial_of(f, "a/idle", "samples.csv.zst"));
        snprintf(trial, sizeof(trial), "%s", trial_of(f, "a/load", "trial.json"));
        assert_int_equal(unlinkat(archive_dirfd(f->archive), samples, 0), 0);
        synthetic_edit(f->archive, trial, "\"host\": \"h\"", "\"host\": \"i\"");
        assert_int_equal(file_write_atomic(archive_dirfd(f->archive), "data/more", 0644, span_of_text("x"), NULL), 0);
        verify(f);
        assert_false(verify_passed(&f->report));
        assert_int_equal(f->report.bag.n_faults, 3);
        assert_true(has_fault(f, BAG_MISSING, samples));
        assert_true(has_fault(f, BAG_CHANGED, trial));
        assert_true(has_fault(f, BAG_EXTRA, "data/more"));
        assert_int_equal(f->report.class, CLASS_INVALID);
}

/* What is not a regular file is a fault of the archive, which is named, and no failure to read it. */
static void test_links_and_other_things(void **state)
{
        struct fixture *f = *state;
        char samples[256];

        synthetic_freeze(f->archive);
        synthetic_seal(f->archive);
        snprintf(samples, sizeof(samples), "%s", trial_of(f, "a/idle", "samples.csv.zst"));
        for (size_t i = 0; i < 3; i++) {
                const char *path = i == 0 ? samples : i == 1 ? ARCHIVE_VERDICT : ARCHIVE_JOURNAL;

                assert_int_equal(unlinkat(archive_dirfd(f->archive), path, 0), 0);
                assert_int_equal(symlinkat("/etc/passwd", archive_dirfd(f->archive), path), 0);
                verify(f);
                assert_false(verify_passed(&f->report));
                assert_true(has_fault(f, BAG_UNREADABLE, path));
                assert_int_equal(f->report.class, CLASS_INVALID);
        }
        assert_int_equal(unlinkat(archive_dirfd(f->archive), ARCHIVE_VERDICT, 0), 0);
        assert_int_equal(mkfifoat(archive_dirfd(f->archive), ARCHIVE_VERDICT, 0644), 0);
        verify(f);
        assert_true(has_fault(f, BAG_UNREADABLE, ARCHIVE_VERDICT));
}

/* A number changed and the digests made anew: what is frozen is not what the samples give. */
static void test_a_frozen_number_was_changed(void **state)
{
        struct fixture *f = *state;
        const struct difference *d;

        synthetic_freeze(f->archive);
        synthetic_patch_file(f->archive, ARCHIVE_SUMMARY, "{\"rounds\": {\"counted\": 7}}");
        synthetic_seal(f->archive);
        verify(f);
        assert_int_equal(f->report.bag.n_faults, 0);
        assert_int_equal(f->report.differences.n_all, 1);
        d = &f->report.differences.items[0];
        assert_string_equal(d->file, ARCHIVE_SUMMARY);
        assert_string_equal(d->path, "rounds.counted");
        assert_string_equal(d->frozen, "7");
        assert_string_equal(d->again, "6");
        assert_int_equal(f->report.class, CLASS_INVALID);
}

static void test_a_verdict_was_changed(void **state)
{
        struct fixture *f = *state;

        synthetic_freeze(f->archive);
        synthetic_patch_file(f->archive, ARCHIVE_VERDICT, "{\"exit_code\": 3}");
        synthetic_seal(f->archive);
        verify(f);
        assert_int_equal(f->report.differences.n_all, 1);
        assert_true(differs_at(f, ARCHIVE_VERDICT, "exit_code"));
}

static void test_samples_were_changed(void **state)
{
        struct fixture *f = *state;
        struct synthetic_row rows[SYNTHETIC_SLOTS];
        _cleanup_close_ int dirfd = -1;
        char folder[256];

        synthetic_freeze(f->archive);
        snprintf(folder, sizeof(folder), "%s", trial_of(f, "a/load", ""));
        folder[strlen(folder) - 1] = '\0';
        dirfd = file_open_dir(archive_dirfd(f->archive), folder);
        assert_true(dirfd >= 0);
        for (int64_t i = 0; i < SYNTHETIC_SLOTS; i++)
                rows[i] = synthetic_answer(i, 40000);
        assert_int_equal(unlinkat(dirfd, "samples.csv.zst", 0), 0);
        synthetic_samples(dirfd, rows, SYNTHETIC_SLOTS);
        synthetic_seal(f->archive);
        verify(f);
        assert_int_equal(f->report.bag.n_faults, 0);
        assert_true(f->report.differences.n_all > 3);
        assert_true(differs_at(f, ARCHIVE_SUMMARY, "cells[1].trials[0].series.rtt.p99_ns"));
}

static void test_a_plan_of_another_manifest(void **state)
{
        struct fixture *f = *state;

        synthetic_freeze(f->archive);
        synthetic_edit(f->archive, ARCHIVE_MANIFEST, "ratio_at_most: 1.25", "ratio_at_most: 9.25");
        synthetic_seal(f->archive);
        verify(f);
        assert_true(differs_at(f, ARCHIVE_PLAN, "manifest.sha256"));
        assert_true(differs_at(f, ARCHIVE_VERDICT, "hypotheses[0].rules[0].at_most"));
}

/* Another version of Assay may estimate otherwise what a campaign takes: its archives still check. */
static void test_another_estimate(void **state)
{
        struct fixture *f = *state;

        synthetic_freeze(f->archive);
        synthetic_patch_file(f->archive, ARCHIVE_PLAN, "{\"expected\": {\"duration_ns\": 5, \"disk_bytes\": 7}}");
        synthetic_seal(f->archive);
        verify(f);
        assert_true(verify_passed(&f->report));
        synthetic_patch_file(f->archive, ARCHIVE_PLAN, "{\"expected\": {\"duration_ns\": -5, \"disk_bytes\": 7}}");
        verify(f);
        assert_true(differs_at(f, ARCHIVE_PLAN, ""));
}

static void test_a_short_run_passed_off_as_whole(void **state)
{
        const struct manifest_options is_short = {.is_short = true};
        struct fixture *f = *state;

        archive_free(f->archive);
        assert_int_equal(file_remove_tree(f->scratch.fd, "archive"), 0);
        f->archive = synthetic_archive(f->scratch.fd, &is_short);
        synthetic_freeze(f->archive);
        synthetic_patch_file(f->archive, ARCHIVE_PLAN, "{\"short\": false}");
        synthetic_seal(f->archive);
        verify(f);
        assert_true(differs_at(f, ARCHIVE_PLAN, "cells[0].config.workload.rate"));
}

static void test_other_bytes(void **state)
{
        struct fixture *f = *state;

        synthetic_freeze(f->archive);
        synthetic_edit(f->archive, ARCHIVE_VERDICT, "{", "{ ");
        synthetic_seal(f->archive);
        verify(f);
        assert_int_equal(f->report.differences.n_all, 1);
        assert_true(differs_at(f, ARCHIVE_VERDICT, ""));
        assert_string_equal(f->report.differences.items[0].frozen, "the same content in other bytes");
}

static void test_a_disputed_trial(void **state)
{
        struct fixture *f = *state;
        char trial[256];

        synthetic_freeze(f->archive);
        snprintf(trial, sizeof(trial), "%s", trial_of(f, "a/idle", "trial.json"));
        synthetic_patch_file(f->archive, trial, "{\"valid\": false}");
        synthetic_freeze(f->archive);
        synthetic_seal(f->archive);
        verify(f);
        assert_int_equal(f->report.differences.n_all, 2);
        assert_true(differs_at(f, trial, "valid"));
        assert_true(differs_at(f, ARCHIVE_JOURNAL, journal_path(trial, "valid")));
}

/* What a trial.json says of its place in the campaign is changed, and everything else made anew: the plan knows. */
static void test_a_trial_of_another_place(void **state)
{
        static const struct {
                const char *key, *patch;
        } cases[] = {
                {"index", "{\"index\": 99}"},          {"seed", "{\"seed\": \"0000000000000001\"}"},
                {"campaign", "{\"campaign\": 2}"},     {"ended_realtime_ns", "{\"ended_realtime_ns\": 4}"},
                {"cell", "{\"cell\": \"harm/idle\"}"}, {"round", "{\"round\": 7}"},
                {"extra", "{\"extra\": 1}"},
        };
        struct fixture *f = *state;
        _cleanup_free_ char *whole = NULL;
        char trial[256];
        size_t len;

        synthetic_freeze(f->archive);
        snprintf(trial, sizeof(trial), "%s", trial_of(f, "a/idle", "trial.json"));
        synthetic_seal(f->archive);
        assert_int_equal(file_read(archive_dirfd(f->archive), trial, 1 << 20, &whole, &len, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                synthetic_patch_file(f->archive, trial, cases[i].patch);
                verify(f);
                if (!differs_at(f, trial, cases[i].key))
                        fail_msg("another %s was not noticed", cases[i].key);
                assert_int_equal(file_write_atomic(archive_dirfd(f->archive), trial, 0644, span_of(whole, len), NULL),
                                 0);
        }
        verify(f);
        assert_true(verify_passed(&f->report));
}

/* The clock was set back during the trial, which says so: then it may end before it began. */
static void test_a_clock_that_was_set_back(void **state)
{
        struct fixture *f = *state;
        char trial[256];

        synthetic_freeze(f->archive);
        snprintf(trial, sizeof(trial), "%s", trial_of(f, "a/idle", "trial.json"));
        synthetic_patch_file(f->archive, trial, "{\"ended_realtime_ns\": 4, \"clock\": {\"realtime_step_ns\": -3}}");
        synthetic_seal(f->archive);
        verify(f);
        assert_false(differs_at(f, trial, "ended_realtime_ns"));
        assert_true(differs_at(f, ARCHIVE_JOURNAL, journal_path(trial, "ended_realtime_ns")));
}

/* A line of the journal that says something else than the trial. */
static void test_a_journal_of_other_trials(void **state)
{
        static const struct {
                const char *key, *from, *to;
        } cases[] = {
                {"round", "\"round\":1", "\"round\":2"},
                {"valid", "\"valid\":true", "\"valid\":false"},
                {"reason", "\"reason\":\"\"", "\"reason\":\"r\""},
                {"cell", "\"cell\":\"", "\"cell\":\"x"},
                {"started_realtime_ns", "\"started_realtime_ns\":5", "\"started_realtime_ns\":6"},
                {"ended_realtime_ns", "\"ended_realtime_ns\":9", "\"ended_realtime_ns\":8"},
        };
        struct fixture *f = *state;
        _cleanup_json_ json_t *journal = NULL;
        const char *name;

        synthetic_freeze(f->archive);
        assert_int_equal(archive_journal_read(f->archive, &journal, NULL), 0);
        name = json_string_value(json_object_get(json_array_get(journal, 0), "trial"));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                synthetic_edit(f->archive, ARCHIVE_JOURNAL, cases[i].from, cases[i].to);
        synthetic_seal(f->archive);
        verify(f);
        assert_int_equal(f->report.bag.n_faults, 0);
        assert_int_equal(f->report.differences.n_all, ARRAY_SIZE(cases));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char path[256];

                snprintf(path, sizeof(path), "%s.%s", name, cases[i].key);
                if (!differs_at(f, ARCHIVE_JOURNAL, path))
                        fail_msg("another %s was not noticed", cases[i].key);
        }
}

/* What is missing or malformed is named, and is no failure of verifying. */
static void test_files_that_cannot_be_read(void **state)
{
        static const char *const files[] = {ARCHIVE_VERDICT, ARCHIVE_SUMMARY, ARCHIVE_PLAN, ARCHIVE_MANIFEST};
        struct fixture *f = *state;

        synthetic_freeze(f->archive);
        synthetic_seal(f->archive);
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                assert_int_equal(unlinkat(archive_dirfd(f->archive), files[i], 0), 0);
                verify(f);
                assert_true(has_fault(f, BAG_MISSING, files[i]));
                assert_true(f->report.differences.n_all > 0);
                assert_int_equal(f->report.class, CLASS_INVALID);
        }
}

static void test_malformed_files(void **state)
{
        static const char *const files[] = {ARCHIVE_VERDICT, ARCHIVE_SUMMARY, ARCHIVE_JOURNAL, ARCHIVE_PLAN};
        struct fixture *f = *state;

        synthetic_freeze(f->archive);
        synthetic_seal(f->archive);
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                assert_int_equal(file_write_atomic(archive_dirfd(f->archive), files[i], 0644, span_of_text("[{]\n"),
                                                   NULL),
                                 0);
                verify(f);
                assert_true(has_fault(f, BAG_CHANGED, files[i]));
                assert_true(f->report.differences.n_all > 0);
        }
}

static void test_not_finished(void **state)
{
        struct fixture *f = *state;
        struct err err = {0};

        synthetic_freeze(f->archive);
        assert_true(verify_archive(f->archive, &test_kinds, &f->report, &err) < 0);
        assert_int_equal(err_exit_code(err.kind), 5);
        assert_non_null(strstr(err.text, "--resume"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_verifies),
                TEST(test_changed_missing_and_extra_files),
                TEST(test_links_and_other_things),
                TEST(test_a_frozen_number_was_changed),
                TEST(test_a_verdict_was_changed),
                TEST(test_samples_were_changed),
                TEST(test_a_plan_of_another_manifest),
                TEST(test_another_estimate),
                TEST(test_a_short_run_passed_off_as_whole),
                TEST(test_other_bytes),
                TEST(test_a_disputed_trial),
                TEST(test_a_trial_of_another_place),
                TEST(test_a_clock_that_was_set_back),
                TEST(test_a_journal_of_other_trials),
                TEST(test_files_that_cannot_be_read),
                TEST(test_malformed_files),
                TEST(test_not_finished),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
