/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>
#include <zstd.h>

#include "archive/samples.h"
#include "base/rng.h"
#include "base/text.h"
#include "tests/fault.h"
#include "tests/test.h"

static const struct column columns[] = {
        {"slot", "index", SAMPLE_CLOCK_NONE, ""},
        {"lateness_ns", "ns", SAMPLE_CLOCK_MONOTONIC, ""},
        {"rtt_ns", "ns", SAMPLE_CLOCK_REALTIME, ""},
};

#define FILE_NAME "samples.csv.zst"

/* A file as another program would compress it, perhaps with a window of its own. */
static void put_file(const struct scratch *scratch, const void *data, size_t len, int window_log)
{
        size_t room = ZSTD_compressBound(len), n;
        _cleanup_free_ void *packed = malloc(room);
        ZSTD_CCtx *zstd = ZSTD_createCCtx();
        struct err err = {0};

        assert_non_null(packed);
        assert_non_null(zstd);
        if (window_log > 0) {
                ZSTD_outBuffer out = {packed, room, 0};
                ZSTD_inBuffer in = {data, len, 0};

                /* as a stream, so that the frame states its window and not its size */
                assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, window_log)));
                while (ZSTD_compressStream2(zstd, &out, &in, in.pos < in.size ? ZSTD_e_flush : ZSTD_e_end) > 0 ||
                       in.pos < in.size)
                        ;
                while (ZSTD_compressStream2(zstd, &out, &in, ZSTD_e_end) > 0)
                        ;
                n = out.pos;
        } else {
                n = ZSTD_compress2(zstd, packed, room, data, len);
        }
        ZSTD_freeCCtx(zstd);
        assert_false(ZSTD_isError(n));
        if (file_write_atomic(scratch->fd, FILE_NAME, 0644, span_of(packed, n), &err) < 0)
                fail_msg("%s", err.text);
}

static void put_text(const struct scratch *scratch, const char *text)
{
        put_file(scratch, text, strlen(text), 0);
}

/* Reads all; the values of the first rows go to @ret, row by row. */
static int64_t read_all(int dirfd, int64_t *ret, size_t room, struct err *err)
{
        _cleanup_samples_reader_ struct samples_reader *reader = NULL;
        const int64_t *const *block;
        int64_t rows = 0;
        int r;

        r = samples_open(dirfd, FILE_NAME, &reader, err);
        if (r < 0)
                return r;
        while ((r = samples_read(reader, &block, err)) > 0) {
                for (size_t i = 0; i < (size_t)r; i++)
                        for (size_t c = 0; c < samples_n_columns(reader); c++)
                                if (((size_t)rows + i) * samples_n_columns(reader) + c < room)
                                        ret[((size_t)rows + i) * samples_n_columns(reader) + c] = block[c][i];
                rows += r;
        }
        return r < 0 ? r : rows;
}

static int write_file(int dirfd, const int64_t (*rows)[3], size_t n, struct err *err)
{
        _cleanup_samples_writer_ struct samples_writer *writer = NULL;
        int r;

        r = samples_create(dirfd, FILE_NAME, columns, ARRAY_SIZE(columns), &writer, err);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = sample_write(samples_writer_base(writer), rows[i], err);
        return r < 0 ? r : samples_finish(writer, err);
}

/* The bytes that the zstd program would print. */
static char *decompressed(const struct scratch *scratch)
{
        _cleanup_free_ char *packed = NULL;
        char *text = calloc(1, 1 << 20);
        size_t len, n;

        assert_non_null(text);
        assert_int_equal(file_read(scratch->fd, FILE_NAME, 1 << 20, &packed, &len, NULL), 0);
        ZSTD_DCtx *zstd = ZSTD_createDCtx();
        ZSTD_outBuffer out = {text, (1 << 20) - 1, 0};
        ZSTD_inBuffer in = {packed, len, 0};
        n = ZSTD_decompressStream(zstd, &out, &in);
        ZSTD_freeDCtx(zstd);
        assert_int_equal(n, 0);
        text[out.pos] = '\0';
        return text;
}

static void test_bytes_written(void **state)
{
        static const int64_t rows[][3] = {
                {0, -1, 10},
                {1, 99, 100},
                {2, SAMPLE_MISSING, SAMPLE_MISSING},
                {INT64_MAX, -INT64_MAX, 0},
                {SAMPLE_MISSING, SAMPLE_MISSING, SAMPLE_MISSING},
        };
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_free_ char *text = NULL;
        struct err err = {0};

        assert_int_equal(write_file(scratch.fd, rows, ARRAY_SIZE(rows), &err), 0);
        text = decompressed(&scratch);
        assert_string_equal(text, "slot,lateness_ns,rtt_ns\n"
                                  "0,-1,10\n"
                                  "1,99,100\n"
                                  "2,,\n"
                                  "9223372036854775807,-9223372036854775807,0\n"
                                  ",,\n");
}

/* Numbers of every length, on both sides of each power of ten, through writer and reader. */
static void test_round_trip(void **state)
{
        enum { ROWS = 50000 };
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        int64_t(*rows)[3] = calloc(ROWS, sizeof(*rows)), *again = calloc(ROWS, sizeof(*rows));
        struct err err = {0};
        struct rng rng;

        assert_non_null(rows);
        assert_non_null(again);
        rng_seed(&rng, 7);
        for (size_t i = 0; i < ROWS; i++)
                for (size_t c = 0; c < 3; c++) {
                        uint64_t power = 1, digits = rng_below(&rng, 20);

                        for (uint64_t d = 0; d < digits && power <= INT64_MAX / 10; d++)
                                power *= 10;
                        rows[i][c] = rng_below(&rng, 8) == 0
                                             ? SAMPLE_MISSING
                                             : (int64_t)(power - rng_below(&rng, 2)) * (rng_below(&rng, 2) ? 1 : -1);
                }
        assert_int_equal(write_file(scratch.fd, (const int64_t(*)[3])rows, ROWS, &err), 0);
        assert_int_equal(read_all(scratch.fd, again, ROWS * 3, &err), ROWS);
        assert_memory_equal(rows, again, ROWS * sizeof(*rows));
        free(rows);
        free(again);
}

static void test_columns_are_found(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_samples_reader_ struct samples_reader *reader = NULL;
        const int64_t *const *block;

        put_text(&scratch, "a,b_2\n1,2\n");
        assert_int_equal(samples_open(scratch.fd, FILE_NAME, &reader, NULL), 0);
        assert_int_equal(samples_n_columns(reader), 2);
        assert_int_equal(samples_column(reader, "a"), 0);
        assert_int_equal(samples_column(reader, "b_2"), 1);
        assert_int_equal(samples_column(reader, "b"), -ENOENT);
        assert_int_equal(samples_read(reader, &block, NULL), 1);
        assert_int_equal(samples_read(reader, &block, NULL), 0);
        assert_int_equal(samples_read(reader, &block, NULL), 0);
}

static void test_accepted(void **state)
{
        static const struct {
                const char *text;
                int64_t rows, first;
        } cases[] = {
                {"a\n", 0, 0},
                {"a\n\n", 1, SAMPLE_MISSING}, /* with one column, an empty line is an empty field */
                {"a\n12345678\n", 1, 12345678},
                {"a\n123456789\n", 1, 123456789},
                {"a\n-1234567890123456\n", 1, -1234567890123456},
                {"a\n12345678901234567\n", 1, 12345678901234567},
                {"a\n9223372036854775807\n", 1, INT64_MAX},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_scratch_ struct scratch scratch = scratch_make();
                struct err err = {0};
                int64_t first = 0;

                put_text(&scratch, cases[i].text);
                assert_int_equal(read_all(scratch.fd, &first, 1, &err), cases[i].rows);
                assert_int_equal(first, cases[i].first);
        }
}

static void test_refused(void **state)
{
        static const struct {
                const char *text;
                unsigned line, column;
                const char *reason;
        } cases[] = {
                {"", 1, 1, "no header"},
                {"\n", 1, 1, "no header"},
                {"a,b", 1, 1, "no header"},
                {"a,\n", 1, 1, "no header"},
                {"a,,b\n", 1, 3, "name of a column"},
                {"a,B\n", 1, 3, "name of a column"},
                {"1a\n", 1, 1, "name of a column"},
                {"\"a\"\n", 1, 1, "name of a column"},
                {"a\r\n", 1, 1, "name of a column"},
                {"a,b,a\n", 1, 5, "a second column \"a\""},
                {"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q\n", 1, 33, "more than 16"},
                {"a,b\n1,2\n1\n", 3, 1, "fewer fields"},
                {"a,b\n1,2\n\n", 3, 1, "fewer fields"},
                {"a,b\n1,2,3\n", 2, 3, "more fields"},
                {"a,b\n1,2\n3,4,\n", 3, 3, "more fields"},
                {"a,b\n1,2\n3,4", 3, 3, "cut off"},
                {"a,b\n1,2\n3,", 3, 3, "cut off"},
                {"a,b\n1,2\n3", 3, 1, "cut off"},
                {"a,b\n1,2\r\n", 2, 3, "\"2\\x0d\" is not an integer"},
                {"a,b\n1, 2\n", 2, 3, "not an integer"},
                {"a,b\n1,+2\n", 2, 3, "not an integer"},
                {"a,b\n1,-\n", 2, 3, "not an integer"},
                {"a,b\n1,-0\n", 2, 3, "shortest form"},
                {"a,b\n01,2\n", 2, 1, "shortest form"},
                {"a,b\n00000000000000000001,2\n", 2, 1, "shortest form"},
                {"a,b\n0123456789,2\n", 2, 1, "shortest form"},
                {"a,b\n1--2,2\n", 2, 1, "not an integer"},
                {"a,b\n1.5,2\n", 2, 1, "not an integer"},
                {"a,b\n15;2\n", 2, 1, "not an integer"},
                {"a,b\n\"1\",2\n", 2, 1, "not an integer"},
                {"a,b\n0x1,2\n", 2, 1, "not an integer"},
                {"a,b\n1e3,2\n", 2, 1, "not an integer"},
                {"a,b\n\xef\xbc\x91,2\n", 2, 1, "not an integer"},
                {"a,b\n9223372036854775808,2\n", 2, 1, "does not fit"},
                {"a,b\n-9223372036854775808,2\n", 2, 1, "not an integer"}, /* what a missing value is in memory */
                {"a,b\n99999999999999999999999999999999999999999999999999,2\n", 2, 1, "does not fit"},
                {"a,b\n18446744073709551617,2\n", 2, 1, "does not fit"},
                {"a,b\n# comment\n", 2, 1, "not an integer"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_scratch_ struct scratch scratch = scratch_make();
                struct err err = {0};

                put_text(&scratch, cases[i].text);
                assert_int_equal(read_all(scratch.fd, NULL, 0, &err), -EINVAL);
                assert_int_equal(err.kind, ERR_DATA);
                assert_string_equal(err.position.file, FILE_NAME);
                if (!strstr(err.text, cases[i].reason) || err.position.line != cases[i].line ||
                    err.position.column != cases[i].column)
                        fail_msg("\"%s\": %u:%u: %s, expected %u:%u: %s", cases[i].text, err.position.line,
                                 err.position.column, err.text, cases[i].line, cases[i].column, cases[i].reason);
        }
}

/* NUL ends a C string but not a field. */
static void test_nul_is_refused(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        struct err err = {0};

        put_file(&scratch, "a,b\n1\0,2\n", 9, 0);
        assert_int_equal(read_all(scratch.fd, NULL, 0, &err), -EINVAL);
        assert_non_null(strstr(err.text, "\\x00"));
}

/* A fault is found wherever it lies, with its line: around the ends of blocks and of the reader's buffer too. */
static void test_line_of_a_fault(void **state)
{
        static const unsigned at[] = {1, 1023, 1024, 1025, 2048, 60000, 65535, 65536, 65537, 70000, 99999, 100000};

        for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
                _cleanup_scratch_ struct scratch scratch = scratch_make();
                _cleanup_text_ struct text text = {0};
                struct err err = {0};

                text_add(&text, "a\n");
                for (unsigned row = 1; row <= 100000; row++)
                        text_add(&text, row == at[i] ? "x\n" : "123\n");
                put_file(&scratch, text.data, text.len, 0);
                assert_int_equal(read_all(scratch.fd, NULL, 0, &err), -EINVAL);
                assert_int_equal(err.position.line, at[i] + 1);
        }
}

/* Few compressed bytes that fill the reader's buffer several times over: zstd has taken them all while much of what
 * comes out of them has not been handed over. */
static void test_all_rows_come_out(void **state)
{
        static const int64_t rows[] = {65535, 65536, 131071, 131072, 196607, 500000};

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_scratch_ struct scratch scratch = scratch_make();
                _cleanup_text_ struct text text = {0};
                struct err err = {0};

                text_add(&text, "a\n");
                for (int64_t row = 0; row < rows[i]; row++)
                        text_add(&text, "123\n");
                put_file(&scratch, text.data, text.len, 0);
                assert_int_equal(read_all(scratch.fd, NULL, 0, &err), rows[i]);
        }
}

/* However a whole file is cut, an error results; so it does when a byte of it is changed, or more follow. */
static void test_damage(void **state)
{
        static const int64_t rows[][3] = {{0, -1, 10}, {1, 99, 100}, {2, 3, 4}, {100000, 5, 6}};
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_free_ char *whole = NULL, *bad = NULL;
        int64_t good[12], seen[12];
        size_t len;

        assert_int_equal(write_file(scratch.fd, rows, ARRAY_SIZE(rows), NULL), 0);
        assert_int_equal(file_read(scratch.fd, FILE_NAME, 4096, &whole, &len, NULL), 0);
        assert_int_equal(read_all(scratch.fd, good, 12, NULL), 4);
        bad = malloc(len + 1);
        assert_non_null(bad);

        for (size_t cut = 0; cut < len; cut++) {
                struct err err = {0};

                assert_int_equal(file_write_atomic(scratch.fd, FILE_NAME, 0644, span_of(whole, cut), NULL), 0);
                assert_int_equal(read_all(scratch.fd, NULL, 0, &err), -EINVAL);
                assert_int_equal(err.kind, ERR_DATA);
        }
        for (size_t bit = 0; bit < 8 * len; bit++) {
                memcpy(bad, whole, len);
                bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
                assert_int_equal(file_write_atomic(scratch.fd, FILE_NAME, 0644, span_of(bad, len), NULL), 0);
                /* an unused bit of the frame's header may differ; the values may not */
                if (read_all(scratch.fd, seen, 12, NULL) >= 0)
                        assert_memory_equal(seen, good, sizeof(good));
        }
        memcpy(bad, whole, len);
        bad[len] = 'x';
        assert_int_equal(file_write_atomic(scratch.fd, FILE_NAME, 0644, span_of(bad, len + 1), NULL), 0);
        assert_int_equal(read_all(scratch.fd, NULL, 0, NULL), -EINVAL);
}

/* Frames may follow each other (RFC 8878, section 3). */
static void test_frames_in_a_row(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        _cleanup_free_ char *first = NULL, *second = NULL, *both = NULL;
        size_t first_len, second_len;
        int64_t values[4];

        put_text(&scratch, "a,b\n1,2\n3");
        assert_int_equal(file_read(scratch.fd, FILE_NAME, 4096, &first, &first_len, NULL), 0);
        put_text(&scratch, "3,4\n");
        assert_int_equal(file_read(scratch.fd, FILE_NAME, 4096, &second, &second_len, NULL), 0);
        both = malloc(first_len + second_len);
        assert_non_null(both);
        memcpy(both, first, first_len);
        memcpy(both + first_len, second, second_len);
        assert_int_equal(file_write_atomic(scratch.fd, FILE_NAME, 0644, span_of(both, first_len + second_len), NULL),
                         0);
        assert_int_equal(read_all(scratch.fd, values, 4, NULL), 2);
        assert_int_equal(values[2], 33);
}

/* A frame header may ask for gigabytes to look back over. */
static void test_large_window_is_refused(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        struct err err = {0};
        char text[] = "a\n1\n";

        put_file(&scratch, text, strlen(text), SAMPLES_WINDOW_LOG_MAX);
        assert_int_equal(read_all(scratch.fd, NULL, 0, &err), 1);
        put_file(&scratch, text, strlen(text), SAMPLES_WINDOW_LOG_MAX + 1);
        assert_int_equal(read_all(scratch.fd, NULL, 0, &err), -EINVAL);
        assert_int_equal(err.kind, ERR_DATA);
}

static void test_only_regular_files(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        struct err err = {0};

        assert_int_equal(read_all(scratch.fd, NULL, 0, &err), -ENOENT);
        put_text(&scratch, "a\n1\n");
        assert_int_equal(renameat(scratch.fd, FILE_NAME, scratch.fd, "true.zst"), 0);
        assert_int_equal(symlinkat("true.zst", scratch.fd, FILE_NAME), 0);
        assert_int_equal(read_all(scratch.fd, NULL, 0, &err), -ELOOP);
        assert_int_equal(unlinkat(scratch.fd, FILE_NAME, 0), 0);
        assert_int_equal(mkfifoat(scratch.fd, FILE_NAME, 0600), 0);
        assert_int_equal(read_all(scratch.fd, NULL, 0, &err), -EINVAL);
        assert_int_equal(unlinkat(scratch.fd, FILE_NAME, 0), 0);
        assert_int_equal(mkdirat(scratch.fd, FILE_NAME, 0700), 0);
        assert_int_equal(read_all(scratch.fd, NULL, 0, &err), -EINVAL);
}

static void test_existing_file_is_kept(void **state)
{
        _cleanup_scratch_ struct scratch scratch = scratch_make();
        struct err err = {0};

        put_text(&scratch, "a\n1\n");
        assert_int_equal(write_file(scratch.fd, NULL, 0, &err), -EEXIST);
        assert_int_equal(read_all(scratch.fd, NULL, 0, &err), 1);
}

static void test_bad_columns_are_bugs(void **state)
{
        static const struct column bad[][2] = {{{"a b"}, {"c"}}, {{"same"}, {"same"}}};
        _cleanup_scratch_ struct scratch scratch = scratch_make();

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct samples_writer *writer = NULL;
                struct err err = {0};

                assert_int_equal(samples_create(scratch.fd, FILE_NAME, bad[i], 2, &writer, &err), -EINVAL);
                assert_int_equal(err.kind, ERR_BUG);
                assert_null(writer);
        }
        assert_int_equal(faccessat(scratch.fd, FILE_NAME, F_OK, 0), -1);
}

/* Each allocation, then each system call fails once: an error results, no partial file, nothing leaks (sanitizers). */
static void test_writer_under_faults(void **state)
{
        static const int64_t rows[][3] = {{0, 1, 2}, {3, 4, 5}};
        static const enum fault_call kinds[] = {FAULT_ALLOCATION, FAULT_IO, FAULT_FULL};

        for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
                for (unsigned n = 1;; n++) {
                        _cleanup_scratch_ struct scratch scratch = scratch_make();
                        struct err err = {0};
                        int r;

                        fault_arm(kinds[k], n);
                        r = write_file(scratch.fd, rows, ARRAY_SIZE(rows), &err);
                        if (!fault_disarm()) {
                                assert_int_equal(r, 0);
                                assert_true(n > 2);
                                break;
                        }
                        assert_true(r < 0);
                        assert_int_not_equal(err.kind, ERR_NONE);
                        /* where removing is what failed, the file may stay */
                        if (!strchr(fault_trace(), 'u') || kinds[k] != FAULT_IO)
                                assert_int_equal(faccessat(scratch.fd, FILE_NAME, F_OK, 0), -1);
                }
        }
}

static void test_reader_under_faults(void **state)
{
        static const enum fault_call kinds[] = {FAULT_ALLOCATION, FAULT_IO};
        _cleanup_scratch_ struct scratch scratch = scratch_make();

        put_text(&scratch, "a,b\n1,2\n");
        for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
                for (unsigned n = 1;; n++) {
                        struct err err = {0};
                        int64_t rows;

                        fault_arm(kinds[k], n);
                        rows = read_all(scratch.fd, NULL, 0, &err);
                        if (!fault_disarm()) {
                                assert_int_equal(rows, 1);
                                assert_true(n > 1);
                                break;
                        }
                        assert_true(rows < 0);
                        assert_int_not_equal(err.kind, ERR_NONE);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bytes_written),
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_columns_are_found),
                cmocka_unit_test(test_accepted),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_nul_is_refused),
                cmocka_unit_test(test_line_of_a_fault),
                cmocka_unit_test(test_all_rows_come_out),
                cmocka_unit_test(test_damage),
                cmocka_unit_test(test_frames_in_a_row),
                cmocka_unit_test(test_large_window_is_refused),
                cmocka_unit_test(test_only_regular_files),
                cmocka_unit_test(test_existing_file_is_kept),
                cmocka_unit_test(test_bad_columns_are_bugs),
                cmocka_unit_test(test_writer_under_faults),
                cmocka_unit_test(test_reader_under_faults),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
