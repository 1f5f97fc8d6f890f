/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "archive/samples.h"
#include "base/file.h"
#include "base/number.h"
#include "fuzz/fuzz.h"

/* An input that starts with "z" is, without it, a file's bytes; any other is the text, compressed here, and a plain
 * parser below has to find the same values in it, or a fault too. */

/* Reads the next field, of which there has to be one. Return: whether it is one; *@at is then behind its separator. */
static int plain_field(const uint8_t *data, size_t size, size_t *at, char end, int64_t *ret)
{
        size_t start = *at, len = 0;
        struct span field;

        while (start + len < size && data[start + len] != ',' && data[start + len] != '\n')
                len++;
        if (start + len == size || data[start + len] != (uint8_t)end)
                return 0;
        *at = start + len + 1;
        field = span_of(data + start, len);
        *ret = SAMPLE_MISSING;
        return len == 0 || (number_parse_i64(field, ret) == 0 && *ret != SAMPLE_MISSING && !(*ret == 0 && len > 1));
}

static void compare(struct samples_reader *reader, const uint8_t *text, size_t size)
{
        const uint8_t *line_end = memchr(text, '\n', size);
        size_t at = (size_t)(line_end - text) + 1, n = samples_n_columns(reader);
        const int64_t *const *block;
        int rows;

        while ((rows = samples_read(reader, &block, NULL)) > 0)
                for (int r = 0; r < rows; r++)
                        for (size_t c = 0; c < n; c++) {
                                int64_t value;

                                if (!plain_field(text, size, &at, c + 1 < n ? ',' : '\n', &value) ||
                                    value != block[c][r])
                                        abort();
                        }
        if (rows == 0 && at != size)
                abort();
        /* a fault has to be one for the plain parser too */
        while (rows < 0 && at < size)
                for (size_t c = 0; c < n; c++) {
                        int64_t value;

                        if (!plain_field(text, size, &at, c + 1 < n ? ',' : '\n', &value))
                                return;
                }
        if (rows < 0)
                abort();
}

static struct samples_reader *open_bytes(const void *data, size_t size)
{
        struct samples_reader *reader = NULL;
        int fd = memfd_create("fuzz", MFD_CLOEXEC);

        if (fd < 0 || file_write_all(fd, data, size) < 0 || lseek(fd, 0, SEEK_SET) != 0)
                abort();
        (void)samples_open_fd(fd, "input", &reader, NULL);
        return reader;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_samples_reader_ struct samples_reader *reader = NULL;
        const int64_t *const *block;

        if (size > 0 && data[0] == 'z') {
                reader = open_bytes(data + 1, size - 1);
                while (reader && samples_read(reader, &block, NULL) > 0)
                        ;
        } else {
                size_t room = ZSTD_compressBound(size), n;
                _cleanup_free_ void *packed = malloc(room);

                n = ZSTD_compress(packed, room, data, size, 1);
                if (ZSTD_isError(n))
                        abort();
                reader = open_bytes(packed, n);
                if (reader)
                        compare(reader, data, size);
        }
        return 0;
}
