/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "archive/bag.h"
#include "base/text.h"
#include "tests/fault.h"
#include "tests/test.h"

/* A finished archive with these files of data/, and nothing else. */
struct bag {
        struct scratch scratch;
        struct archive *archive;
        int fd;
};

static void bag_close(struct bag *bag)
{
        archive_free(bag->archive);
        scratch_remove(&bag->scratch);
}

#define _cleanup_bag_ _cleanup_(bag_close)

static void put(const struct bag *bag, const char *path, const char *text)
{
        struct err err = {0};

        if (file_write_atomic(bag->fd, path, 0644, span_of_text(text), &err) < 0)
                fail_msg("%s", err.text);
}

static struct bag bag_make(void)
{
        struct bag bag = {.scratch = scratch_make()};

        assert_int_equal(archive_create(bag.scratch.fd, "a", &bag.archive, NULL), 0);
        bag.fd = archive_dirfd(bag.archive);
        put(&bag, "data/one", "1");
        put(&bag, "data/two", "22");
        assert_int_equal(archive_write(bag.archive, "data/inputs/three", span_of_text("333"), NULL), 0);
        return bag;
}

static struct bag bag_make_sealed(void)
{
        static const struct bag_info info[] = {{"External-Identifier", "exp-001"}, {"Title", "two\r\nlines"}};
        struct bag bag = bag_make();
        struct err err = {0};

        if (bag_seal(bag.archive, info, ARRAY_SIZE(info), &err) < 0)
                fail_msg("%s", err.text);
        return bag;
}

static char *content(const struct bag *bag, const char *path)
{
        char *data = NULL;
        size_t len;

        assert_int_equal(file_read(bag->fd, path, 1 << 20, &data, &len, NULL), 0);
        return data;
}

/* Runs a shell command in the bag's folder. Return: its exit status. */
static int shell(const struct bag *bag, const char *command)
{
        _cleanup_free_ char *line = text_format("cd %s/a && { %s; } >/dev/null 2>&1", bag->scratch.path, command);

        return system(line);
}

/* The faults as lines "kind path", in their order. */
static void expect_flags(const struct bag *bag, enum bag_flags flags, const char *expected)
{
        _cleanup_bag_report_ struct bag_report report = {0};
        _cleanup_text_ struct text found = {0};
        struct err err = {0};

        if (bag_check(bag->archive, flags, &report, &err) < 0)
                fail_msg("%s", err.text);
        text_add(&found, "");
        for (size_t i = 0; i < report.n_faults; i++) {
                text_addf(&found, "%s ", bag_fault_name(report.faults[i].kind));
                text_add_visible(&found, report.faults[i].path, strlen(report.faults[i].path));
                text_add(&found, "\n");
                assert_true(strlen(report.faults[i].detail) > 0);
        }
        if (!streq(found.data, expected))
                for (size_t i = 0; i < report.n_faults; i++)
                        print_message("%s: %s\n", report.faults[i].path, report.faults[i].detail);
        assert_string_equal(found.data, expected);
}

static void expect(const struct bag *bag, const char *expected)
{
        expect_flags(bag, BAG_AS_ARCHIVE, expected);
}

static void test_sealed_bag_checks(void **state)
{
        _cleanup_bag_ struct bag bag = bag_make_sealed();
        _cleanup_bag_report_ struct bag_report report = {0};
        _cleanup_free_ char *info = content(&bag, "bag-info.txt"), *declaration = content(&bag, "bagit.txt");

        assert_int_equal(bag_check(bag.archive, BAG_AS_ARCHIVE, &report, NULL), 0);
        assert_int_equal(report.n_faults, 0);
        assert_int_equal(report.files, 3);
        assert_int_equal(report.bytes, 6);
        assert_string_equal(declaration, "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n");
        assert_non_null(strstr(info, "External-Identifier: exp-001\nTitle: two  lines\n"));
        assert_non_null(strstr(info, "\nPayload-Oxum: 6.3\n"));
}

static void test_sha256sum_agrees(void **state)
{
        _cleanup_bag_ struct bag bag = bag_make_sealed();

        assert_int_equal(shell(&bag, "sha256sum -c --strict manifest-sha256.txt"), 0);
        assert_int_equal(shell(&bag, "sha256sum -c --strict tagmanifest-sha256.txt"), 0);
        put(&bag, "data/two", "2x");
        assert_int_not_equal(shell(&bag, "sha256sum -c --strict manifest-sha256.txt"), 0);
}

/* Bags that coreutils makes, in the ways in which people write their lines. */
static void test_made_by_hand(void **state)
{
        static const char *const ways[] = {
                "find data -type f | xargs sha256sum",
                "find data -type f | xargs sha256sum --binary",
                "find ./data -type f | xargs sha256sum",
                "find data -type f | xargs sha256sum | sed 's/  /\\t/'",
                "find data -type f | xargs sha256sum | sed 's/  / \\t  /'",
                "find data -type f | xargs sha256sum | sed 's/  / /'",
                "find data -type f | xargs sha256sum | sed 's/^\\(.*\\)  /\\U\\1\\E  /'",
                "find data -type f | xargs sha256sum | sed 's/$/\\r/'",
                "find data -type f | xargs sha256sum | tr '\\n' '\\r'",
                "find data -type f | xargs sha256sum | head -c -1",
        };

        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
                _cleanup_bag_ struct bag bag = bag_make();
                _cleanup_free_ char *make = text_format("printf 'BagIt-Version: 1.0\\nTag-File-Character-Encoding: "
                                                        "UTF-8\\n' >bagit.txt; (%s) >manifest-sha256.txt",
                                                        ways[i]);
                _cleanup_free_ char *manifest = NULL;

                assert_int_equal(shell(&bag, make), 0);
                manifest = content(&bag, "manifest-sha256.txt");
                assert_true(strlen(manifest) > 3 * 64);
                expect_flags(&bag, 0, "");
                expect(&bag, "missing tagmanifest-sha256.txt\n");
                put(&bag, "data/one", "x");
                expect_flags(&bag, 0, "changed data/one\n");

                put(&bag, "data/one", "1");
                assert_int_equal(shell(&bag, "sha256sum *.txt >tagmanifest-sha256.txt"), 0);
                expect(&bag, "");
        }
}

static void test_each_fault_by_name(void **state)
{
        _cleanup_bag_ struct bag bag = bag_make_sealed();

        assert_int_equal(unlinkat(bag.fd, "data/one", 0), 0);
        put(&bag, "data/added", "x");
        put(&bag, "data/two", "23");
        expect(&bag, "extra data/added\nmissing data/one\nchanged data/two\n");
}

static void test_tag_files(void **state)
{
        _cleanup_bag_ struct bag bag = bag_make_sealed();
        _cleanup_free_ char *info = content(&bag, "bag-info.txt");

        put(&bag, "attestation.dsse.json", "{}");
        expect(&bag, "");
        put(&bag, "note.txt", "x");
        expect(&bag, "extra note.txt\n");
        expect_flags(&bag, 0, ""); /* RFC 8493 lets a tag manifest leave files out */
        assert_int_equal(unlinkat(bag.fd, "note.txt", 0), 0);

        put(&bag, "bag-info.txt", "Payload-Oxum: 6.3\n");
        expect(&bag, "changed bag-info.txt\n");
        put(&bag, "bag-info.txt", info);
        assert_int_equal(unlinkat(bag.fd, "bagit.txt", 0), 0);
        expect(&bag, "missing bagit.txt\nmissing bagit.txt\n"); /* a bag has to have it, and it is listed */
        put(&bag, "bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n");
        assert_int_equal(unlinkat(bag.fd, "tagmanifest-sha256.txt", 0), 0);
        expect(&bag, "missing tagmanifest-sha256.txt\n");
        assert_int_equal(unlinkat(bag.fd, "manifest-sha256.txt", 0), 0);
        expect_flags(&bag, 0, "missing manifest-sha256.txt\n");
}

/* A manifest that lists one file less, with the tag manifest made to agree. */
static void test_unlisted_files(void **state)
{
        _cleanup_bag_ struct bag bag = bag_make_sealed();

        assert_int_equal(shell(&bag, "sed -i /two/d manifest-sha256.txt; sha256sum bag*.txt manifest* >tagm; mv tagm "
                                     "tagmanifest-sha256.txt"),
                         0);
        expect(&bag, "extra data/two\n");
}

/* Case 24 of the faults seen elsewhere, and the other characters that are encoded. */
static void test_names_that_need_encoding(void **state)
{
        static const char *const names[] = {"file%0A1", "file\n1", "cr\rlf\r\n", "100%",     "%25",        "%%",
                                            " leading", "*star",   "trailing ",  "\xc3\xa4", "back\\slash"};
        _cleanup_bag_ struct bag bag = bag_make();
        _cleanup_free_ char *manifest = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _cleanup_free_ char *path = text_format("data/%s", names[i]);

                put(&bag, path, names[i]);
        }
        assert_int_equal(bag_seal(bag.archive, NULL, 0, NULL), 0);
        expect(&bag, "");
        manifest = content(&bag, "manifest-sha256.txt");
        assert_non_null(strstr(manifest, "  data/file%250A1\n"));
        assert_non_null(strstr(manifest, "  data/file%0A1\n"));
        assert_non_null(strstr(manifest, "  data/cr%0Dlf%0D%0A\n"));
        assert_non_null(strstr(manifest, "  data/100%25\n"));

        put(&bag, "data/file%0A1", "x");
        expect(&bag, "changed data/file%0A1\n");
        put(&bag, "data/file%0A1", "file%0A1");
        put(&bag, "data/file\n1", "x");
        expect(&bag, "changed data/file\\x0a1\n");
}

static void test_path_codec(void **state)
{
        static const char *const malformed[] = {"a%", "a%2", "a%20", "%0", "%41", "%%25", "x%0Gy"};
        static const struct {
                const char *path, *encoded;
        } pairs[] = {{"", ""},           {"plain", "plain"}, {"%", "%25"},
                     {"\r\n", "%0D%0A"}, {"%0A", "%250A"},   {"%25", "%2525"}};
        char *path = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
                _cleanup_free_ char *encoded = bag_encode_path(pairs[i].path), *decoded = NULL;

                assert_string_equal(encoded, pairs[i].encoded);
                assert_int_equal(bag_decode_path(span_of_text(encoded), &decoded), 0);
                assert_string_equal(decoded, pairs[i].path);
        }
        for (size_t i = 0; i < ARRAY_SIZE(malformed); i++)
                assert_int_equal(bag_decode_path(span_of_text(malformed[i]), &path), -EINVAL);
        assert_int_equal(bag_decode_path(span_of("a\0b", 3), &path), -EINVAL);
        assert_null(path);
        assert_int_equal(bag_decode_path(span_of_text("%0a%0d"), &path), 0);
        assert_string_equal(path, "\n\r");
        free(path);
}

#define DIGEST_OF_1 "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"

static void test_bad_lines(void **state)
{
        static const struct {
                const char *line;
                const char *faults;
        } cases[] = {
                {"\n", "malformed manifest-sha256.txt\n"},
                {"# comment\n", "malformed manifest-sha256.txt\n"},
                {DIGEST_OF_1 "\n", "malformed manifest-sha256.txt\n"},
                {DIGEST_OF_1 "data/one\n", "malformed manifest-sha256.txt\n"},
                {"6b86b2  data/one\n", "malformed manifest-sha256.txt\n"},
                {"zz86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b  data/x\n",
                 "malformed manifest-sha256.txt\n"},
                {" " DIGEST_OF_1 "  data/one\n", "malformed manifest-sha256.txt\n"},
                {"\xef\xbb\xbf" DIGEST_OF_1 "  data/one\n", "malformed manifest-sha256.txt\n"},
                {DIGEST_OF_1 "  data/%41\n", "malformed manifest-sha256.txt\n"},
                {DIGEST_OF_1 "  \n", "malformed \n"},
                {DIGEST_OF_1 "  data/../../etc/passwd\n", "malformed data/../../etc/passwd\n"},
                {DIGEST_OF_1 "  ../outside\n", "malformed ../outside\n"},
                {DIGEST_OF_1 "  /etc/passwd\n", "malformed /etc/passwd\n"},
                {DIGEST_OF_1 "  data/./one\n", "malformed data/./one\n"},
                {DIGEST_OF_1 "  data//one\n", "malformed data//one\n"},
                {DIGEST_OF_1 "  data/\n", "malformed data/\n"},
                {DIGEST_OF_1 "  bagit.txt\n", "malformed bagit.txt\n"},
                {DIGEST_OF_1 "  data/\xff\n", "malformed data/\\xff\n"},
                {DIGEST_OF_1 "  data/one\n", "malformed data/one\n"}, /* a second time */
                {DIGEST_OF_1 "  ./data/one\n", "malformed data/one\n"},
                {DIGEST_OF_1 "  data/gone\n", "missing data/gone\n"},
                {DIGEST_OF_1 "  data/inputs\n", "unreadable data/inputs\n"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_bag_ struct bag bag = bag_make_sealed();
                _cleanup_free_ char *manifest = content(&bag, "manifest-sha256.txt");
                _cleanup_free_ char *longer = text_format("%s%s", manifest, cases[i].line);

                assert_int_equal(unlinkat(bag.fd, "tagmanifest-sha256.txt", 0), 0);
                put(&bag, "manifest-sha256.txt", longer);
                expect_flags(&bag, 0, cases[i].faults);
        }
}

static void test_not_regular_files(void **state)
{
        _cleanup_bag_ struct bag bag = bag_make_sealed();
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd;

        /* a link to the same bytes is still no file of the archive */
        assert_int_equal(renameat(bag.fd, "data/one", bag.scratch.fd, "one"), 0);
        assert_int_equal(symlinkat("../../one", bag.fd, "data/one"), 0);
        expect(&bag, "unreadable data/one\n");

        assert_int_equal(unlinkat(bag.fd, "data/two", 0), 0);
        assert_int_equal(mkfifoat(bag.fd, "data/two", 0600), 0);
        assert_int_equal(symlinkat("/", bag.fd, "data/root"), 0);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fd >= 0);
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/a/data/socket", bag.scratch.path);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        close(fd);
        expect(&bag, "unreadable data/one\nextra data/root\nextra data/socket\nunreadable data/two\n");

        /* a folder that is a link hides nothing and shows nothing */
        assert_int_equal(renameat(bag.fd, "data/inputs", bag.scratch.fd, "inputs"), 0);
        assert_int_equal(symlinkat("../../inputs", bag.fd, "data/inputs"), 0);
        expect(&bag, "extra data/inputs\nmissing data/inputs/three\nunreadable data/one\nextra data/root\n"
                     "extra data/socket\nunreadable data/two\n");
}

static void test_seal_refuses(void **state)
{
        _cleanup_bag_ struct bag bag = bag_make();
        struct bag_info info = {"La:bel", ""};
        struct err err = {0};

        assert_int_equal(bag_seal(bag.archive, &info, 1, &err), -EINVAL);
        assert_int_equal(err.kind, ERR_BUG);
        assert_int_equal(symlinkat("one", bag.fd, "data/link"), 0);
        assert_int_equal(bag_seal(bag.archive, NULL, 0, &err), -EINVAL);
        assert_non_null(strstr(err.text, "data/link"));
        assert_int_equal(unlinkat(bag.fd, "data/link", 0), 0);
        put(&bag, "data/\xff", "x");
        assert_int_equal(bag_seal(bag.archive, NULL, 0, &err), -EILSEQ);
        assert_false(archive_is_finished(bag.archive));
}

static void test_declaration(void **state)
{
        static const struct {
                const char *text;
                bool is_good;
        } cases[] = {
                {"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n", true},
                {"BagIt-Version: 0.97\r\nTag-File-Character-Encoding: UTF-8\r\n", true},
                {"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8", true},
                {"", false},
                {"BagIt-Version: 1.0\n", false},
                {"BagIt-Version: 2.0\nTag-File-Character-Encoding: UTF-8\n", false},
                {"BagIt-Version: 1\nTag-File-Character-Encoding: UTF-8\n", false},
                {"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-16\n", false},
                {"Tag-File-Character-Encoding: UTF-8\nBagIt-Version: 1.0\n", false},
                {"\xef\xbb\xbf"
                 "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
                 false},
                {"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\nMore: x\n", false},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_bag_ struct bag bag = bag_make_sealed();

                assert_int_equal(unlinkat(bag.fd, "tagmanifest-sha256.txt", 0), 0);
                put(&bag, "bagit.txt", cases[i].text);
                expect_flags(&bag, 0, cases[i].is_good ? "" : "malformed bagit.txt\n");
        }
}

static void test_information(void **state)
{
        static const struct {
                const char *text;
                const char *faults;
        } cases[] = {
                {"", ""},
                {"Payload-Oxum: 6.3\n", ""},
                {"Contact-Name: A\n  B\n\tC: d\nPayload-Oxum:   6.3  \r\nOther: x", ""},
                {"Payload-Oxum: 6.2\n", "changed bag-info.txt\n"},
                {"Payload-Oxum: 7.3\n", "changed bag-info.txt\n"},
                {"Payload-Oxum: 6\n", "malformed bag-info.txt\n"},
                {"Payload-Oxum: 6,3\n", "malformed bag-info.txt\n"},
                {"Payload-Oxum: 6.-3\n", "malformed bag-info.txt\n"},
                {"Payload-Oxum: 6.3\nPayload-Oxum: 6.3\n", "malformed bag-info.txt\n"},
                {"no colon\n", "malformed bag-info.txt\n"},
                {": no label\n", "malformed bag-info.txt\n"},
                {" starts with a continuation: x\n", "malformed bag-info.txt\n"},
                {"A: x\n\nB: y\n", "malformed bag-info.txt\n"},
                {"A: \xff\n", "malformed bag-info.txt\n"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_bag_ struct bag bag = bag_make_sealed();

                assert_int_equal(unlinkat(bag.fd, "tagmanifest-sha256.txt", 0), 0);
                put(&bag, "bag-info.txt", cases[i].text);
                expect_flags(&bag, 0, cases[i].faults);
        }
}

/* Partial trials and what else a kill left never get into a manifest. */
static void test_seal_sweeps(void **state)
{
        _cleanup_bag_ struct bag bag = bag_make();

        close(archive_trial_begin(bag.archive, "t1", NULL));
        put(&bag, "data/trials/.t1.partial/samples", "x");
        put(&bag, "data/.plan.json.0.tmp", "x");
        assert_int_equal(bag_seal(bag.archive, NULL, 0, NULL), 0);
        expect(&bag, "");
        assert_int_equal(faccessat(bag.fd, "data/trials/.t1.partial", F_OK, 0), -1);
}

static void test_check_under_faults(void **state)
{
        static const enum fault_call kinds[] = {FAULT_ALLOCATION, FAULT_IO};
        _cleanup_bag_ struct bag bag = bag_make_sealed();

        put(&bag, "data/two", "xx"); /* so that faults are added as well */
        for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
                for (unsigned n = 1;; n++) {
                        _cleanup_bag_report_ struct bag_report report = {0};
                        struct err err = {0};
                        int r;

                        fault_arm(kinds[k], n);
                        r = bag_check(bag.archive, BAG_AS_ARCHIVE, &report, &err);
                        if (!fault_disarm()) {
                                assert_int_equal(r, 0);
                                assert_int_equal(report.n_faults, 1);
                                assert_true(n > 3);
                                break;
                        }
                        /* what cannot be read is a fault of that file; never is all well */
                        if (r == 0)
                                assert_true(report.n_faults >= 1);
                        else
                                assert_int_not_equal(err.kind, ERR_NONE);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sealed_bag_checks),
                cmocka_unit_test(test_sha256sum_agrees),
                cmocka_unit_test(test_made_by_hand),
                cmocka_unit_test(test_each_fault_by_name),
                cmocka_unit_test(test_tag_files),
                cmocka_unit_test(test_unlisted_files),
                cmocka_unit_test(test_names_that_need_encoding),
                cmocka_unit_test(test_path_codec),
                cmocka_unit_test(test_bad_lines),
                cmocka_unit_test(test_not_regular_files),
                cmocka_unit_test(test_seal_refuses),
                cmocka_unit_test(test_declaration),
                cmocka_unit_test(test_information),
                cmocka_unit_test(test_seal_sweeps),
                cmocka_unit_test(test_check_under_faults),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
