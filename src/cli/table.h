/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* A table for a terminal: columns as wide as their widest field, two spaces apart. */

#define TABLE_COLUMNS_MAX 16

struct table {
        const char *alignment; /* one letter a column, "l" or "r"; borrowed */
        size_t n_columns;
        size_t n, allocated; /* fields, row by row */
        char **fields;
        bool failed; /* memory ran out */
};

/* table_init - an empty table of as many columns as @alignment has letters, at most TABLE_COLUMNS_MAX */
void table_init(struct table *table, const char *alignment);
void table_done(struct table *table);

#define _cleanup_table_ _cleanup_(table_done)

/* table_add - the next field, row by row; the first row is the head. What a terminal would obey is made visible. */
void table_add(struct table *table, const char *field);
void table_addf(struct table *table, const char *format, ...) _printf_(2, 3);

/* table_render - add the table to @out, each line after @indent spaces; nothing if it has no row but its head. Columns
 * of which only the head is filled are left out. */
void table_render(const struct table *table, unsigned indent, struct text *out);
