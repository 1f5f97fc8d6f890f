/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"

void table_init(struct table *table, const char *alignment)
{
        *table = (struct table){.alignment = alignment, .n_columns = MIN(strlen(alignment), (size_t)TABLE_COLUMNS_MAX)};
}

void table_done(struct table *table)
{
        for (size_t i = 0; i < table->n; i++)
                free(table->fields[i]);
        free(table->fields);
        *table = (struct table){0};
}

void table_add(struct table *table, const char *field)
{
        struct text visible = {0};

        if (table->n == table->allocated) {
                size_t wanted = MAX(table->allocated * 2, (size_t)64);
                char **grown = reallocarray(table->fields, wanted, sizeof(*grown));

                if (!grown) {
                        table->failed = true;
                        return;
                }
                table->fields = grown;
                table->allocated = wanted;
        }
        text_add_visible(&visible, field, strlen(field));
        table->fields[table->n] = text_take(&visible);
        if (table->fields[table->n])
                table->n++;
        else
                table->failed = true;
}

void table_addf(struct table *table, const char *format, ...)
{
        struct text field = {0};
        va_list args;
        char *text;

        va_start(args, format);
        text_addv(&field, format, args);
        va_end(args);
        text = text_take(&field);
        if (text)
                table_add(table, text);
        else
                table->failed = true;
        free(text);
}

/* The widest field of each column; 0 where all but the head are empty. */
static void measure(const struct table *table, size_t widths[static TABLE_COLUMNS_MAX])
{
        for (size_t c = 0; c < table->n_columns; c++) {
                bool is_filled = false;

                widths[c] = 0;
                for (size_t i = c; i < table->n; i += table->n_columns) {
                        widths[c] = MAX(widths[c], strlen(table->fields[i]));
                        is_filled |= i >= table->n_columns && table->fields[i][0];
                }
                if (!is_filled)
                        widths[c] = 0;
        }
}

void table_render(const struct table *table, unsigned indent, struct text *out)
{
        size_t widths[TABLE_COLUMNS_MAX];

        if (table->failed) {
                out->failed = true;
                return;
        }
        measure(table, widths);
        for (size_t row = 0; table->n >= 2 * table->n_columns && row < table->n / table->n_columns; row++) {
                size_t pending = indent; /* spaces are written only before something: no line ends in them */

                for (size_t c = 0; c < table->n_columns; c++) {
                        const char *field = table->fields[row * table->n_columns + c];
                        size_t len = strlen(field);

                        if (widths[c] == 0)
                                continue;
                        if (table->alignment[c] == 'r')
                                pending += widths[c] - len;
                        if (len > 0) {
                                text_addf(out, "%*s%s", (int)pending, "", field);
                                pending = 0;
                        }
                        pending += 2 + (table->alignment[c] == 'r' ? 0 : widths[c] - len);
                }
                text_add(out, "\n");
        }
}
