/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <sys/stat.h>

#include "base/text.h"
#include "tests/fault.h"
#include "tests/test.h"

static bool is_there(const struct scratch *scratch, const char *path)
{
        return faccessat(scratch->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void holds(const struct scratch *scratch, const char *path, const char *expected)
{
        _cleanup_free_ char *data = NULL;
        size_t len = 0;

        assert_int_equal(file_read(scratch->fd, path, 1 << 20, &data, &len, NULL), 0);
        assert_int_equal(len, strlen(expected));
        assert_string_equal(data, expected);
}

static size_t count_entries(const struct scratch *scratch)
{
        _cleanup_closedir_ DIR *dir = fdopendir(file_open_dir(scratch->fd, "."));
        size_t n = 0;

        assert_non_null(dir);
        while (readdir(dir))
                n++;
        return n - 2;
}

static void test_read(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_free_ char *data = NULL;
        struct err err = {0};
        size_t len;

        scratch_write(&scratch, "five", "12345");
        scratch_write(&scratch, "empty", "");
        holds(&scratch, "five", "12345");
        holds(&scratch, "empty", "");
        assert_int_equal(file_read(scratch.fd, "five", 5, &data, &len, NULL), 0);
        assert_int_equal(file_read(scratch.fd, "five", 4, &(char *){NULL}, &len, &err), -EFBIG);
        assert_int_equal(err.kind, ERR_DATA);
        assert_int_equal(file_read(scratch.fd, "none", 4, &(char *){NULL}, &len, &err), -ENOENT);
        assert_string_equal(err.text, "cannot open none: No such file or directory");
}

static void test_read_other_than_files(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        struct err err = {0};
        char *data = NULL;
        size_t len;

        assert_int_equal(mkfifoat(scratch.fd, "fifo", 0600), 0);
        assert_int_equal(file_read(scratch.fd, "fifo", 10, &data, &len, &err), -EINVAL); /* and does not block */
        assert_int_equal(file_read(scratch.fd, ".", 10, &data, &len, &err), -EINVAL);
        assert_int_equal(file_read(AT_FDCWD, "/dev/zero", 10, &data, &len, &err), -EINVAL);
        assert_null(data);
}

/* Files of /proc say that they are empty, and give a number whole only where there is room for it. */
static void test_read_of_proc(void **state)
{
        _cleanup_fclose_ FILE *file = fopen("/proc/sys/kernel/pid_max", "r");
        _cleanup_free_ char *data = NULL, *maps = NULL;
        char line[64] = "";
        struct err err = {0};
        size_t len;

        assert_non_null(file);
        assert_non_null(fgets(line, sizeof(line), file));
        assert_int_equal(file_read(AT_FDCWD, "/proc/sys/kernel/pid_max", 64, &data, &len, NULL), 0);
        assert_string_equal(data, line);
        assert_true(len > 2);
        assert_int_equal(file_read(AT_FDCWD, "/proc/self/smaps", 1 << 20, &maps, &len, NULL), 0);
        assert_true(len > 16384); /* more than is read at first */
        assert_int_equal(strlen(maps), len);
        assert_int_equal(file_read(AT_FDCWD, "/proc/self/smaps", 1000, &(char *){NULL}, &len, &err), -EFBIG);
}

static void test_write_atomic(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        struct stat st;

        assert_int_equal(file_write_atomic(scratch.fd, "a", 0600, span_of_text("old"), NULL), 0);
        assert_int_equal(fstatat(scratch.fd, "a", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(file_write_atomic(scratch.fd, "a", 0644, span_of_text("new"), NULL), 0);
        holds(&scratch, "a", "new");
        assert_int_equal(count_entries(&scratch), 1);

        /* a link in its place is replaced, not followed */
        assert_int_equal(symlinkat("a", scratch.fd, "link"), 0);
        assert_int_equal(file_write_atomic(scratch.fd, "link", 0644, span_of_text("other"), NULL), 0);
        holds(&scratch, "a", "new");
        holds(&scratch, "link", "other");
}

static void test_write_long_names(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        struct err err = {0};
        char name[257];

        memset(name, 'n', sizeof(name));
        name[255] = '\0';
        assert_int_equal(file_write_atomic(scratch.fd, name, 0644, span_of_text("x"), NULL), 0);
        holds(&scratch, name, "x");
        name[255] = 'n';
        name[256] = '\0';
        assert_int_equal(file_write_atomic(scratch.fd, name, 0644, span_of_text("x"), &err), -ENAMETOOLONG);
        assert_int_equal(count_entries(&scratch), 1);
}

/* Whatever fails, the file holds its old bytes or the new ones, and no temporary file is left. */
static void test_write_under_faults(void **state)
{
        static const enum fault_call kinds[] = {FAULT_ALLOCATION, FAULT_IO, FAULT_FULL};

        for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
                for (unsigned n = 1;; n++) {
                        _cleanup_scratch_ struct scratch scratch = scratch_make();
                        _cleanup_free_ char *data = NULL;
                        struct err err = {0};
                        size_t len;
                        bool struck;
                        int r;

                        scratch_write(&scratch, "a", "old");
                        fault_arm(kinds[k], n);
                        r = file_write_atomic(scratch.fd, "a", 0644, span_of_text("new"), &err);
                        struck = fault_disarm();
                        assert_int_equal(file_read(scratch.fd, "a", 10, &data, &len, NULL), 0);
                        assert_true(streq(data, "old") || streq(data, "new"));
                        assert_int_equal(count_entries(&scratch), 1);
                        if (!struck) {
                                assert_int_equal(r, 0);
                                assert_string_equal(data, "new");
                                break;
                        }
                        assert_true(r < 0);
                        assert_int_not_equal(err.kind, ERR_NONE);
                }
        }
}

static void test_open_dir(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();

        assert_int_equal(symlinkat("/", scratch.fd, "link"), 0);
        scratch_write(&scratch, "file", "");
        assert_int_equal(file_open_dir(scratch.fd, "link"), -ENOTDIR);
        assert_int_equal(file_open_dir(scratch.fd, "file"), -ENOTDIR);
        assert_int_equal(file_open_dir(scratch.fd, "none"), -ENOENT);
        assert_int_equal(file_make_dir(scratch.fd, "file", 0755), -ENOTDIR);
        close(file_make_dir(scratch.fd, "made", 0755));
        assert_true(is_there(&scratch, "made"));
        close(file_make_dir(scratch.fd, "made", 0755)); /* again */
        assert_int_equal(file_make_dir(scratch.fd, "none/made", 0755), -ENOENT);
}

static void test_beneath(void **state)
{
        static const char *const good[] = {"a", "a/b", "..a", "a..", "...", "a/.b"};
        static const char *const bad[] = {"",   "/",   "/a",  "a/",     "a//b", ".",
                                          "..", "./a", "a/.", "a/../b", "../a", "a/.."};

        for (size_t i = 0; i < ARRAY_SIZE(good); i++)
                assert_true(file_is_beneath(good[i]));
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_false(file_is_beneath(bad[i]));
}

static void test_open_beneath(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();

        close(file_make_dir(scratch.fd, "in", 0755));
        scratch_write(&scratch, "in/file", "x");
        scratch_write(&scratch, "out", "x");
        assert_int_equal(symlinkat("file", scratch.fd, "in/link"), 0);
        assert_int_equal(symlinkat("..", scratch.fd, "in/up"), 0);
        _cleanup_close_ int in = file_open_dir(scratch.fd, "in");

        assert_int_equal(close(file_open_beneath(in, "file")), 0);
        assert_int_equal(file_open_beneath(in, "../out"), -EXDEV);
        assert_int_equal(file_open_beneath(in, "/etc/passwd"), -EXDEV);
        assert_int_equal(file_open_beneath(in, "link"), -ELOOP);
        assert_int_equal(file_open_beneath(in, "up/out"), -ELOOP);

        _cleanup_free_ char *data = NULL;
        size_t len;
        assert_int_equal(file_read_beneath(in, "file", 10, &data, &len, NULL), 0);
        assert_string_equal(data, "x");
        assert_int_equal(file_read_beneath(in, "up/out", 10, &(char *){NULL}, &len, NULL), -ELOOP);
}

static void test_remove_tree(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();

        close(file_make_dir(scratch.fd, "keep", 0755));
        scratch_write(&scratch, "keep/file", "x");
        close(file_make_dir(scratch.fd, "go", 0755));
        close(file_make_dir(scratch.fd, "go/deep", 0755));
        scratch_write(&scratch, "go/deep/file", "x");
        assert_int_equal(symlinkat("../../keep", scratch.fd, "go/deep/link"), 0);
        assert_int_equal(symlinkat("../keep/file", scratch.fd, "go/link"), 0);
        assert_int_equal(mkfifoat(scratch.fd, "go/fifo", 0600), 0);

        assert_int_equal(file_remove_tree(scratch.fd, "go"), 0);
        assert_false(is_there(&scratch, "go"));
        holds(&scratch, "keep/file", "x"); /* the links were removed, not what they point at */

        assert_int_equal(symlinkat("keep", scratch.fd, "link"), 0);
        assert_int_equal(file_remove_tree(scratch.fd, "link"), 0);
        assert_true(is_there(&scratch, "keep/file"));
        assert_int_equal(file_remove_tree(scratch.fd, "keep/file"), 0);
        assert_int_equal(file_remove_tree(scratch.fd, "none"), 0);
        assert_int_equal(file_remove_tree(scratch.fd, "none/none"), 0);
}

/* What can be removed is, also after a failure, which is returned. */
static void test_remove_tree_under_faults(void **state)
{
        for (unsigned n = 1;; n++) {
                _cleanup_scratch_ struct scratch scratch = scratch_make();
                int r;

                close(file_make_dir(scratch.fd, "go", 0755));
                scratch_write(&scratch, "go/a", "x");
                scratch_write(&scratch, "go/b", "x");
                fault_arm(FAULT_IO, n);
                r = file_remove_tree(scratch.fd, "go");
                if (!fault_disarm()) {
                        assert_int_equal(r, 0);
                        assert_false(is_there(&scratch, "go"));
                        assert_true(n > 3);
                        break;
                }
                assert_true(r < 0);
        }
}

static void test_deep_tree(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        int fd = file_open_dir(scratch.fd, ".");

        for (int i = 0; i < 200; i++) {
                int next = file_make_dir(fd, "d", 0755);

                assert_true(next >= 0);
                close(fd);
                fd = next;
        }
        close(fd);
        assert_int_equal(file_remove_tree(scratch.fd, "d"), 0);
        assert_int_equal(count_entries(&scratch), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_read),
                cmocka_unit_test(test_read_other_than_files),
                cmocka_unit_test(test_read_of_proc),
                cmocka_unit_test(test_write_atomic),
                cmocka_unit_test(test_write_long_names),
                cmocka_unit_test(test_write_under_faults),
                cmocka_unit_test(test_open_dir),
                cmocka_unit_test(test_beneath),
                cmocka_unit_test(test_open_beneath),
                cmocka_unit_test(test_remove_tree),
                cmocka_unit_test(test_remove_tree_under_faults),
                cmocka_unit_test(test_deep_tree),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
