/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "wire/http1.h"

/* The field lines of a head that decide where it goes, how long its body is and what comes after it. */
struct http1_fields {
        unsigned n_hosts, n_lengths, n_encodings;
        struct span host, length, encoding;
        bool has_close, has_keep_alive;   /* in Connection */
        bool has_upgrade, has_upgrade_h2; /* to another protocol than HTTP/2, and to that */
        bool has_expect, has_expect_other;
};

/* http1_line_next - the line at *@at of a head without its end, and *@at moved behind it
 *
 * Return: true; false at the empty line that ends the head, or where @head is at its end.
 */
bool http1_line_next(struct span head, size_t *at, struct span *ret);

/* http1_fields_parse - read the field lines that follow the start line; @at is where they begin */
enum http1_fault http1_fields_parse(struct span head, size_t at, struct http1_fields *ret);

/* http1_fields_framing - what the lengths and encodings say, without a look at methods and statuses
 * @ret_framing: HTTP1_FRAMING_NONE where nothing is said
 */
enum http1_fault http1_fields_framing(const struct http1_fields *fields, unsigned minor_version,
                                      enum http1_framing *ret_framing, uint64_t *ret_length);

/* http1_version_parse - "HTTP/1.0" or "HTTP/1.1" */
enum http1_fault http1_version_parse(struct span text, unsigned *ret_minor);

bool http1_is_token_octet(uint8_t c);

/* http1_is_value_octet - of field values, reasons and chunk extensions: visible, space, tab or obs-text */
bool http1_is_value_octet(uint8_t c);

bool http1_is_token(struct span text);

/* http1_equal_nocase - whether @text is @word, in any case of ASCII letters; @word in lower case */
bool http1_equal_nocase(struct span text, const char *word);
