/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http1.h"

#include "base/macro.h"
#include "base/number.h"
#include "wire/http1-internal.h"

static const char *const fault_names[N_HTTP1_FAULTS] = {
        [HTTP1_FAULT_NONE] = "none",
        [HTTP1_FAULT_INCOMPLETE] = "incomplete",
        [HTTP1_FAULT_HEAD_LENGTH] = "head-length",
        [HTTP1_FAULT_LINE_END] = "line-end",
        [HTTP1_FAULT_START_LINE] = "start-line",
        [HTTP1_FAULT_VERSION] = "version",
        [HTTP1_FAULT_TARGET] = "target",
        [HTTP1_FAULT_SCHEME] = "scheme",
        [HTTP1_FAULT_USERINFO] = "userinfo",
        [HTTP1_FAULT_HOST] = "host",
        [HTTP1_FAULT_HOST_ADDRESS] = "host-address",
        [HTTP1_FAULT_PORT] = "port",
        [HTTP1_FAULT_HOST_MISSING] = "host-missing",
        [HTTP1_FAULT_HOST_TWICE] = "host-twice",
        [HTTP1_FAULT_HOST_DIFFERS] = "host-differs",
        [HTTP1_FAULT_FIELD] = "field",
        [HTTP1_FAULT_FOLD] = "fold",
        [HTTP1_FAULT_LENGTH] = "length",
        [HTTP1_FAULT_ENCODING] = "encoding",
        [HTTP1_FAULT_FRAMING] = "framing",
        [HTTP1_FAULT_UPGRADE] = "upgrade",
        [HTTP1_FAULT_EXPECT] = "expect",
        [HTTP1_FAULT_CHUNK] = "chunk",
        [HTTP1_FAULT_TRAILER] = "trailer",
};

const char *http1_fault_name(enum http1_fault fault)
{
        return (unsigned)fault < N_HTTP1_FAULTS ? fault_names[fault] : "unknown";
}

bool http1_is_token_octet(uint8_t c)
{
        uint8_t letter = c | 0x20;

        return (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool http1_is_value_octet(uint8_t c)
{
        return (c >= ' ' && c != 0x7f) || c == '\t';
}

bool http1_is_token(struct span text)
{
        for (size_t i = 0; i < text.len; i++)
                if (!http1_is_token_octet(text.data[i]))
                        return false;
        return text.len > 0;
}

bool http1_equal_nocase(struct span text, const char *word)
{
        if (text.len != strlen(word))
                return false;
        for (size_t i = 0; i < text.len; i++) {
                uint8_t c = text.data[i];

                if ((c >= 'A' && c <= 'Z' ? c | 0x20 : c) != (uint8_t)word[i])
                        return false;
        }
        return true;
}

enum http1_fault http1_head_end(struct span input, size_t limit, size_t *at, size_t *ret)
{
        size_t most = MIN(limit, HTTP1_HEAD_LEN_MAX), end = MIN(input.len, most);

        for (; *at < end; (*at)++) {
                const uint8_t *p = input.data + *at;

                if (*p == '\n') {
                        if (*at == 0 || p[-1] != '\r')
                                return HTTP1_FAULT_LINE_END;
                        if (*at >= 3 && p[-2] == '\n') {
                                *ret = *at + 1;
                                (*at)++;
                                return HTTP1_FAULT_NONE;
                        }
                } else if (*at > 0 && p[-1] == '\r') {
                        return HTTP1_FAULT_LINE_END;
                }
        }
        return end == most ? HTTP1_FAULT_HEAD_LENGTH : HTTP1_FAULT_INCOMPLETE;
}

bool http1_line_next(struct span head, size_t *at, struct span *ret)
{
        const uint8_t *start = head.data + *at, *end;

        end = *at + 2 <= head.len ? memchr(start, '\r', head.len - *at - 1) : NULL;
        if (!end || end[1] != '\n' || end == start)
                return false;
        *ret = span_of(start, (size_t)(end - start));
        *at += ret->len + 2;
        return true;
}

static struct span trim(struct span s)
{
        while (s.len > 0 && (s.data[0] == ' ' || s.data[0] == '\t'))
                s = span_of(s.data + 1, s.len - 1);
        while (s.len > 0 && (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t'))
                s.len--;
        return s;
}

/* A field line: its name, which ends right before the colon, and its value. */
static enum http1_fault parse_field(struct span line, struct span *ret_name, struct span *ret_value)
{
        const uint8_t *colon;

        if (line.data[0] == ' ' || line.data[0] == '\t')
                return HTTP1_FAULT_FOLD;
        colon = memchr(line.data, ':', line.len);
        if (!colon)
                return HTTP1_FAULT_FIELD;
        *ret_name = span_of(line.data, (size_t)(colon - line.data));
        *ret_value = trim(span_of(colon + 1, line.len - ret_name->len - 1));
        if (!http1_is_token(*ret_name))
                return HTTP1_FAULT_FIELD;
        for (size_t i = 0; i < ret_value->len; i++)
                if (!http1_is_value_octet(ret_value->data[i]))
                        return HTTP1_FAULT_FIELD;
        return HTTP1_FAULT_NONE;
}

/* The next element of a comma-separated list, up to its parameters. */
static bool list_next(struct span *list, struct span *ret)
{
        const uint8_t *comma;

        if (list->len == 0)
                return false;
        comma = memchr(list->data, ',', list->len);
        *ret = trim(span_of(list->data, comma ? (size_t)(comma - list->data) : list->len));
        *list = comma ? span_of(comma + 1, list->len - (size_t)(comma - list->data) - 1) : span_of(NULL, 0);
        return true;
}

static void note_connection(struct http1_fields *fields, struct span value)
{
        struct span option;

        while (list_next(&value, &option)) {
                fields->has_close |= http1_equal_nocase(option, "close");
                fields->has_keep_alive |= http1_equal_nocase(option, "keep-alive");
        }
}

static void note_upgrade(struct http1_fields *fields, struct span value)
{
        struct span protocol;

        fields->has_upgrade |= value.len == 0;
        while (list_next(&value, &protocol)) {
                const uint8_t *slash = memchr(protocol.data, '/', protocol.len);
                struct span name = span_of(protocol.data, slash ? (size_t)(slash - protocol.data) : protocol.len);
                bool is_h2 = http1_equal_nocase(name, "h2c") || http1_equal_nocase(name, "h2") ||
                             http1_equal_nocase(protocol, "http/2.0");

                fields->has_upgrade_h2 |= is_h2;
                fields->has_upgrade |= !is_h2;
        }
}

static void note_field(struct http1_fields *fields, struct span name, struct span value)
{
        if (http1_equal_nocase(name, "host")) {
                fields->n_hosts++;
                fields->host = value;
        } else if (http1_equal_nocase(name, "content-length")) {
                fields->n_lengths++;
                fields->length = value;
        } else if (http1_equal_nocase(name, "transfer-encoding")) {
                fields->n_encodings++;
                fields->encoding = value;
        } else if (http1_equal_nocase(name, "connection")) {
                note_connection(fields, value);
        } else if (http1_equal_nocase(name, "upgrade")) {
                note_upgrade(fields, value);
        } else if (http1_equal_nocase(name, "http2-settings")) {
                fields->has_upgrade_h2 = true;
        } else if (http1_equal_nocase(name, "expect")) {
                fields->has_expect = true;
                fields->has_expect_other |= !http1_equal_nocase(value, "100-continue");
        }
}

enum http1_fault http1_fields_parse(struct span head, size_t at, struct http1_fields *ret)
{
        struct span line, name, value;

        *ret = (struct http1_fields){0};
        while (http1_line_next(head, &at, &line)) {
                enum http1_fault fault = parse_field(line, &name, &value);

                if (fault != HTTP1_FAULT_NONE)
                        return fault;
                note_field(ret, name, value);
        }
        /* Whoever found the end of the head has looked at all line ends; a head from elsewhere is not trusted. */
        return at + 2 == head.len && memcmp(head.data + at, "\r\n", 2) == 0 ? HTTP1_FAULT_NONE : HTTP1_FAULT_LINE_END;
}

enum http1_fault http1_fields_framing(const struct http1_fields *fields, unsigned minor_version,
                                      enum http1_framing *ret_framing, uint64_t *ret_length)
{
        *ret_framing = HTTP1_FRAMING_NONE;
        *ret_length = 0;
        if (fields->n_lengths > 0 && fields->n_encodings > 0)
                return HTTP1_FAULT_FRAMING;
        if (fields->n_encodings > 0) {
                if (fields->n_encodings > 1 || minor_version == 0 || !http1_equal_nocase(fields->encoding, "chunked"))
                        return HTTP1_FAULT_ENCODING;
                *ret_framing = HTTP1_FRAMING_CHUNKED;
        } else if (fields->n_lengths > 0) {
                if (fields->n_lengths > 1 || number_parse_u64(fields->length, ret_length) < 0 ||
                    *ret_length > INT64_MAX)
                        return HTTP1_FAULT_LENGTH;
                *ret_framing = HTTP1_FRAMING_LENGTH;
        }
        return HTTP1_FAULT_NONE;
}

enum http1_fault http1_version_parse(struct span text, unsigned *ret_minor)
{
        bool is_0 = span_equal(text, span_of_text("HTTP/1.0")), is_1 = span_equal(text, span_of_text("HTTP/1.1"));

        if (is_0 || is_1) {
                *ret_minor = is_1;
                return HTTP1_FAULT_NONE;
        }
        return text.len > 5 && memcmp(text.data, "HTTP/", 5) == 0 ? HTTP1_FAULT_VERSION : HTTP1_FAULT_START_LINE;
}

int http1_field(struct span head, const char *name, struct span *ret)
{
        struct span line, found, value;
        size_t at = 0;

        if (!http1_line_next(head, &at, &line))
                return 0;
        while (http1_line_next(head, &at, &line))
                if (parse_field(line, &found, &value) == HTTP1_FAULT_NONE && http1_equal_nocase(found, name)) {
                        *ret = value;
                        return 1;
                }
        return 0;
}
