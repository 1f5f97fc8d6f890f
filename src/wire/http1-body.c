/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hex.h"
#include "base/macro.h"
#include "wire/http1-internal.h"

#define SIZE_DIGITS_MAX 15   /* of a chunk: below 2^60 */
#define EXTENSION_MAX   1024 /* octets; nobody is known to use any */
#define TRAILER_MAX     8192

/* What the next octet of a chunked body is, RFC 9112, 7.1. */
enum chunk_state {
        CHUNK_SIZE,
        CHUNK_EXTENSION,
        CHUNK_SIZE_LF,
        CHUNK_DATA,
        CHUNK_DATA_CR,
        CHUNK_DATA_LF,
        CHUNK_TRAILER, /* the start of a line */
        CHUNK_TRAILER_NAME,
        CHUNK_TRAILER_VALUE,
        CHUNK_TRAILER_LF,
        CHUNK_LAST_LF,
};

void http1_body_begin(struct http1_body *body, enum http1_framing framing, uint64_t content_length)
{
        *body = (struct http1_body){.framing = framing};
        if (framing == HTTP1_FRAMING_LENGTH)
                body->left = content_length;
        body->is_done = framing == HTTP1_FRAMING_NONE || (framing == HTTP1_FRAMING_LENGTH && content_length == 0);
}

uint64_t http1_body_run(const struct http1_body *body)
{
        if (body->is_done)
                return 0;
        if (body->framing == HTTP1_FRAMING_CLOSE)
                return UINT64_MAX;
        return body->framing == HTTP1_FRAMING_LENGTH || body->state == CHUNK_DATA ? body->left : 0;
}

void http1_body_pass(struct http1_body *body, uint64_t len)
{
        if (body->framing == HTTP1_FRAMING_CLOSE)
                return;
        body->left -= len;
        if (body->left > 0 || len == 0)
                return;
        if (body->framing == HTTP1_FRAMING_LENGTH)
                body->is_done = true;
        else
                body->state = CHUNK_DATA_CR;
}

static enum http1_fault read_size_octet(struct http1_body *body, uint8_t c)
{
        int digit = hex_digit(c);

        if (body->n_digits > 0 && (c == ';' || c == '\r')) {
                body->state = c == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
                body->line_len = 0;
                return HTTP1_FAULT_NONE;
        }
        if (digit < 0 || body->n_digits++ == SIZE_DIGITS_MAX)
                return HTTP1_FAULT_CHUNK;
        body->left = body->left << 4 | (unsigned)digit;
        return HTTP1_FAULT_NONE;
}

static enum http1_fault read_extension_octet(struct http1_body *body, uint8_t c)
{
        if (c == '\r')
                body->state = CHUNK_SIZE_LF;
        else if (!http1_is_value_octet(c) || body->line_len++ == EXTENSION_MAX)
                return HTTP1_FAULT_CHUNK;
        return HTTP1_FAULT_NONE;
}

static enum http1_fault read_trailer_octet(struct http1_body *body, uint8_t c)
{
        if (body->trailer_len++ == TRAILER_MAX)
                return HTTP1_FAULT_TRAILER;
        switch (body->state) {
        case CHUNK_TRAILER:
                if (c == '\r')
                        body->state = CHUNK_LAST_LF;
                else if (http1_is_token_octet(c))
                        body->state = CHUNK_TRAILER_NAME;
                else
                        return HTTP1_FAULT_TRAILER;
                return HTTP1_FAULT_NONE;
        case CHUNK_TRAILER_NAME:
                if (c == ':')
                        body->state = CHUNK_TRAILER_VALUE;
                else if (!http1_is_token_octet(c))
                        return HTTP1_FAULT_TRAILER;
                return HTTP1_FAULT_NONE;
        default: /* CHUNK_TRAILER_VALUE */
                if (c == '\r')
                        body->state = CHUNK_TRAILER_LF;
                else if (!http1_is_value_octet(c))
                        return HTTP1_FAULT_TRAILER;
                return HTTP1_FAULT_NONE;
        }
}

/* The LF after a CR, and what comes after it. */
static enum http1_fault read_line_feed(struct http1_body *body, uint8_t c)
{
        if (c != '\n')
                return HTTP1_FAULT_LINE_END;
        switch (body->state) {
        case CHUNK_SIZE_LF:
                body->state = body->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
                body->n_digits = 0;
                break;
        case CHUNK_DATA_LF:
                body->state = CHUNK_SIZE;
                break;
        case CHUNK_TRAILER_LF:
                body->state = CHUNK_TRAILER;
                break;
        default: /* CHUNK_LAST_LF */
                body->is_done = true;
                break;
        }
        return HTTP1_FAULT_NONE;
}

static enum http1_fault read_octet(struct http1_body *body, uint8_t c)
{
        switch (body->state) {
        case CHUNK_SIZE:
                return read_size_octet(body, c);
        case CHUNK_EXTENSION:
                return read_extension_octet(body, c);
        case CHUNK_DATA_CR:
                body->state = CHUNK_DATA_LF;
                return c == '\r' ? HTTP1_FAULT_NONE : HTTP1_FAULT_CHUNK;
        case CHUNK_TRAILER:
        case CHUNK_TRAILER_NAME:
        case CHUNK_TRAILER_VALUE:
                return read_trailer_octet(body, c);
        default:
                return read_line_feed(body, c);
        }
}

enum http1_fault http1_body_read(struct http1_body *body, struct span input, struct span *ret_content, size_t *ret_len)
{
        uint64_t run = http1_body_run(body);
        size_t len = 0;

        *ret_content = span_of(input.data, 0);
        *ret_len = 0;
        if (run > 0) {
                ret_content->len = (size_t)MIN((uint64_t)input.len, run);
                http1_body_pass(body, ret_content->len);
                *ret_len = ret_content->len;
                return HTTP1_FAULT_NONE;
        }
        while (!body->is_done && body->state != CHUNK_DATA && len < input.len) {
                enum http1_fault fault = read_octet(body, input.data[len++]);

                if (fault != HTTP1_FAULT_NONE)
                        return fault;
        }
        *ret_len = len;
        return HTTP1_FAULT_NONE;
}
