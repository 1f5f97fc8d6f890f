/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/macro.h"

/* A growing, NUL-terminated text. Running out of memory is remembered in @failed, so that a chain of additions needs
 * one check at its end. Initialise with {0}; release with text_done(). */
struct text {
        char *data;
        size_t len;
        size_t allocated;
        bool failed;
};

void text_done(struct text *t);

#define _cleanup_text_ _cleanup_(text_done)

void text_add(struct text *t, const char *s);
void text_add_bytes(struct text *t, const void *data, size_t len);
void text_addf(struct text *t, const char *format, ...) _printf_(2, 3);
void text_addv(struct text *t, const char *format, va_list args) _printf_(2, 0);

/* text_add_visible - add outside bytes so that a terminal shows them and does not obey them: control characters,
 * backslashes and what is not UTF-8 become \xNN */
void text_add_visible(struct text *t, const void *data, size_t len);

/* text_take - hand the bytes on to the caller, who frees them; @t is empty afterwards. NULL if memory ran out; an empty
 * text gives "". */
char *text_take(struct text *t);

/* text_format - a formatted text on the heap, which the caller frees; NULL if memory ran out */
char *text_format(const char *format, ...) _printf_(1, 2);

/* text_plural - what a noun that follows the number @n ends in: "" or "s" */
static inline const char *text_plural(uint64_t n)
{
        return n == 1 ? "" : "s";
}

/* text_is_name - whether @s is a name as formats allow it: [a-z0-9.-], 1 to 64 characters, no leading "." or "-" */
bool text_is_name(const char *s);

/* text_utf8_prefix - how many of the @len bytes come before the first that is not part of well-formed UTF-8 (RFC 3629:
 * no overlong forms, no surrogates); @len where all are */
size_t text_utf8_prefix(const void *data, size_t len);

/* text_is_utf8 - whether @len bytes are well-formed UTF-8 */
bool text_is_utf8(const void *data, size_t len);

/* text_nearest - the one of @n @candidates that @word was probably meant to be: the fewest changes of a letter, at most
 * a third of the word; NULL if none is that near */
const char *text_nearest(const char *word, const char *const *candidates, size_t n);
