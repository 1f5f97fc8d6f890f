/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "archive/archive-internal.h"
#include "archive/bag.h"
#include "archive/samples.h"
#include "base/text.h"
#include "tests/fault.h"
#include "tests/skip.h"
#include "tests/test.h"

#define TRIALS 3

static const char *const trial_names[TRIALS] = {"0001-tree-idle-r1", "0002-tree-600mbit-r1", "0003-tree-idle-r2"};

static void put_file(int dirfd, const char *name, const char *text)
{
        assert_int_equal(file_write_atomic(dirfd, name, 0644, span_of_text(text), NULL), 0);
}

static bool is_there(int dirfd, const char *path)
{
        return faccessat(dirfd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The content of a file below the archive. */
static char *content(int dirfd, const char *path)
{
        char *data = NULL;
        size_t len;

        if (file_read(dirfd, path, 1 << 20, &data, &len, NULL) < 0)
                return NULL;
        return data;
}

static json_t *object(const char *text)
{
        json_t *value = NULL;

        assert_int_equal(json_parse(span_of_text(text), "test", &value, NULL), 0);
        return value;
}

static void test_layout(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_archive_ struct archive *archive = NULL;
        _cleanup_json_ json_t *plan = object("{\"b\": 1, \"a\": [2]}");
        _cleanup_free_ char *text = NULL;
        struct err err = {0};

        assert_int_equal(archive_create(scratch.fd, "exp-001-20261130T120000Z", &archive, &err), 0);
        assert_int_equal(archive_write(archive, "data/inputs/policies/one.yaml", span_of_text("x: 1\n"), &err), 0);
        assert_int_equal(archive_write_json(archive, ARCHIVE_PLAN, plan, &err), 0);
        text = content(scratch.fd, "exp-001-20261130T120000Z/data/plan.json");
        assert_string_equal(text, "{\n  \"a\": [\n    2\n  ],\n  \"b\": 1\n}\n");
        assert_true(is_there(archive_dirfd(archive), "data/inputs/policies/one.yaml"));
        assert_false(archive_is_finished(archive));
}

static void test_existing_folder(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        struct archive *archive = NULL;
        struct err err = {0};

        assert_int_equal(mkdirat(scratch.fd, "taken", 0755), 0);
        put_file(scratch.fd, "taken/precious", "x");
        assert_int_equal(archive_create(scratch.fd, "taken", &archive, &err), -EEXIST);
        assert_null(archive);
        assert_int_equal(err.kind, ERR_USAGE);
        assert_non_null(strstr(err.text, "taken"));
        assert_non_null(strstr(err.text, "--resume"));
        assert_true(is_there(scratch.fd, "taken/precious"));
}

static void test_prepared_archive_is_hidden(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_archive_ struct archive *one = NULL, *two = NULL, *reopened = NULL;
        struct err err = {0};

        /* a remain, which goes; one that is being made, which stays; and what is not an archive */
        assert_int_equal(archive_prepare(scratch.fd, "remain", &one, &err), 0);
        archive_free(TAKE_PTR(one));
        assert_true(is_there(scratch.fd, ".assay-new.remain/data"));
        put_file(scratch.fd, ".assay-new.file", "x");
        assert_int_equal(symlinkat("/", scratch.fd, ".assay-new.link"), 0);
        assert_int_equal(archive_prepare(scratch.fd, "one", &one, &err), 0);
        assert_false(is_there(scratch.fd, ".assay-new.remain"));
        assert_int_equal(archive_prepare(scratch.fd, "two", &two, &err), 0);
        assert_true(is_there(scratch.fd, ".assay-new.one"));

        assert_int_equal(archive_write(one, "data/x", span_of_text("x"), &err), 0);
        assert_false(is_there(scratch.fd, "one"));
        assert_int_equal(archive_publish(one, scratch.fd, "one", &err), 0);
        assert_true(is_there(scratch.fd, "one/data/x"));
        assert_false(is_there(scratch.fd, ".assay-new.one"));
        assert_int_equal(archive_open(scratch.fd, "one", &reopened, &err), 0);
        assert_int_equal(archive_lock(reopened, &err), -EBUSY); /* it is still that of the first */

        assert_int_equal(mkdirat(scratch.fd, "two", 0755), 0);
        assert_int_equal(archive_publish(two, scratch.fd, "two", &err), -EEXIST);
        assert_int_equal(err.kind, ERR_USAGE);
        assert_int_equal(archive_abandon(scratch.fd, "two"), 0);
        assert_false(is_there(scratch.fd, ".assay-new.two"));
        assert_true(is_there(scratch.fd, "two"));
}

static void test_open_needs_a_payload(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        struct archive *archive = NULL;
        struct err err = {0};

        assert_int_equal(archive_open(scratch.fd, "none", &archive, &err), -ENOENT);
        assert_int_equal(mkdirat(scratch.fd, "empty", 0755), 0);
        assert_int_equal(archive_open(scratch.fd, "empty", &archive, &err), -ENOENT);
        assert_non_null(strstr(err.text, "not an archive"));
        assert_int_equal(symlinkat("/", scratch.fd, "empty/data"), 0);
        assert_true(archive_open(scratch.fd, "empty", &archive, &err) < 0);
        assert_null(archive);
}

static void test_paths_stay_below_data(void **state)
{
        static const char *const wrong[] = {"data/../x", "/data/x",  "data", "data/",     "datax/y",  "x",
                                            "data//x",   "data/./x", "",     "../data/x", "bagit.txt"};
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_archive_ struct archive *archive = NULL;

        assert_int_equal(archive_create(scratch.fd, "a", &archive, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                struct err err = {0};

                assert_int_equal(archive_write(archive, wrong[i], span_of_text("x"), &err), -EINVAL);
                assert_int_equal(err.kind, ERR_BUG);
        }
        /* nor through a link that somebody put there */
        assert_int_equal(symlinkat("/tmp", archive_dirfd(archive), "data/link"), 0);
        assert_true(archive_write(archive, "data/link/assay-should-not-be-here", span_of_text("x"), NULL) < 0);
        assert_int_equal(access("/tmp/assay-should-not-be-here", F_OK), -1);
}

static void test_lock_is_exclusive(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_archive_ struct archive *first = NULL, *second = NULL;
        struct err err = {0};

        assert_int_equal(archive_create(scratch.fd, "a", &first, NULL), 0);
        assert_int_equal(archive_lock(first, NULL), 0); /* it has it already */
        assert_int_equal(archive_open(scratch.fd, "a", &second, NULL), 0);
        assert_int_equal(archive_lock(second, &err), -EBUSY);
        assert_non_null(strstr(err.text, "in use"));
        assert_int_equal(archive_write(second, "data/x", span_of_text("x"), &err), -EPERM);
        assert_int_equal(archive_trial_begin(second, "t", &err), -EPERM);
        assert_int_equal(archive_trials_sweep(second, &err), -EPERM);
        archive_free(TAKE_PTR(first));
        assert_int_equal(archive_lock(second, &err), 0);
}

static void test_trial_names(void **state)
{
        static const char *const wrong[] = {"", ".", "..", ".x", "-x", "a/b", "A", "a b", "\xc3\xa4", "a\nb", "a_b"};
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_archive_ struct archive *archive = NULL;
        _cleanup_json_ json_t *line = json_object();
        char name[202];

        assert_int_equal(archive_create(scratch.fd, "a", &archive, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                assert_int_equal(archive_trial_begin(archive, wrong[i], NULL), -EINVAL);
                assert_int_equal(archive_trial_open(archive, wrong[i], NULL), -EINVAL);
        }
        memset(name, 'a', sizeof(name));
        name[201] = '\0';
        assert_int_equal(archive_trial_begin(archive, name, NULL), -EINVAL);
        name[200] = '\0';
        close(archive_trial_begin(archive, name, NULL));
        assert_int_equal(archive_trial_commit(archive, name, line, NULL), 0);
}

static void run_trial(struct archive *archive, const char *name)
{
        _cleanup_json_ json_t *line = object("{\"valid\": true}");
        int fd = archive_trial_begin(archive, name, NULL);

        assert_true(fd >= 0);
        put_file(fd, "trial.json", name);
        close(fd);
        assert_int_equal(archive_trial_commit(archive, name, line, NULL), 0);
}

static void test_trial_life(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_archive_ struct archive *archive = NULL;
        _cleanup_json_ json_t *event = object("{\"event\": \"started\"}"), *lines = NULL;
        _cleanup_free_ char *journal = NULL;
        struct err err = {0};
        int fd;

        assert_int_equal(archive_create(scratch.fd, "a", &archive, NULL), 0);
        assert_int_equal(archive_journal_append(archive, event, NULL), 0);
        fd = archive_trial_begin(archive, "t1", NULL);
        assert_true(fd >= 0);
        put_file(fd, "stale", "x");
        close(fd);
        assert_int_equal(archive_trial_open(archive, "t1", NULL), -ENOENT); /* not yet */

        run_trial(archive, "t1"); /* begins anew: what was there is gone */
        fd = archive_trial_open(archive, "t1", NULL);
        assert_true(fd >= 0);
        assert_true(is_there(fd, "trial.json"));
        assert_false(is_there(fd, "stale"));
        close(fd);
        assert_int_equal(archive_trial_begin(archive, "t1", &err), -EEXIST);

        journal = content(archive_dirfd(archive), ARCHIVE_JOURNAL);
        assert_string_equal(journal,
                            "{\"event\":\"started\"}\n{\"event\":\"trial\",\"trial\":\"t1\",\"valid\":true}\n");
        assert_int_equal(archive_journal_read(archive, &lines, NULL), 0);
        assert_int_equal(json_array_size(lines), 2);

        /* only a commit writes a trial's line */
        json_object_set_new(event, "event", json_string("trial"));
        assert_int_equal(archive_journal_append(archive, event, &err), -EINVAL);
        assert_int_equal(err.kind, ERR_BUG);
}

/* A file in the place of a trial's folder, or a link to another, is not a trial. */
static void test_trial_has_to_be_a_folder(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_archive_ struct archive *archive = NULL;

        assert_int_equal(archive_create(scratch.fd, "a", &archive, NULL), 0);
        run_trial(archive, "t1");
        put_file(archive_dirfd(archive), "data/trials/t2", "x");
        assert_int_equal(archive_trial_open(archive, "t2", NULL), -ENOTDIR);
        assert_int_equal(symlinkat("t1", archive_dirfd(archive), "data/trials/t3"), 0);
        assert_int_equal(archive_trial_open(archive, "t3", NULL), -ELOOP);
}

static void test_sweep(void **state)
{
        static const char *const go[] = {"data/trials/.t2.partial",
                                         "data/trials/t3",
                                         "data/trials/.x",
                                         "data/trials/f",
                                         "data/.plan.json.0123456789abcdef.tmp",
                                         ".bagit.txt.0.tmp",
                                         "data/inputs/.a.yaml.1.tmp"};
        static const char *const stay[] = {"data/trials/t1/trial.json", "data/inputs/.hidden", "data/x.tmp"};
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_archive_ struct archive *archive = NULL;
        int fd;

        assert_int_equal(archive_create(scratch.fd, "a", &archive, NULL), 0);
        fd = archive_dirfd(archive);
        run_trial(archive, "t1");
        close(archive_trial_begin(archive, "t2", NULL));
        put_file(fd, "data/trials/.t2.partial/samples", "x");
        assert_int_equal(mkdirat(fd, "data/trials/t3", 0755), 0); /* committed, but killed before its line */
        put_file(fd, "data/trials/t3/trial.json", "x");
        put_file(fd, "data/trials/.x", "x");
        put_file(fd, "data/trials/f", "x");
        put_file(fd, "data/.plan.json.0123456789abcdef.tmp", "x");
        put_file(fd, ".bagit.txt.0.tmp", "x");
        assert_int_equal(archive_write(archive, "data/inputs/.hidden", span_of_text("x"), NULL), 0);
        put_file(fd, "data/inputs/.a.yaml.1.tmp", "x");
        put_file(fd, "data/x.tmp", "x");

        assert_int_equal(archive_trials_sweep(archive, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(go); i++)
                assert_false(is_there(fd, go[i]));
        for (size_t i = 0; i < ARRAY_SIZE(stay); i++)
                assert_true(is_there(fd, stay[i]));
}

static void test_lost_trial_is_reported(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_archive_ struct archive *archive = NULL;
        struct err err = {0};

        assert_int_equal(archive_create(scratch.fd, "a", &archive, NULL), 0);
        run_trial(archive, "t1");
        run_trial(archive, "t2");
        assert_int_equal(file_remove_tree(archive_dirfd(archive), "data/trials/t1"), 0);
        assert_int_equal(archive_trials_sweep(archive, &err), -ENOENT);
        assert_int_equal(err.kind, ERR_INTEGRITY);
        assert_non_null(strstr(err.text, "t1"));
}

static void test_journal_lines(void **state)
{
        static const struct {
                const char *text;
                int lines; /* or -EINVAL */
                unsigned line;
        } cases[] = {
                {"", 0, 0},
                {"{\"event\":\"a\"}\n", 1, 0},
                {"{\"event\":\"a\"}\n{\"event\":\"trial\",\"trial\":\"t1\"}\n", 2, 0},
                {"{\"event\":\"a\"}\n{\"event\":\"b\"}", 1, 0}, /* the last line is torn, however whole it looks */
                {"{\"event\":\"a\"}\n{\"eve", 1, 0},
                {"{", 0, 0},
                {"\n", -EINVAL, 1},
                {"{\"event\":\"a\"}\n\n{\"event\":\"b\"}\n", -EINVAL, 2},
                {"{\"event\":\"a\"}\n{\"eve\n{\"event\":\"b\"}\n", -EINVAL, 2},
                {"[]\n", -EINVAL, 1},
                {"{}\n", -EINVAL, 1},
                {"{\"event\":7}\n", -EINVAL, 1},
                {"{\"event\":\"trial\"}\n", -EINVAL, 1},
                {"{\"event\":\"trial\",\"trial\":\"../x\"}\n", -EINVAL, 1},
                {"{\"event\":\"a\",\"event\":\"b\"}\n", -EINVAL, 1},
                {"{\"event\":\"a\"} {}\n", -EINVAL, 1},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *lines = NULL;
                struct err err = {0};
                int r = journal_parse(span_of_text(cases[i].text), &lines, &err);

                assert_int_equal(r < 0 ? r : (int)json_array_size(lines), cases[i].lines);
                assert_int_equal(err.position.line, cases[i].line);
        }
}

/* A torn line of any length is cut off, on both sides of the block that is searched at a time; what precedes it stays.
 */
static void test_torn_journal_is_mended(void **state)
{
        static const size_t torn[] = {1, 100, 4095, 4096, 4097, 9000};

        for (size_t i = 0; i < ARRAY_SIZE(torn); i++) {
                for (int with_line = 0; with_line < 2; with_line++) {
                        _cleanup_scratch_ struct scratch scratch = scratch_make();
                        _cleanup_archive_ struct archive *archive = NULL;
                        _cleanup_json_ json_t *event = object("{\"event\":\"b\"}");
                        _cleanup_free_ char *journal = NULL;
                        _cleanup_text_ struct text text = {0};

                        assert_int_equal(archive_create(scratch.fd, "a", &archive, NULL), 0);
                        archive_free(TAKE_PTR(archive));
                        text_add(&text, with_line ? "{\"event\":\"a\"}\n" : "");
                        for (size_t n = 0; n < torn[i]; n++)
                                text_add(&text, "x");
                        put_file(scratch.fd, "a/data/journal.jsonl", text.data);

                        assert_int_equal(archive_open(scratch.fd, "a", &archive, NULL), 0);
                        assert_int_equal(archive_lock(archive, NULL), 0);
                        assert_int_equal(archive_journal_append(archive, event, NULL), 0);
                        journal = content(scratch.fd, "a/data/journal.jsonl");
                        assert_string_equal(journal, with_line ? "{\"event\":\"a\"}\n{\"event\":\"b\"}\n"
                                                               : "{\"event\":\"b\"}\n");
                }
        }
}

/* A line whose sync fails is not there, whole as it was written; and what an earlier failure left does not spoil the
 * next line. */
static void test_failed_append(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_archive_ struct archive *archive = NULL;
        _cleanup_json_ json_t *event = object("{\"event\":\"a\"}");
        _cleanup_free_ char *journal = NULL;
        bool seen = false;

        assert_int_equal(archive_create(scratch.fd, "a", &archive, NULL), 0);
        for (unsigned n = 1;; n++) {
                _cleanup_json_ json_t *lines = NULL;
                int r;

                fault_arm(FAULT_IO, n);
                r = archive_journal_append(archive, event, NULL);
                if (!fault_disarm())
                        break;
                assert_true(r < 0);
                seen |= strchr(fault_trace(), 'f') != NULL;
                assert_int_equal(archive_journal_read(archive, &lines, NULL), 0);
                assert_int_equal(json_array_size(lines), 0);
        }
        assert_true(seen);

        put_file(archive_dirfd(archive), ARCHIVE_JOURNAL, "{\"event\":\"a\"}\n{\"torn");
        assert_int_equal(archive_journal_append(archive, event, NULL), 0);
        journal = content(archive_dirfd(archive), ARCHIVE_JOURNAL);
        assert_string_equal(journal, "{\"event\":\"a\"}\n{\"event\":\"a\"}\n");
}

static void test_finished_archive_is_not_written(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_archive_ struct archive *archive = NULL;
        _cleanup_json_ json_t *event = object("{\"event\":\"late\"}");
        struct err err = {0};

        assert_int_equal(archive_create(scratch.fd, "a", &archive, NULL), 0);
        run_trial(archive, "t1");
        assert_int_equal(bag_seal(archive, NULL, 0, &err), 0);
        assert_true(archive_is_finished(archive));
        assert_int_equal(archive_write(archive, "data/x", span_of_text("x"), &err), -EROFS);
        assert_int_equal(archive_journal_append(archive, event, &err), -EROFS);
        assert_int_equal(archive_trial_begin(archive, "t2", &err), -EROFS);
        assert_int_equal(bag_seal(archive, NULL, 0, &err), -EROFS);
        assert_int_equal(archive_write(archive, ARCHIVE_ATTESTATION, span_of_text("{}"), &err), 0);
}

/* The campaign that the tests below interrupt. It goes on where the journal says, as --resume does. */
static int run_campaign(int scratch, struct err *err)
{
        static const struct column columns[] = {{"slot", "index", SAMPLE_CLOCK_NONE, ""}};
        _cleanup_archive_ struct archive *archive = NULL;
        _cleanup_json_ json_t *line = json_object();
        int r;

        if (!line)
                return err_set_nomem(err);
        if (is_there(scratch, "a/data")) {
                r = archive_open(scratch, "a", &archive, err);
                if (r == 0)
                        r = archive_lock(archive, err);
                if (r == 0 && archive_is_finished(archive))
                        return 0;
                if (r == 0)
                        r = archive_trials_sweep(archive, err);
        } else {
                r = archive_create(scratch, "a", &archive, err);
        }
        if (r == 0)
                r = archive_write(archive, ARCHIVE_MANIFEST, span_of_text("assay: 1\n"), err);
        for (size_t i = 0; r == 0 && i < TRIALS; i++) {
                _cleanup_samples_writer_ struct samples_writer *writer = NULL;
                _cleanup_close_ int fd = archive_trial_open(archive, trial_names[i], NULL);
                int64_t value = (int64_t)i;

                if (fd >= 0)
                        continue;
                fd = archive_trial_begin(archive, trial_names[i], err);
                if (fd < 0)
                        return fd;
                r = samples_create(fd, "samples.csv.zst", columns, 1, &writer, err);
                if (r == 0)
                        r = sample_write(samples_writer_base(writer), &value, err);
                if (r == 0)
                        r = samples_finish(writer, err);
                if (r == 0)
                        r = file_write_atomic(fd, "trial.json", 0644, span_of_text(trial_names[i]), err);
                if (r == 0)
                        r = archive_trial_commit(archive, trial_names[i], line, err);
        }
        return r < 0 ? r : bag_seal(archive, NULL, 0, err);
}

static void check_trial(const struct archive *archive, const char *name)
{
        _cleanup_samples_reader_ struct samples_reader *reader = NULL;
        _cleanup_close_ int fd = archive_trial_open(archive, name, NULL);
        _cleanup_free_ char *text = NULL;
        const int64_t *const *columns;

        assert_true(fd >= 0);
        text = content(fd, "trial.json");
        assert_non_null(text);
        assert_string_equal(text, name);
        assert_int_equal(samples_open(fd, "samples.csv.zst", &reader, NULL), 0);
        assert_int_equal(samples_read(reader, &columns, NULL), 1);
}

/* After an interruption: every trial in data/trials is whole and in the journal, and the other way round. Return: how
 * many. */
static size_t check_interrupted(int scratch)
{
        _cleanup_archive_ struct archive *archive = NULL;
        _cleanup_json_ json_t *lines = NULL;
        _cleanup_closedir_ DIR *dir = NULL;
        struct dirent *entry;
        size_t folders = 0, i;
        json_t *line;

        if (!is_there(scratch, "a/data"))
                return 0;
        assert_int_equal(archive_open(scratch, "a", &archive, NULL), 0);
        assert_int_equal(archive_lock(archive, NULL), 0);
        if (!archive_is_finished(archive))
                assert_int_equal(archive_trials_sweep(archive, NULL), 0);
        assert_int_equal(archive_journal_read(archive, &lines, NULL), 0);
        json_array_foreach(lines, i, line) check_trial(archive, json_string_value(json_object_get(line, "trial")));

        if (!is_there(scratch, "a/data/trials"))
                return 0;
        dir = fdopendir(file_open_dir(scratch, "a/data/trials"));
        assert_non_null(dir);
        while ((entry = readdir(dir)))
                folders += !streq(entry->d_name, ".") && !streq(entry->d_name, "..");
        assert_int_equal(folders, json_array_size(lines));
        return folders;
}

/* A folder that a kill left before it was an archive is not gone on with; a person removes it. */
static void remove_stub(int scratch)
{
        if (is_there(scratch, "a") && !is_there(scratch, "a/data"))
                assert_int_equal(file_remove_tree(scratch, "a"), 0);
}

static void check_complete(int scratch)
{
        _cleanup_bag_report_ struct bag_report report = {0};
        _cleanup_archive_ struct archive *archive = NULL;

        assert_int_equal(check_interrupted(scratch), TRIALS);
        assert_int_equal(archive_open(scratch, "a", &archive, NULL), 0);
        assert_true(archive_is_finished(archive));
        assert_int_equal(bag_check(archive, BAG_AS_ARCHIVE, &report, NULL), 0);
        for (size_t i = 0; i < report.n_faults; i++)
                fail_msg("%s: %s", report.faults[i].path, report.faults[i].detail);
        assert_int_equal(report.files, 2 + 2 * TRIALS);
}

/* SIGKILL at each system call in turn. */
static void test_killed_anywhere(void **state)
{
        size_t seen[TRIALS + 1] = {0};
        bool ended = false;

        for (unsigned n = 1; !ended; n++) {
                _cleanup_scratch_ struct scratch scratch = scratch_make();
                struct err err = {0};
                int status;
                pid_t pid = fork();

                assert_true(pid >= 0);
                if (pid == 0) {
                        fault_arm(FAULT_KILL, n);
                        _exit(run_campaign(scratch.fd, NULL) < 0);
                }
                assert_int_equal(waitpid(pid, &status, 0), pid);
                ended = WIFEXITED(status);
                if (ended)
                        assert_int_equal(WEXITSTATUS(status), 0);
                else
                        assert_int_equal(WTERMSIG(status), SIGKILL);

                seen[check_interrupted(scratch.fd)]++;
                remove_stub(scratch.fd);
                if (run_campaign(scratch.fd, &err) < 0)
                        fail_msg("killed at call %u: %s", n, err.text);
                check_complete(scratch.fd);
        }
        /* it was interrupted with each number of trials done */
        for (size_t i = 0; i <= TRIALS; i++)
                assert_true(seen[i] > 0);
}

/* Each allocation and each call fails once, or the disk is full from then on: an error with a reason, and going on
 * afterwards completes. */
static void test_faults_anywhere(void **state)
{
        static const enum fault_call kinds[] = {FAULT_ALLOCATION, FAULT_IO, FAULT_FULL};

        for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
                for (unsigned n = 1;; n++) {
                        _cleanup_scratch_ struct scratch scratch = scratch_make();
                        struct err err = {0};
                        int r;

                        fault_arm(kinds[k], n);
                        r = run_campaign(scratch.fd, &err);
                        if (!fault_disarm()) {
                                assert_int_equal(r, 0);
                                assert_true(n > 10);
                                break;
                        }
                        if (r < 0)
                                assert_int_not_equal(err.kind, ERR_NONE);
                        check_interrupted(scratch.fd);
                        remove_stub(scratch.fd);
                        err = (struct err){0};
                        if (run_campaign(scratch.fd, &err) < 0)
                                fail_msg("fault %u: %s", n, err.text);
                        check_complete(scratch.fd);
                }
        }
}

/* The power cut that no kill shows: what was not synced may be lost, in any order. So each file is synced after its
 * last write and before the rename that shows it, and each folder after the rename. */
static void test_order_of_syncs(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_archive_ struct archive *archive = NULL;
        _cleanup_json_ json_t *line = json_object();
        int fd;

        assert_int_equal(archive_create(scratch.fd, "a", &archive, NULL), 0);
        fd = archive_trial_begin(archive, "t", NULL);
        assert_true(fd >= 0);
        fault_arm(FAULT_IO, 1000000);
        assert_int_equal(file_write_atomic(fd, "trial.json", 0644, span_of_text("x"), NULL), 0);
        assert_string_equal(fault_trace(), "owfrd");
        close(fd);

        fault_arm(FAULT_IO, 1000000);
        assert_int_equal(archive_trial_commit(archive, "t", line, NULL), 0);
        /* data and trials exist (mkdir fails); file and folder, rename, folder; journal made, its folder, line, file */
        assert_string_equal(fault_trace(), "mmfdrdodwf");
        fault_disarm();
}

/* main() has given this process mounts of its own, which end with it. */
static bool has_own_mounts;

static void test_full_disk(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_free_ char *big = calloc(1, 1 << 20), *path = text_format("%s/full", scratch.path);
        _cleanup_close_ int full = -1;
        struct err err = {0};

        assert_int_equal(mkdir(path, 0755), 0);
        if (!has_own_mounts || mount("assay-test", path, "tmpfs", 0, "size=256k") < 0) {
                if (test_must_run("root"))
                        fail_msg("root: cannot mount a small file system to fill");
                print_message("SKIP: root: no small file system to fill; injected faults stand for it\n");
                skip();
        }
        full = file_open_dir(AT_FDCWD, path);
        assert_int_equal(file_write_atomic(full, "filler", 0644, span_of(big, 230 * 1024), NULL), 0);
        assert_int_equal(file_write_atomic(full, "too-much", 0644, span_of(big, 64 * 1024), &err), -ENOSPC);
        assert_false(is_there(full, "too-much"));
        assert_int_equal(file_write_atomic(full, "filler", 0644, span_of(big, 0), NULL), 0);
        assert_int_equal(file_write_atomic(full, "filler", 0644, span_of(big, 252 * 1024), NULL), 0);
        assert_int_equal(run_campaign(full, &err), -ENOSPC);
        assert_non_null(strstr(err.text, "No space left"));
        check_interrupted(full);
        remove_stub(full);
        assert_int_equal(unlinkat(full, "filler", 0), 0);
        assert_int_equal(run_campaign(full, &err), 0);
        check_complete(full);
        close(TAKE_FD(full));
        assert_int_equal(umount2(path, MNT_DETACH), 0);
}

static void test_read_only_folder(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_free_ char *path = text_format("%s/ro", scratch.path);
        _cleanup_close_ int folder = -1;
        struct err err = {0};

        assert_int_equal(mkdir(path, 0755), 0);
        if (has_own_mounts && mount("assay-test", path, "tmpfs", MS_RDONLY, "size=64k") < 0)
                fail_msg("cannot mount: %m");
        else if (!has_own_mounts)
                assert_int_equal(chmod(path, 0555), 0);
        folder = file_open_dir(AT_FDCWD, path);
        assert_int_equal(run_campaign(folder, &err), has_own_mounts ? -EROFS : -EACCES);
        assert_int_equal(err.kind, ERR_IO);
        assert_non_null(strstr(err.text, "cannot make the archive a"));
        close(TAKE_FD(folder));
        if (has_own_mounts)
                assert_int_equal(umount2(path, MNT_DETACH), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_layout),
                cmocka_unit_test(test_existing_folder),
                cmocka_unit_test(test_prepared_archive_is_hidden),
                cmocka_unit_test(test_open_needs_a_payload),
                cmocka_unit_test(test_paths_stay_below_data),
                cmocka_unit_test(test_lock_is_exclusive),
                cmocka_unit_test(test_trial_names),
                cmocka_unit_test(test_trial_life),
                cmocka_unit_test(test_trial_has_to_be_a_folder),
                cmocka_unit_test(test_sweep),
                cmocka_unit_test(test_lost_trial_is_reported),
                cmocka_unit_test(test_journal_lines),
                cmocka_unit_test(test_torn_journal_is_mended),
                cmocka_unit_test(test_failed_append),
                cmocka_unit_test(test_finished_archive_is_not_written),
                cmocka_unit_test(test_killed_anywhere),
                cmocka_unit_test(test_faults_anywhere),
                cmocka_unit_test(test_order_of_syncs),
                cmocka_unit_test(test_full_disk),
                cmocka_unit_test(test_read_only_folder),
        };

        has_own_mounts = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
