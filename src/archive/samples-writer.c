/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "archive/samples-internal.h"
#include "archive/samples.h"
#include "base/file.h"

/* Rows are mostly noisy digits, of which higher levels save nothing and which they take longer to read. */
#define COMPRESSION_LEVEL 1

#define TEXT_BYTES   ((size_t)128 * 1024)
#define PACKED_BYTES ((size_t)128 * 1024)

struct samples_writer {
        struct sample_writer base; /* first, so that the row operation finds the rest */
        int dirfd, fd;
        char *name;
        ZSTD_CCtx *zstd;
        char *text; /* rows not compressed yet */
        size_t text_len;
        char *packed;
        int failed;      /* the negative errno of the first failure */
        bool is_partial; /* the file is there and not whole */
};

bool samples_is_column_name(const char *name, size_t len)
{
        if (len == 0 || len > SAMPLES_NAME_BYTES_MAX || name[0] < 'a' || name[0] > 'z')
                return false;
        for (size_t i = 0; i < len; i++)
                if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') || name[i] == '_'))
                        return false;
        return true;
}

static int write_failed(struct samples_writer *writer, int r, struct err *err)
{
        writer->failed = r;
        return err_set_errno(err, ERR_IO, -r, "cannot write %s", writer->name);
}

/* Hands the collected rows to zstd, and what comes out of it to the file. */
static int compress(struct samples_writer *writer, ZSTD_EndDirective mode, struct err *err)
{
        ZSTD_inBuffer in = {.src = writer->text, .size = writer->text_len};
        size_t left;

        do {
                ZSTD_outBuffer out = {.dst = writer->packed, .size = PACKED_BYTES};
                int r;

                left = ZSTD_compressStream2(writer->zstd, &out, &in, mode);
                if (ZSTD_isError(left)) {
                        writer->failed = -EIO;
                        return err_set(err, ERR_ENVIRONMENT, EIO, "cannot compress %s: %s", writer->name,
                                       ZSTD_getErrorName(left));
                }
                r = file_write_all(writer->fd, writer->packed, out.pos);
                if (r < 0)
                        return write_failed(writer, r, err);
        } while (mode == ZSTD_e_end ? left > 0 : in.pos < in.size);
        writer->text_len = 0;
        return 0;
}

static size_t format_integer(int64_t value, char *at)
{
        static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                    "25262728293031323334353637383940414243444546474849"
                                    "50515253545556575859606162636465666768697071727374"
                                    "75767778798081828384858687888990919293949596979899";
        uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        char digits[SAMPLES_FIELD_BYTES_MAX], *p = digits + sizeof(digits);
        size_t len;

        while (rest >= 100) {
                p -= 2;
                memcpy(p, pairs + 2 * (rest % 100), 2);
                rest /= 100;
        }
        if (rest >= 10) {
                p -= 2;
                memcpy(p, pairs + 2 * rest, 2);
        } else {
                *--p = (char)('0' + rest);
        }
        if (value < 0)
                *--p = '-';
        len = (size_t)(digits + sizeof(digits) - p);
        memcpy(at, p, len);
        return len;
}

static int write_row(struct sample_writer *base, const int64_t *values, struct err *err)
{
        struct samples_writer *writer = (struct samples_writer *)base;
        char *at;
        int r;

        if (writer->failed)
                return err_set_errno(err, ERR_IO, -writer->failed, "cannot write %s", writer->name);
        if (writer->text_len + SAMPLES_ROW_BYTES_MAX > TEXT_BYTES) {
                r = compress(writer, ZSTD_e_continue, err);
                if (r < 0)
                        return r;
        }
        at = writer->text + writer->text_len;
        for (size_t c = 0; c < base->n_columns; c++) {
                if (values[c] != SAMPLE_MISSING)
                        at += format_integer(values[c], at);
                *at++ = ',';
        }
        at[-1] = '\n';
        writer->text_len = (size_t)(at - writer->text);
        return 0;
}

static int write_header(struct samples_writer *writer, struct err *err)
{
        for (size_t c = 0; c < writer->base.n_columns; c++) {
                const char *name = writer->base.columns[c].name;
                size_t len = strlen(name);

                if (!samples_is_column_name(name, len))
                        return err_set(err, ERR_BUG, EINVAL, "\"%s\" cannot be the name of a sample column", name);
                for (size_t other = 0; other < c; other++)
                        if (streq(writer->base.columns[other].name, name))
                                return err_set(err, ERR_BUG, EINVAL, "two sample columns are named \"%s\"", name);
                memcpy(writer->text + writer->text_len, name, len);
                writer->text_len += len;
                writer->text[writer->text_len++] = c + 1 < writer->base.n_columns ? ',' : '\n';
        }
        return 0;
}

static int writer_allocate(struct samples_writer *writer, const char *name, struct err *err)
{
        writer->name = strdup(name);
        writer->text = malloc(TEXT_BYTES);
        writer->packed = malloc(PACKED_BYTES);
        writer->zstd = ZSTD_createCCtx();
        if (!writer->name || !writer->text || !writer->packed || !writer->zstd)
                return err_set_nomem(err);
        if (ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, COMPRESSION_LEVEL)) ||
            ZSTD_isError(ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_checksumFlag, 1)))
                return err_set(err, ERR_ENVIRONMENT, ENOTSUP, "this libzstd does not know level %d or checksums",
                               COMPRESSION_LEVEL);
        return 0;
}

int samples_create(int dirfd, const char *name, const struct column *columns, size_t n_columns,
                   struct samples_writer **ret, struct err *err)
{
        static const struct sample_writer_ops ops = {.row = write_row};
        _cleanup_samples_writer_ struct samples_writer *writer = calloc(1, sizeof(*writer));
        int r;

        if (!writer)
                return err_set_nomem(err);
        *writer = (struct samples_writer){
                .base = {.ops = &ops, .columns = columns, .n_columns = n_columns},
                .dirfd = -1,
                .fd = -1,
        };
        if (n_columns == 0 || n_columns > SAMPLE_COLUMNS_MAX)
                return err_set(err, ERR_BUG, EINVAL, "%zu sample columns, expected 1 to %d", n_columns,
                               SAMPLE_COLUMNS_MAX);
        r = writer_allocate(writer, name, err);
        if (r < 0)
                return r;
        r = write_header(writer, err);
        if (r < 0)
                return r;

        writer->dirfd = openat(dirfd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (writer->dirfd < 0)
                return err_set_errno(err, ERR_IO, errno, "cannot create %s", name);
        writer->fd = openat(writer->dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (writer->fd < 0)
                return err_set_errno(err, ERR_IO, errno, "cannot create %s", name);
        writer->is_partial = true;
        *ret = TAKE_PTR(writer);
        return 0;
}

struct sample_writer *samples_writer_base(struct samples_writer *writer)
{
        return &writer->base;
}

int samples_finish(struct samples_writer *writer, struct err *err)
{
        int r;

        if (writer->failed)
                return err_set_errno(err, ERR_IO, -writer->failed, "cannot write %s", writer->name);
        r = compress(writer, ZSTD_e_end, err);
        if (r < 0)
                return r;
        if (fsync(writer->fd) < 0)
                return write_failed(writer, -errno, err);
        if (close(TAKE_FD(writer->fd)) < 0)
                return write_failed(writer, -errno, err);
        writer->is_partial = false;
        return 0;
}

void samples_writer_free(struct samples_writer *writer)
{
        if (!writer)
                return;
        if (writer->fd >= 0)
                close(writer->fd);
        if (writer->is_partial)
                unlinkat(writer->dirfd, writer->name, 0);
        if (writer->dirfd >= 0)
                close(writer->dirfd);
        ZSTD_freeCCtx(writer->zstd);
        free(writer->packed);
        free(writer->text);
        free(writer->name);
        free(writer);
}
