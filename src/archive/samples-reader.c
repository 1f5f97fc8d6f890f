/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "archive/samples-internal.h"
#include "archive/samples.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"

#define PACKED_BYTES ((size_t)128 * 1024)
#define TEXT_BYTES   ((size_t)256 * 1024)

/* Zeros behind the last byte, so that the parser needs no look at the end: it reads fields as words, and a row goes on
 * for at most a few words a column after its first fault. */
#define TEXT_SLACK ((size_t)SAMPLE_COLUMNS_MAX * 40)

/* Distance between the columns of a block: not a power of two, or the same row of all columns would compete for a few
 * lines of the first-level cache. */
#define COLUMN_STRIDE ((size_t)SAMPLES_BLOCK_ROWS + 8)

struct samples_reader {
        int fd;
        char *path;
        ZSTD_DCtx *zstd;
        uint8_t *packed;
        ZSTD_inBuffer in;
        bool is_frame_open;     /* zstd wants more bytes before its frame is whole */
        bool is_output_pending; /* zstd may hold bytes for which there was no room */
        bool is_input_over;
        char *text; /* decompressed; [at, end) is not parsed yet; zeros follow */
        size_t at, end;
        uint64_t text_bytes; /* decompressed so far */
        uint64_t line;       /* of the next row, from 1 */
        size_t n_columns;
        char names[SAMPLE_COLUMNS_MAX][SAMPLES_NAME_BYTES_MAX + 1];
        int64_t *values;
        const int64_t *columns[SAMPLE_COLUMNS_MAX];
};

static struct position position_of(const struct samples_reader *reader, unsigned column)
{
        struct position at = {.line = (unsigned)MIN(reader->line, (uint64_t)UINT32_MAX), .column = column};

        snprintf(at.file, sizeof(at.file), "%s", reader->path);
        return at;
}

static int damaged(const struct samples_reader *reader, struct err *err, const char *what, const char *detail)
{
        struct position at = position_of(reader, 1);

        return err_set_at(err, ERR_DATA, &at, "%s: %s", what, detail);
}

/* Gets more compressed bytes. Return: 0, also at the end of the file, or a negative errno. */
static int refill_packed(struct samples_reader *reader, struct err *err)
{
        ssize_t n;

        do
                n = read(reader->fd, reader->packed, PACKED_BYTES);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return err_set_errno(err, ERR_IO, errno, "cannot read %s", reader->path);
        reader->in = (ZSTD_inBuffer){.src = reader->packed, .size = (size_t)n};
        if (n > 0)
                return 0;
        if (reader->is_frame_open)
                return damaged(reader, err, "the zstd stream ends too early", "the file was cut off");
        reader->is_input_over = true;
        return 0;
}

/* Moves what is left to the front and decompresses behind it until the buffer is full or the file ends. */
static int refill_text(struct samples_reader *reader, struct err *err)
{
        size_t left = reader->end - reader->at;
        ZSTD_outBuffer out = {.dst = reader->text, .size = TEXT_BYTES, .pos = left};

        memmove(reader->text, reader->text + reader->at, left);
        reader->at = 0;
        while (out.pos < out.size) {
                size_t wanted;

                if (reader->in.pos == reader->in.size && !reader->is_output_pending) {
                        int r = refill_packed(reader, err);

                        if (r < 0)
                                return r;
                        if (reader->is_input_over)
                                break;
                }
                wanted = ZSTD_decompressStream(reader->zstd, &out, &reader->in);
                if (ZSTD_isError(wanted))
                        return damaged(reader, err, "damaged zstd stream", ZSTD_getErrorName(wanted));
                reader->is_frame_open = wanted != 0;
                reader->is_output_pending = wanted != 0 && out.pos == out.size;
        }
        reader->end = out.pos;
        memset(reader->text + reader->end, 0, TEXT_SLACK);
        reader->text_bytes += out.pos - left;
        if (reader->text_bytes > SAMPLES_TEXT_BYTES_MAX)
                return damaged(reader, err, "too large", "decompresses to more bytes than any sample file may have");
        return 0;
}

static uint64_t load_word(const char *p)
{
        uint64_t word;

        memcpy(&word, p, sizeof(word));
        return le64toh(word);
}

#define EACH_BYTE(b) (UINT64_C(0x0101010101010101) * (b))

/* The digits at the start of @word, 8 characters with "0" taken out of each (by exclusive or), as a number of bits: 8
 * for each digit. A digit is then at most 9, so adding 0x76 reaches the highest bit exactly where there is none; what
 * the first such byte carries into those behind it does not matter. 64 where all are digits. */
static unsigned digit_bits(uint64_t word)
{
        uint64_t stops = ((word + EACH_BYTE(0x76)) | word) & EACH_BYTE(0x80);

        return stops ? (unsigned)__builtin_ctzll(stops) - 7 : 64;
}

/* The number that the first @bits of @word stand for, the first byte the highest digit: neighbours are joined to pairs,
 * pairs to fours, fours to eight digits, each step one multiplication. */
static uint64_t digits_value(uint64_t word, unsigned bits)
{
        word = bits == 0 ? 0 : word << (64 - bits);
        word = (word * (1 + (10 << 8))) >> 8;
        word = ((word & UINT64_C(0x00ff00ff00ff00ff)) * (1 + (100 << 16))) >> 16;
        return ((word & UINT64_C(0x0000ffff0000ffff)) * (1 + (UINT64_C(10000) << 32))) >> 32;
}

/* A field of more than 8 digits, of which @p is the first. */
static const char *parse_long_field(const char *p, bool is_negative, int64_t *ret, bool *bad)
{
        static const uint64_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
        uint64_t value = 0;
        bool overflow = *p == '0';
        unsigned bits;

        do {
                uint64_t word = load_word(p) ^ EACH_BYTE('0');

                bits = digit_bits(word);
                overflow |= __builtin_mul_overflow(value, powers[bits / 8], &value);
                overflow |= __builtin_add_overflow(value, digits_value(word, bits), &value);
                p += bits / 8;
        } while (bits == 64 && !overflow);

        *bad |= overflow || value > INT64_MAX;
        *ret = is_negative ? (int64_t)(0 - value) : (int64_t)value;
        return p;
}

/* The field at @p. Return: where it ends. Sets @bad, never clears it, where it is not as the writer writes it. */
static inline const char *parse_field(const char *p, int64_t *ret, bool *bad)
{
        bool is_negative = *p == '-';
        uint64_t word, value;
        unsigned bits;

        p += is_negative;
        word = load_word(p) ^ EACH_BYTE('0');
        bits = digit_bits(word);
        if (__builtin_expect(bits == 64, 0))
                return parse_long_field(p, is_negative, ret, bad);

        value = digits_value(word, bits);
        *bad |= ((word & 0xff) == 0 && bits > 8) || (is_negative && value == 0);
        *ret = bits == 0 ? SAMPLE_MISSING : is_negative ? -(int64_t)value : (int64_t)value;
        return p + bits / 8;
}

/* Says what is wrong with the row at @row, which the fast parser refused. */
static int explain(struct samples_reader *reader, const char *row, struct err *err)
{
        const char *end = reader->text + reader->end, *p = row;
        struct position at;

        for (size_t c = 0; c < reader->n_columns; c++) {
                size_t room = (size_t)(end - p), len = 0;
                struct span field;
                int64_t value;
                int r;

                while (len < room && p[len] != ',' && p[len] != '\n')
                        len++;
                at = position_of(reader, (unsigned)(p - row) + 1);
                field = span_of(p, len);
                r = len == 0 ? 0 : number_parse_i64(field, &value);
                if (r == 0 && len > 0 && (value == SAMPLE_MISSING || (value == 0 && len > 1)))
                        r = -EINVAL;
                if (r < 0 || (len == room && len > 0)) {
                        _cleanup_text_ struct text shown = {0};

                        text_add_visible(&shown, p, MIN(len, (size_t)40));
                        return err_set_at(err, ERR_DATA, &at, "%s: \"%s\" %s", reader->names[c],
                                          shown.failed || !shown.data ? "" : shown.data,
                                          r == -ERANGE ? "does not fit into 64 bits"
                                          : r < 0      ? "is not an integer in its shortest form"
                                                       : "has no end: the file was cut off");
                }
                if (len == room)
                        break;
                if ((p[len] == '\n') != (c + 1 == reader->n_columns))
                        return err_set_at(err, ERR_DATA, &at, "the row has %s fields than the %zu of the header",
                                          p[len] == '\n' ? "fewer" : "more", reader->n_columns);
                p += len + 1;
        }
        at = position_of(reader, (unsigned)(p - row) + 1);
        return err_set_at(err, ERR_DATA, &at, "the last row has no line feed: the file was cut off");
}

/* Parses rows into the block from row @rows on, as many as fit and are whole for certain. Return: how many there are
 * then, or a negative errno. */
static int parse_rows(struct samples_reader *reader, size_t rows, struct err *err)
{
        const char *p = reader->text + reader->at, *end = reader->text + reader->end;
        /* without more input, a row is whole or at fault; otherwise it is whole where the longest would be */
        const char *last = end - (reader->is_input_over ? 1 : SAMPLES_ROW_BYTES_MAX);
        size_t n_columns = reader->n_columns;

        while (rows < SAMPLES_BLOCK_ROWS && p <= last) {
                const char *row = p;
                int64_t *value = reader->values + rows;
                bool bad = false;

                for (size_t c = 0; c < n_columns; c++) {
                        p = parse_field(p, value, &bad);
                        bad |= *p++ != (c + 1 < n_columns ? ',' : '\n');
                        value += COLUMN_STRIDE;
                }
                if (bad)
                        return explain(reader, row, err);
                rows++;
                reader->line++;
        }
        reader->at = (size_t)(p - reader->text);
        return (int)rows;
}

int samples_read(struct samples_reader *reader, const int64_t *const **ret_columns, struct err *err)
{
        int rows = 0;

        while (rows < SAMPLES_BLOCK_ROWS) {
                if (reader->end - reader->at < SAMPLES_ROW_BYTES_MAX && !reader->is_input_over) {
                        int r = refill_text(reader, err);

                        if (r < 0)
                                return r;
                }
                if (reader->at == reader->end)
                        break;
                rows = parse_rows(reader, (size_t)rows, err);
                if (rows < 0)
                        return rows;
        }
        *ret_columns = reader->columns;
        return rows;
}

static int parse_header(struct samples_reader *reader, struct err *err)
{
        const char *p = reader->text, *end;
        struct position at;

        end = memchr(p, '\n', MIN(reader->end, (size_t)SAMPLES_HEADER_BYTES_MAX));
        if (!end)
                return damaged(reader, err, "no header", "expected a line of column names");
        while (p < end) {
                size_t len = 0;

                while (p[len] != ',' && p[len] != '\n')
                        len++;
                at = position_of(reader, (unsigned)(p - reader->text) + 1);
                if (!samples_is_column_name(p, len))
                        return err_set_at(err, ERR_DATA, &at,
                                          "expected the name of a column: [a-z][a-z0-9_]*, at most %d characters",
                                          SAMPLES_NAME_BYTES_MAX);
                if (reader->n_columns == SAMPLE_COLUMNS_MAX)
                        return err_set_at(err, ERR_DATA, &at, "more than %d columns", SAMPLE_COLUMNS_MAX);
                memcpy(reader->names[reader->n_columns], p, len);
                if (samples_column(reader, reader->names[reader->n_columns]) >= 0)
                        return err_set_at(err, ERR_DATA, &at, "a second column \"%s\"",
                                          reader->names[reader->n_columns]);
                reader->n_columns++;
                p += len + 1;
        }
        if (reader->n_columns == 0 || end[-1] == ',')
                return damaged(reader, err, "no header", "expected a line of column names");
        reader->at = (size_t)(end + 1 - reader->text);
        reader->line = 2;
        return 0;
}

static int reader_allocate(struct samples_reader *reader, const char *path, struct err *err)
{
        reader->path = strdup(path);
        reader->packed = malloc(PACKED_BYTES);
        reader->text = calloc(1, TEXT_BYTES + TEXT_SLACK);
        reader->values = malloc(sizeof(int64_t) * COLUMN_STRIDE * SAMPLE_COLUMNS_MAX);
        reader->zstd = ZSTD_createDCtx();
        if (!reader->path || !reader->packed || !reader->text || !reader->values || !reader->zstd)
                return err_set_nomem(err);
        if (ZSTD_isError(ZSTD_DCtx_setParameter(reader->zstd, ZSTD_d_windowLogMax, SAMPLES_WINDOW_LOG_MAX)))
                return err_set(err, ERR_ENVIRONMENT, ENOTSUP, "this libzstd cannot limit its window");
        for (size_t c = 0; c < SAMPLE_COLUMNS_MAX; c++)
                reader->columns[c] = reader->values + c * COLUMN_STRIDE;
        return 0;
}

int samples_open_fd(int fd, const char *name, struct samples_reader **ret, struct err *err)
{
        _cleanup_samples_reader_ struct samples_reader *reader = calloc(1, sizeof(*reader));
        struct stat st;
        int r;

        if (!reader) {
                close(fd);
                return err_set_nomem(err);
        }
        reader->fd = fd;
        reader->line = 1;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return err_set(err, ERR_DATA, EINVAL, "%s is not a regular file", name);
        r = reader_allocate(reader, name, err);
        if (r == 0)
                r = refill_text(reader, err);
        if (r == 0)
                r = parse_header(reader, err);
        if (r == 0)
                *ret = TAKE_PTR(reader);
        return r;
}

int samples_open(int dirfd, const char *name, struct samples_reader **ret, struct err *err)
{
        int fd = file_open_beneath(dirfd, name);

        if (fd < 0)
                return file_open_failed(err, -fd, name);
        return samples_open_fd(fd, name, ret, err);
}

void samples_reader_free(struct samples_reader *reader)
{
        if (!reader)
                return;
        if (reader->fd >= 0)
                close(reader->fd);
        ZSTD_freeDCtx(reader->zstd);
        free(reader->values);
        free(reader->text);
        free(reader->packed);
        free(reader->path);
        free(reader);
}

int samples_column(const struct samples_reader *reader, const char *name)
{
        for (size_t c = 0; c < reader->n_columns; c++)
                if (streq(reader->names[c], name))
                        return (int)c;
        return -ENOENT;
}

size_t samples_n_columns(const struct samples_reader *reader)
{
        return reader->n_columns;
}

const char *samples_column_name(const struct samples_reader *reader, size_t c)
{
        return reader->names[c];
}
