/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/span.h"

/* Files by directory descriptor. @dirfd may be AT_FDCWD. Every descriptor is opened with O_CLOEXEC. */

/* file_open_failed - record why @path could not be opened: of kind data where what is there, or missing, is to blame
 * (so also a link, where links are not followed), else of kind io. Return: -@errnum. */
int file_open_failed(struct err *err, int errnum, const char *path);

/* file_read - read a whole regular file, those of /proc and /sys included
 * @limit_bytes:   a larger file is refused with -EFBIG
 * @ret, @ret_len: its bytes, which the caller frees; a NUL that does not count follows them
 *
 * Return: 0, or a negative errno with the reason in @err.
 */
int file_read(int dirfd, const char *path, size_t limit_bytes, char **ret, size_t *ret_len, struct err *err);

/* file_read_fd - as file_read(), of an open file from its current position; @name is for the reason */
int file_read_fd(int fd, const char *name, size_t limit_bytes, char **ret, size_t *ret_len, struct err *err);

/* file_read_stream - as file_read_fd(), of anything that can be read to an end, such as standard input */
int file_read_stream(int fd, const char *name, size_t limit_bytes, char **ret, size_t *ret_len, struct err *err);

/* file_read_beneath - as file_read(), but neither "..", an absolute path nor a link leads out of @dirfd: for what may
 * have been made to deceive, such as an archive */
int file_read_beneath(int dirfd, const char *path, size_t limit_bytes, char **ret, size_t *ret_len, struct err *err);

/* What the temporary names of file_write_atomic() start and end with: a kill in its middle may leave one. */
#define FILE_TEMPORARY_PREFIX "."
#define FILE_TEMPORARY_SUFFIX ".tmp"

/* file_write_atomic - write a file so that @path holds either its old bytes or all of @data, also after a power cut:
 * written to a temporary name in the same folder, synced, renamed, folder synced
 *
 * Return: 0, or a negative errno with the reason in @err; then no temporary file is left.
 */
int file_write_atomic(int dirfd, const char *path, mode_t mode, struct span data, struct err *err);

/* file_write_all - write all of @data to @fd, through short writes and interruptions. Return: 0 or a negative errno. */
int file_write_all(int fd, const void *data, size_t len);

/* file_open_dir - open a folder below @dirfd, without following a link in its last part. Return: a descriptor or a
 * negative errno. */
int file_open_dir(int dirfd, const char *path);

/* file_make_dir - create a folder if it is not there yet and open it. Return: a descriptor or a negative errno. */
int file_make_dir(int dirfd, const char *path, mode_t mode);

/* file_open_beneath - open @path for reading so that neither "..", an absolute path nor a link leads out of @dirfd
 *
 * Return: a descriptor, or a negative errno (-EXDEV where the path leads out).
 */
int file_open_beneath(int dirfd, const char *path);

/* file_is_beneath - whether a relative path has neither an empty part, "." nor ".." in it and is not absolute */
bool file_is_beneath(const char *path);

/* file_remove_tree - remove a file, or a folder and all below it, without following links; absent counts as done
 *
 * Return: 0, or the first negative errno; what can be removed is removed.
 */
int file_remove_tree(int dirfd, const char *path);
