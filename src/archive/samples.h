/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/sample.h"

/* The sample codec: CSV (RFC 4180, a header row of column names, integers only, an empty field where nothing was
 * observed), compressed with zstd. One function reads it, whether the bytes are fresh or years old. */

struct samples_writer; /* its first member is a struct sample_writer */

/* samples_create - start a file @name in the folder @dirfd
 * @columns: at most SAMPLE_COLUMNS_MAX, borrowed until samples_finish()
 */
int samples_create(int dirfd, const char *name, const struct column *columns, size_t n_columns,
                   struct samples_writer **ret, struct err *err);

/* samples_writer_base - the writer to hand to whoever measures */
struct sample_writer *samples_writer_base(struct samples_writer *writer);

/* samples_finish - flush, sync and close. Only after this returned 0 is the file whole. */
int samples_finish(struct samples_writer *writer, struct err *err);

/* samples_writer_free - release; a file that was not finished is removed */
void samples_writer_free(struct samples_writer *writer);

DEFINE_CLEANUP(struct samples_writer *, samples_writer_free)
#define _cleanup_samples_writer_ _cleanup_(samples_writer_free_cleanup)

struct samples_reader;

/* samples_open - open a sample file and read its header */
int samples_open(int dirfd, const char *name, struct samples_reader **ret, struct err *err);
void samples_reader_free(struct samples_reader *reader);

DEFINE_CLEANUP(struct samples_reader *, samples_reader_free)
#define _cleanup_samples_reader_ _cleanup_(samples_reader_free_cleanup)

/* samples_column - index of the column @name; -ENOENT if there is none */
int samples_column(const struct samples_reader *reader, const char *name);
size_t samples_n_columns(const struct samples_reader *reader);

#define SAMPLES_BLOCK_ROWS 1024

/* samples_read - the next rows, column by column: columns[c][r], valid until the next call; SAMPLE_MISSING for an empty
 * field. At most SAMPLES_BLOCK_ROWS rows.
 *
 * Return: the number of rows; 0 at the end of a whole file; a negative errno with the reason (kind data, with the line)
 * for a row with too few or too many fields, a field that is no integer, a truncated or damaged stream.
 */
int samples_read(struct samples_reader *reader, const int64_t *const **ret_columns, struct err *err);

/* csv_add_field - add a text field of other CSV output to @out, quoted where RFC 4180 asks for it */
struct text;
void csv_add_field(struct text *out, const char *value);
