/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/class.h"
#include "tests/unit/evidence/synthetic-archive.h"

struct fixture {
        struct scratch scratch;
        struct archive *archive;
        json_t *verdict, *reasons;
};

static int setup_with(void **state, const struct manifest_options *options)
{
        struct fixture *f = calloc(1, sizeof(*f));

        if (!f)
                return -1;
        f->scratch = scratch_make();
        f->archive = synthetic_archive(f->scratch.fd, options);
        synthetic_freeze(f->archive);
        synthetic_seal(f->archive);
        *state = f;
        return json_load(archive_dirfd(f->archive), ARCHIVE_VERDICT, 1 << 24, &f->verdict, NULL);
}

static int setup(void **state)
{
        return setup_with(state, NULL);
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        json_decref(f->verdict);
        json_decref(f->reasons);
        archive_free(f->archive);
        scratch_remove(&f->scratch);
        free(f);
        return 0;
}

static void expect(struct fixture *f, struct class_input input, enum evidence_class expected)
{
        enum evidence_class class;
        struct err err = {0};

        json_decref(f->reasons);
        f->reasons = NULL;
        input.archive = f->archive;
        input.verdict = input.verdict ?: f->verdict;
        synthetic_must(class_derive(&input, &class, &f->reasons, &err), &err);
        assert_string_equal(class_name(class), class_name(expected));
}

static void expect_reason(const struct fixture *f, const char *class, const char *part)
{
        json_t *reason;
        size_t i;

        json_array_foreach(f->reasons, i, reason)
        {
                if (streq(json_string_value(json_object_get(reason, "class")), class) &&
                    strstr(json_string_value(json_object_get(reason, "reason")), part))
                        return;
        }
        fail_msg("no reason for %s holds \"%s\"", class, part);
}

static void test_attributable(void **state)
{
        struct fixture *f = *state;

        expect(f, (struct class_input){0}, CLASS_ATTRIBUTABLE);
        assert_int_equal(json_array_size(f->reasons), 0);
}

static void test_shortened_and_overridden(void **state)
{
        static const char *const overrides[] = {"seed=7"};
        const struct manifest_options options = {.is_short = true, .n_overrides = 1, .overrides = overrides};
        struct fixture *f;

        assert_int_equal(setup_with((void **)&f, &options), 0);
        expect(f, (struct class_input){0}, CLASS_PROVISIONAL);
        expect_reason(f, "provisional", "the short form");
        expect_reason(f, "provisional", "seed=7");
        assert_int_equal(json_array_size(f->reasons), 2);
        teardown((void **)&f);
}

static void test_skipped_cell(void **state)
{
        struct fixture *f = *state;

        synthetic_patch_file(f->archive, ARCHIVE_PLAN, "{\"skipped\": [\"same/idle\"]}");
        expect(f, (struct class_input){0}, CLASS_PROVISIONAL);
        expect_reason(f, "provisional", "could not run cell same/idle");
}

static void test_modified_build(void **state)
{
        struct fixture *f = *state;

        synthetic_patch_file(f->archive, ARCHIVE_RUN_ENV, "{\"stable\": {\"tool\": {\"is_modified\": true}}}");
        expect(f, (struct class_input){0}, CLASS_PROVISIONAL);
        expect_reason(f, "provisional", "modified");
        synthetic_patch_file(f->archive, ARCHIVE_RUN_ENV, "{\"stable\": {\"tool\": null}}");
        expect(f, (struct class_input){0}, CLASS_PROVISIONAL);
        expect_reason(f, "provisional", "does not say which build");
        assert_int_equal(unlinkat(archive_dirfd(f->archive), ARCHIVE_RUN_ENV, 0), 0);
        expect(f, (struct class_input){0}, CLASS_PROVISIONAL);
        expect_reason(f, "provisional", "is missing");
}

/* As a resumption does: the environment, unless @env is NULL, and a line of the journal. */
static void resume(const struct fixture *f, unsigned number, const char *env)
{
        static const char line[] = "{\"event\":\"resumed\"}\n";
        int fd = openat(archive_dirfd(f->archive), ARCHIVE_JOURNAL, O_WRONLY | O_APPEND | O_CLOEXEC);
        char path[64];

        snprintf(path, sizeof(path), ARCHIVE_RUN_ENV_RESUMED, number);
        if (env)
                assert_int_equal(file_write_atomic(archive_dirfd(f->archive), path, 0644, span_of_text(env), NULL), 0);
        assert_int_equal(file_write_all(fd, line, strlen(line)), 0);
        close(fd);
}

static void test_resumed_by_a_modified_build(void **state)
{
        struct fixture *f = *state;

        resume(f, 1, "{\"stable\": {\"tool\": {\"is_modified\": true}}}");
        expect(f, (struct class_input){0}, CLASS_PROVISIONAL);
        expect_reason(f, "provisional", "run-env-resumed-1.json");
}

static void test_resumed_by_another_build(void **state)
{
        struct fixture *f = *state;
        static const char env[] = "{\"stable\": {\"tool\": {\"is_modified\": false, \"commit\": \"bbb\"}}}";

        synthetic_patch_file(f->archive, ARCHIVE_RUN_ENV, "{\"stable\": {\"tool\": {\"commit\": \"aaa\"}}}");
        resume(f, 1, env);
        expect(f, (struct class_input){0}, CLASS_PROVISIONAL);
        expect_reason(f, "provisional", "started by a build of aaa, resumed by one of bbb");
        synthetic_patch_file(f->archive, ARCHIVE_RUN_ENV, "{\"stable\": {\"tool\": {\"commit\": \"bbb\"}}}");
        expect(f, (struct class_input){0}, CLASS_ATTRIBUTABLE);
}

/* Each resumption counts: a later one by a clean build does not hide an earlier one, nor does removing its file. */
static void test_resumed_more_than_once(void **state)
{
        static const char clean[] = "{\"stable\": {\"tool\": {\"is_modified\": false, \"commit\": \"aaa\"}}}";
        struct fixture *f = *state;

        synthetic_patch_file(f->archive, ARCHIVE_RUN_ENV, "{\"stable\": {\"tool\": {\"commit\": \"aaa\"}}}");
        resume(f, 1, clean);
        resume(f, 2, clean);
        expect(f, (struct class_input){0}, CLASS_ATTRIBUTABLE);
        resume(f, 3, "{\"stable\": {\"tool\": {\"is_modified\": true, \"commit\": \"aaa\"}}}");
        resume(f, 4, clean);
        expect(f, (struct class_input){0}, CLASS_PROVISIONAL);
        expect_reason(f, "provisional", "run-env-resumed-3.json");
        assert_int_equal(unlinkat(archive_dirfd(f->archive), "data/run-env-resumed-3.json", 0), 0);
        expect(f, (struct class_input){0}, CLASS_PROVISIONAL);
        expect_reason(f, "provisional", "run-env-resumed-3.json, which names the build that ran it, is missing");
}

static const char *a_trial(const struct fixture *f, const char *file)
{
        static char path[256];
        json_t *plan = NULL;

        assert_int_equal(json_load(archive_dirfd(f->archive), ARCHIVE_PLAN, 1 << 24, &plan, NULL), 0);
        snprintf(path, sizeof(path), ARCHIVE_TRIALS "/%s/%s",
                 json_string_value(json_object_get(json_array_get(json_object_get(plan, "trials"), 0), "trial")), file);
        json_decref(plan);
        return path;
}

static void test_weaker_mechanism(void **state)
{
        struct fixture *f = *state;

        synthetic_patch_file(f->archive, a_trial(f, "trial.json"),
                             "{\"boundary\": {\"weaker\": [\"slices told apart by nftables\"]}}");
        expect(f, (struct class_input){0}, CLASS_PROVISIONAL);
        expect_reason(f, "provisional", "slices told apart by nftables (in 1 trial)");
}

/* What the kernel refused to an instrument, wherever the notes have it; what was granted is no reason. */
static void test_refused_scheduling(void **state)
{
        struct fixture *f = *state;

        synthetic_patch_file(f->archive, a_trial(f, "trial.json"),
                             "{\"notes\": {\"probe\": {\"scheduling\": {\"cpu\": 0, \"refused\": "
                             "{\"fifo_priority\": \"EPERM\"}}}, \"reflector\": {\"refused\": 7, \"scheduling\": "
                             "{\"fifo_priority\": 51, \"refused\": {}}}, \"monitor\": {\"refused\": "
                             "{\"memory_locked\": \"ENOMEM\", \"later\": \"EPERM\"}}, \"sink\": \"bpf\"}, "
                             "\"background\": {\"bulk\": {\"notes\": {\"generator\": {\"scheduling\": "
                             "{\"refused\": {\"nice\": \"EACCES\"}}}}}}}");
        expect(f, (struct class_input){0}, CLASS_PROVISIONAL);
        expect_reason(f, "provisional", "the probe ran without real-time priority (EPERM) (in 1 trial)");
        expect_reason(f, "provisional", "the monitor ran without locked memory (ENOMEM)");
        expect_reason(f, "provisional", "the monitor was refused later (EPERM)");
        expect_reason(f, "provisional", "the generator of bulk ran without its nice value (EACCES)");
        assert_int_equal(json_array_size(f->reasons), 4);
}

static void test_missing_samples(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(unlinkat(archive_dirfd(f->archive), a_trial(f, "samples.csv.zst"), 0), 0);
        expect(f, (struct class_input){0}, CLASS_HISTORICAL);
        expect_reason(f, "historical", "the samples of 1 trial");
}

static void test_missing_digests(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(unlinkat(archive_dirfd(f->archive), "manifest-sha256.txt", 0), 0);
        expect(f, (struct class_input){0}, CLASS_HISTORICAL);
}

static void test_bag_faults(void **state)
{
        struct bag_fault faults[] = {{.kind = BAG_MISSING, .path = (char *)ARCHIVE_TRIALS "/x/samples.csv.zst"},
                                     {.kind = BAG_CHANGED, .path = (char *)ARCHIVE_SUMMARY}};
        struct bag_report bag = {.n_faults = 1, .faults = faults};
        struct fixture *f = *state;

        expect(f, (struct class_input){.bag = &bag}, CLASS_HISTORICAL);
        bag.n_faults = 2;
        expect(f, (struct class_input){.bag = &bag}, CLASS_INVALID);
        expect_reason(f, "historical", "samples of 1 trial");
        expect_reason(f, "invalid", "1 file is not as the digests say");
        expect(f, (struct class_input){.n_differences = 1}, CLASS_INVALID);
}

static void test_invalid_campaign(void **state)
{
        _cleanup_json_ json_t *verdict = json_pack("{s:{s:b, s:[s]}}", "campaign", "valid", 0, "reasons", "5 of 6");
        _cleanup_json_ json_t *none = json_object();
        struct fixture *f = *state;

        expect(f, (struct class_input){.verdict = verdict}, CLASS_INVALID);
        expect_reason(f, "invalid", "5 of 6");
        expect(f, (struct class_input){.verdict = none}, CLASS_INVALID);
        expect_reason(f, "invalid", "no verdict");
}

static void test_superseded(void **state)
{
        struct fixture *f = *state;

        expect(f, (struct class_input){.superseded_by = "exp-900-later"}, CLASS_SUPERSEDED);
        expect_reason(f, "superseded", "exp-900-later takes its place");
        assert_int_equal(unlinkat(archive_dirfd(f->archive), "manifest-sha256.txt", 0), 0);
        expect(f, (struct class_input){.superseded_by = "exp-900-later"}, CLASS_HISTORICAL);
        assert_int_equal(json_array_size(f->reasons), 2); /* all reasons, not only the worst */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_attributable),
                cmocka_unit_test(test_shortened_and_overridden),
                TEST(test_skipped_cell),
                TEST(test_modified_build),
                TEST(test_resumed_by_a_modified_build),
                TEST(test_resumed_more_than_once),
                TEST(test_resumed_by_another_build),
                TEST(test_weaker_mechanism),
                TEST(test_refused_scheduling),
                TEST(test_missing_samples),
                TEST(test_missing_digests),
                TEST(test_bag_faults),
                TEST(test_invalid_campaign),
                TEST(test_superseded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
