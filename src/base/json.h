/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/span.h"

/* JSON as the archive's formats want it (docs/formats): keys sorted, two spaces of indentation, integers for every
 * count and duration, no floating point at all, a line feed at the end; so that the same content is the same bytes. */

DEFINE_CLEANUP(json_t *, json_decref)
#define _cleanup_json_ _cleanup_(json_decref_cleanup)

/* json_parse - read one JSON value that is the whole of @s
 * @name:  what to call the input in an error
 *
 * Duplicate keys, invalid UTF-8, NUL characters, trailing bytes, nesting over 64, and numbers with a fraction or an
 * exponent are errors (kind data, with line and column where the parser knows them).
 * Return: 0 with a new reference in @ret, or a negative errno.
 */
int json_parse(struct span s, const char *name, json_t **ret, struct err *err);

/* json_load - json_parse() of a file of at most @limit_bytes, read by file_read_beneath() */
int json_load(int dirfd, const char *path, size_t limit_bytes, json_t **ret, struct err *err);

/* json_format - the canonical text of @value, which the caller frees; NULL if memory ran out or @value holds a real */
char *json_format(const json_t *value);

/* json_format_line - as json_format(), on one line without spaces, without the line feed */
char *json_format_line(const json_t *value);

/* json_save - write the canonical text of @value atomically, mode 0644 */
int json_save(int dirfd, const char *path, const json_t *value, struct err *err);

/* Members of an object that has to have them. An absent member, or one of another type, is an error of kind data that
 * names @where and @key. Strings are borrowed from the object. */
int json_get_string(const json_t *object, const char *where, const char *key, const char **ret, struct err *err);
int json_get_i64(const json_t *object, const char *where, const char *key, int64_t *ret, struct err *err);
int json_get_bool(const json_t *object, const char *where, const char *key, bool *ret, struct err *err);
int json_get_array(const json_t *object, const char *where, const char *key, json_t **ret, struct err *err);
int json_get_object(const json_t *object, const char *where, const char *key, json_t **ret, struct err *err);
