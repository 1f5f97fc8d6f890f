/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/file.h"
#include "seal/digest.h"

/* The example values that NIST publishes for SHA-256 beside FIPS 180-4. */
static const struct {
        const char *message;
        const char *hex;
} known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
};

/* A million times "a", from the same source. */
static const char million_hex[] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

static void test_bytes(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
                struct digest digest;
                char hex[DIGEST_HEX_SIZE];

                assert_int_equal(digest_of_bytes(span_of_text(known[i].message), &digest, NULL), 0);
                assert_string_equal(digest_format(&digest, hex), known[i].hex);
        }
}

static void test_stream(void **state)
{
        _cleanup_digest_stream_ struct digest_stream *stream = NULL;
        struct digest digest;
        char hex[DIGEST_HEX_SIZE], piece[999];
        size_t left = 1000000;

        memset(piece, 'a', sizeof(piece));
        assert_int_equal(digest_stream_new(&stream, NULL), 0);
        while (left > 0) {
                size_t n = MIN(left, sizeof(piece));

                assert_int_equal(digest_stream_add(stream, span_of(piece, n), NULL), 0);
                left -= n;
        }
        assert_int_equal(digest_stream_finish(stream, &digest, NULL), 0);
        assert_string_equal(digest_format(&digest, hex), million_hex);

        /* it starts again from nothing */
        assert_int_equal(digest_stream_add(stream, span_of_text("abc"), NULL), 0);
        assert_int_equal(digest_stream_finish(stream, &digest, NULL), 0);
        assert_string_equal(digest_format(&digest, hex), known[1].hex);
}

static void test_file(void **state)
{
        _cleanup_close_ int fd = memfd_create("digest", MFD_CLOEXEC);
        struct digest digest;
        struct err err = {0};
        char hex[DIGEST_HEX_SIZE], piece[1000];
        uint64_t len = 0;

        assert_true(fd >= 0);
        memset(piece, 'a', sizeof(piece));
        for (size_t i = 0; i < 1000; i++)
                assert_int_equal(file_write_all(fd, piece, sizeof(piece)), 0);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        assert_int_equal(digest_of_file(fd, &digest, &len, &err), 0);
        assert_int_equal(len, 1000000);
        assert_string_equal(digest_format(&digest, hex), million_hex);
}

static void test_file_that_cannot_be_read(void **state)
{
        _cleanup_close_ int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct digest digest = {{7}};
        struct err err = {0};

        assert_int_equal(digest_of_file(fd, &digest, NULL, &err), -EISDIR);
        assert_int_equal(err.kind, ERR_IO);
        assert_int_equal(digest.bytes[0], 7);
}

static void test_parse(void **state)
{
        static const char *const wrong[] = {
                "",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b8555",
                "g3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                " 3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        };
        struct digest empty, digest = {{7}};

        assert_int_equal(digest_of_bytes(span_of(NULL, 0), &empty, NULL), 0);
        assert_int_equal(digest_parse(span_of_text(known[0].hex), &digest), 0);
        assert_true(digest_equal(&digest, &empty));
        assert_int_equal(digest_parse(span_of_text("E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"),
                                      &digest),
                         0);
        assert_true(digest_equal(&digest, &empty));

        digest.bytes[DIGEST_BYTES - 1] ^= 1;
        assert_false(digest_equal(&digest, &empty));
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
                assert_int_equal(digest_parse(span_of_text(wrong[i]), &digest), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bytes), cmocka_unit_test(test_stream),
                cmocka_unit_test(test_file),  cmocka_unit_test(test_file_that_cannot_be_read),
                cmocka_unit_test(test_parse),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
