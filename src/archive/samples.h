/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/sample.h"

/* The sample codec (docs/formats/samples.md): CSV of integers with a header row of column names, an empty field where
 * nothing was observed, compressed with zstd. One function reads it, whether the bytes are fresh or years old. */

struct samples_writer;

/* samples_create - start a file @name, which may not exist, in the folder @dirfd
 * @columns: 1 to SAMPLE_COLUMNS_MAX, borrowed until samples_writer_free()
 *
 * Return: 0, or a negative errno with the reason in @err.
 */
int samples_create(int dirfd, const char *name, const struct column *columns, size_t n_columns,
                   struct samples_writer **ret, struct err *err);

/* samples_writer_base - the writer to hand to whoever measures. After a row failed, all that follows fails the same. */
struct sample_writer *samples_writer_base(struct samples_writer *writer);

/* samples_finish - compress what is left, sync and close. Only after this returned 0 is the file whole. */
int samples_finish(struct samples_writer *writer, struct err *err);

/* samples_writer_free - release; a file that was not finished is removed */
void samples_writer_free(struct samples_writer *writer);

DEFINE_CLEANUP(struct samples_writer *, samples_writer_free)
#define _cleanup_samples_writer_ _cleanup_(samples_writer_free_cleanup)

/* What a reader accepts of any file, so that its memory is bounded: the window that zstd may look back over, as a power
 * of two, and the bytes of the decompressed file. */
#define SAMPLES_WINDOW_LOG_MAX 23
#define SAMPLES_TEXT_BYTES_MAX (UINT64_C(1) << 36)

struct samples_reader;

/* samples_open - open a sample file and read its header; links and other than regular files are refused
 * @name: relative to @dirfd, and not out of it
 */
int samples_open(int dirfd, const char *name, struct samples_reader **ret, struct err *err);

/* samples_open_fd - samples_open() of a file that is open for reading; @fd is closed, also where this fails
 * @name: for errors
 */
int samples_open_fd(int fd, const char *name, struct samples_reader **ret, struct err *err);

void samples_reader_free(struct samples_reader *reader);

DEFINE_CLEANUP(struct samples_reader *, samples_reader_free)
#define _cleanup_samples_reader_ _cleanup_(samples_reader_free_cleanup)

/* samples_column - index of the column @name; -ENOENT if there is none */
int samples_column(const struct samples_reader *reader, const char *name);
size_t samples_n_columns(const struct samples_reader *reader);

/* samples_column_name - the name of column @c, which is below samples_n_columns(); borrowed */
const char *samples_column_name(const struct samples_reader *reader, size_t c);

#define SAMPLES_BLOCK_ROWS 1024

/* samples_read - the next rows, column by column
 * @ret_columns: (*ret_columns)[c][r], valid until the next call; SAMPLE_MISSING for an empty field
 *
 * Return: the number of rows, at most SAMPLES_BLOCK_ROWS; 0 at the end of a whole file; a negative errno with the
 * reason (kind data, with the line) for a row with too few or too many fields, a field that is not an integer as the
 * writer writes it, a truncated or damaged stream. Rows before the fault were returned by earlier calls or are not
 * returned.
 */
int samples_read(struct samples_reader *reader, const int64_t *const **ret_columns, struct err *err);
