/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/inspector.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/macro.h"
#include "wire/tls-hello.h"

#define TLS_HANDSHAKE  22 /* first octet of a record, RFC 8446 5.1 */
#define TLS_FIRST      20 /* other records, which some servers pass over before a ClientHello */
#define TLS_LAST       24
#define TLS_MAJOR      3 /* second octet */
#define HEAD_MAX       ((size_t)32 * 1024)
#define START_LINE_MAX ((size_t)8 * 1024)

/* What one step over the input has found. */
enum step {
        STEP_MORE, /* more octets are needed */
        STEP_ON,   /* something was let through, or the mode is another; go on */
        STEP_REFUSED,
};

static enum step open_up(struct inspector *in, bool allowed, size_t len, size_t *ret_len)
{
        if (!allowed)
                return STEP_REFUSED;
        in->mode = INSPECTOR_OPEN;
        *ret_len = len;
        return STEP_ON;
}

static enum step opaque(struct inspector *in, struct span input, size_t *ret_len)
{
        return open_up(in, in->is_allowed(in->userdata, "", ""), input.len, ret_len);
}

static enum step read_hello(struct inspector *in, struct span input, bool is_end, size_t *ret_len, const char **why)
{
        struct tls_hello hello;
        enum tls_hello_fault fault = tls_hello_parse(input, &hello);

        if (fault == TLS_HELLO_FAULT_INCOMPLETE && !is_end)
                return STEP_MORE;
        if (fault != TLS_HELLO_FAULT_NONE) {
                /* A server may read it in another way than we do. */
                *why = "a ClientHello that is not as it has to be";
                return STEP_REFUSED;
        }
        return open_up(in, in->is_allowed(in->userdata, hello.has_name ? hello.name.text : "", NULL), input.len,
                       ret_len);
}

/* What some server takes for a space between the parts of a request line, or before it. */
static bool is_space(uint8_t c)
{
        return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f) || c == 0x85 || c == 0xa0;
}

/* Control octets that nobody takes for a space or for part of a request line. */
static bool is_binary(uint8_t c)
{
        return (c < ' ' || c == 0x7f) && !is_space(c);
}

static bool is_letter(uint8_t c)
{
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Whether these octets, the first of a connection, may become "METHOD target HTTP/1.1" for a server that is lenient:
 * some skip space before it, some take any word for a method, some take a target with zeros in it, though none does all
 * of that. Other protocols are known by their binary octets. */
static bool may_be_http(struct span input)
{
        bool in_method = true, is_word;
        size_t i = 0;

        while (i < input.len && is_space(input.data[i]))
                i++;
        if (i == input.len)
                return true;
        if (input.data[i] <= ' ' || input.data[i] >= 0x7f)
                return false;
        is_word = is_letter(input.data[i]);
        for (; i < input.len && input.data[i] != '\n'; i++) {
                in_method = in_method && !is_space(input.data[i]);
                if (is_binary(input.data[i]) && (in_method || !is_word))
                        return false;
        }
        return true;
}

static bool has_version(struct span line)
{
        static const char mark[] = "HTTP/";

        for (size_t i = 0; i + sizeof(mark) - 1 <= line.len; i++)
                if (strncasecmp((const char *)line.data + i, mark, sizeof(mark) - 1) == 0)
                        return true;
        return false;
}

/* Octets of the first line that is not empty, with what is before it; all of them where it does not end. */
static size_t first_line(struct span input, bool *ret_ends)
{
        const uint8_t *end;
        size_t i = 0;

        while (i < input.len && is_space(input.data[i]))
                i++;
        end = memchr(input.data + i, '\n', input.len - i);
        *ret_ends = end;
        return end ? (size_t)(end - input.data) : input.len;
}

/* A request of HTTP/0.9 (RFC 1945, 4.1), which names no host: "GET /path". */
static bool is_hostless_request(struct span line)
{
        static const char method[] = "GET";
        size_t i = 0, space;

        while (i < line.len && is_space(line.data[i]))
                i++;
        if (line.len - i <= sizeof(method) - 1 ||
            strncasecmp((const char *)line.data + i, method, sizeof(method) - 1) != 0)
                return false;
        space = i + sizeof(method) - 1;
        for (i = space; i < line.len && is_space(line.data[i]);)
                i++;
        return i > space && i < line.len && line.data[i] == '/';
}

static bool is_tls_record(struct span input)
{
        return input.data[0] == TLS_HANDSHAKE ||
               (input.data[0] >= TLS_FIRST && input.data[0] <= TLS_LAST && input.len > 1 && input.data[1] == TLS_MAJOR);
}

static enum step read_first(struct inspector *in, struct span input, bool is_end, size_t *ret_len, const char **why)
{
        struct span start = span_of(input.data, MIN(input.len, START_LINE_MAX));
        bool ends;
        size_t len;

        if (is_tls_record(input))
                return read_hello(in, input, is_end, ret_len, why);
        if (input.len == 1 && input.data[0] >= TLS_FIRST && input.data[0] <= TLS_LAST && !is_end)
                return STEP_MORE;
        if (!may_be_http(start))
                return opaque(in, input, ret_len);
        len = first_line(start, &ends);
        if (!ends && input.len >= START_LINE_MAX) {
                *why = "a first line that is too long to be looked at";
                return STEP_REFUSED;
        }
        if (!ends && !is_end)
                return STEP_MORE;
        if (!has_version(span_of(input.data, len))) {
                if (!is_hostless_request(span_of(input.data, len)))
                        return opaque(in, input, ret_len);
                *why = "a request of HTTP/0.9, which names no host";
                return STEP_REFUSED;
        }
        in->mode = INSPECTOR_HTTP_HEAD;
        in->looked_at = 0;
        return STEP_ON;
}

static enum step read_head(struct inspector *in, struct span input, bool is_end, size_t *ret_len, const char **why)
{
        struct http1_request request;
        enum http1_fault fault;
        size_t len;

        fault = http1_head_end(input, HEAD_MAX, &in->looked_at, &len);
        if (fault == HTTP1_FAULT_INCOMPLETE && !is_end)
                return STEP_MORE;
        if (fault == HTTP1_FAULT_NONE)
                fault = http1_request_parse(span_of(input.data, len), &request);
        if (fault != HTTP1_FAULT_NONE) {
                *why = http1_fault_name(fault);
                return STEP_REFUSED;
        }
        if (in->is_strict && (request.is_connect || request.is_upgrade)) {
                *why = "a change to another protocol, whose hosts could not be seen";
                return STEP_REFUSED;
        }
        if (!in->is_allowed(in->userdata, NULL, request.host.text))
                return STEP_REFUSED;
        *ret_len = len;
        in->looked_at = 0;
        in->is_last = request.expects_continue;
        if (request.is_connect || request.is_upgrade) {
                in->mode = INSPECTOR_OPEN;
                return STEP_ON;
        }
        http1_body_begin(&in->body, request.framing, request.content_length);
        in->mode = INSPECTOR_HTTP_BODY;
        return STEP_ON;
}

static enum step read_body(struct inspector *in, struct span input, size_t *ret_len, const char **why)
{
        struct span content;
        size_t taken = 0;

        while (!in->body.is_done && taken < input.len) {
                enum http1_fault fault;
                size_t len;

                fault = http1_body_read(&in->body, span_of(input.data + taken, input.len - taken), &content, &len);
                if (fault != HTTP1_FAULT_NONE) {
                        *why = http1_fault_name(fault);
                        return STEP_REFUSED;
                }
                if (len == 0)
                        break;
                taken += len;
        }
        *ret_len = taken;
        if (!in->body.is_done)
                return taken > 0 ? STEP_ON : STEP_MORE;
        in->mode = in->is_last ? INSPECTOR_ENDED : INSPECTOR_HTTP_HEAD;
        return STEP_ON;
}

static enum step take_step(struct inspector *in, struct span input, bool is_end, size_t *ret_len, const char **why)
{
        switch (in->mode) {
        case INSPECTOR_FIRST:
                return read_first(in, input, is_end, ret_len, why);
        case INSPECTOR_HTTP_HEAD:
                return read_head(in, input, is_end, ret_len, why);
        case INSPECTOR_HTTP_BODY:
                return read_body(in, input, ret_len, why);
        case INSPECTOR_OPEN:
                *ret_len = input.len;
                return STEP_ON;
        default:
                *why = "a request after one whose body may be withheld";
                return STEP_REFUSED;
        }
}

int inspector_read(struct inspector *inspector, struct span input, bool is_end, size_t *ret_len, const char **ret_why)
{
        size_t through = 0;

        *ret_why = NULL;
        while (through < input.len) {
                size_t len = 0;
                enum step step =
                        take_step(inspector, span_of(input.data + through, input.len - through), is_end, &len, ret_why);

                if (step == STEP_REFUSED)
                        return -EPERM;
                if (step == STEP_MORE)
                        break;
                through += len;
        }
        *ret_len = through;
        return 0;
}
