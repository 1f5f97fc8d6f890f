/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>

void text_done(struct text *t)
{
        free(t->data);
        *t = (struct text){0};
}

static bool text_reserve(struct text *t, size_t more)
{
        size_t wanted, allocated;
        char *data;

        if (t->failed || __builtin_add_overflow(t->len, more, &wanted) || wanted == SIZE_MAX) {
                t->failed = true;
                return false;
        }
        if (wanted + 1 <= t->allocated)
                return true;

        allocated = MAX(wanted + 1, t->allocated * 2);
        data = realloc(t->data, MAX(allocated, (size_t)64));
        if (!data) {
                t->failed = true;
                return false;
        }
        t->data = data;
        t->allocated = MAX(allocated, (size_t)64);
        return true;
}

void text_add_bytes(struct text *t, const void *data, size_t len)
{
        if (!text_reserve(t, len))
                return;
        if (len > 0)
                memcpy(t->data + t->len, data, len);
        t->len += len;
        t->data[t->len] = '\0';
}

void text_add(struct text *t, const char *s)
{
        text_add_bytes(t, s, strlen(s));
}

void text_addv(struct text *t, const char *format, va_list args)
{
        va_list again;
        int n;

        va_copy(again, args);
        n = vsnprintf(NULL, 0, format, again);
        va_end(again);
        if (n < 0) {
                t->failed = true;
                return;
        }
        if (!text_reserve(t, (size_t)n))
                return;
        vsnprintf(t->data + t->len, (size_t)n + 1, format, args);
        t->len += (size_t)n;
}

void text_addf(struct text *t, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        text_addv(t, format, args);
        va_end(args);
}

char *text_take(struct text *t)
{
        char *data;

        if (!text_reserve(t, 0)) {
                text_done(t);
                return NULL;
        }
        t->data[t->len] = '\0';
        data = TAKE_PTR(t->data);
        *t = (struct text){0};
        return data;
}

char *text_format(const char *format, ...)
{
        struct text t = {0};
        va_list args;

        va_start(args, format);
        text_addv(&t, format, args);
        va_end(args);
        return text_take(&t);
}

bool text_is_name(const char *s)
{
        size_t len = strlen(s);

        if (len == 0 || len > 64 || s[0] == '.' || s[0] == '-')
                return false;
        return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.-") == len;
}

/* Length of the well-formed sequence at @p, or 0. The ranges of the second byte are table 3-7 of the Unicode standard.
 */
static size_t utf8_sequence(const uint8_t *p, size_t left)
{
        uint8_t low = 0x80, high = 0xbf;
        size_t len;

        if (p[0] < 0x80)
                return 1;
        if (p[0] >= 0xc2 && p[0] <= 0xdf)
                len = 2;
        else if (p[0] >= 0xe0 && p[0] <= 0xef)
                len = 3;
        else if (p[0] >= 0xf0 && p[0] <= 0xf4)
                len = 4;
        else
                return 0;
        if (left < len)
                return 0;

        if (p[0] == 0xe0)
                low = 0xa0;
        else if (p[0] == 0xed)
                high = 0x9f;
        else if (p[0] == 0xf0)
                low = 0x90;
        else if (p[0] == 0xf4)
                high = 0x8f;
        if (p[1] < low || p[1] > high)
                return 0;
        for (size_t i = 2; i < len; i++)
                if (p[i] < 0x80 || p[i] > 0xbf)
                        return 0;
        return len;
}

size_t text_utf8_prefix(const void *data, size_t len)
{
        const uint8_t *p = data;
        size_t i = 0;

        while (i < len) {
                size_t n = utf8_sequence(p + i, len - i);

                if (n == 0)
                        break;
                i += n;
        }
        return i;
}

bool text_is_utf8(const void *data, size_t len)
{
        return text_utf8_prefix(data, len) == len;
}

#define WORD_MAX 64

/* Letters to insert, remove, replace, or swap with their neighbour (optimal string alignment), for words under
 * WORD_MAX. Row i of the table is about the first i letters of @a; the last three rows are kept. */
static size_t edit_distance(const char *a, const char *b)
{
        size_t rows[3][WORD_MAX], n = strlen(b), i;

        for (size_t j = 0; j <= n; j++)
                rows[0][j] = j;
        for (i = 1; a[i - 1]; i++) {
                size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];

                row[0] = i;
                for (size_t j = 1; j <= n; j++) {
                        size_t replace = above[j - 1] + (a[i - 1] != b[j - 1]), one = MIN(above[j], row[j - 1]) + 1;

                        row[j] = MIN(replace, one);
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                                row[j] = MIN(row[j], two_above[j - 2] + 1);
                }
        }
        return rows[(i - 1) % 3][n];
}

const char *text_nearest(const char *word, const char *const *candidates, size_t n)
{
        size_t len = strlen(word), best = (len < 6 ? 1 : len / 3) + 1;
        const char *nearest = NULL;

        if (len >= WORD_MAX)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                size_t distance = strlen(candidates[i]) < WORD_MAX ? edit_distance(word, candidates[i]) : best;

                if (distance < best) {
                        best = distance;
                        nearest = candidates[i];
                }
        }
        return nearest;
}

/* C0, DEL, and C1 (U+0080 to U+009F), which terminals take as commands too. */
static bool is_control(const uint8_t *p, size_t n)
{
        return n == 1 ? p[0] < 0x20 || p[0] == 0x7f : n == 2 && p[0] == 0xc2 && p[1] < 0xa0;
}

void text_add_visible(struct text *t, const void *data, size_t len)
{
        const uint8_t *p = data;

        for (size_t i = 0; i < len;) {
                size_t n = utf8_sequence(p + i, len - i);

                if (n > 0 && p[i] != '\\' && !is_control(p + i, n)) {
                        text_add_bytes(t, p + i, n);
                        i += n;
                } else {
                        text_addf(t, "\\x%02x", p[i]);
                        i++;
                }
        }
}
