/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/inspector.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "wire/tls-hello.h"

#define TLS_HANDSHAKE  22 /* first octet of a record, RFC 8446 5.1 */
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

/* "METHOD target HTTP/1.1" begins with a capital letter, and has a version at the end of its first line. Empty lines
 * before it are skipped by some servers. */
static bool may_be_http(struct span input)
{
        uint8_t c = input.data[0];

        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '\r' || c == '\n';
}

static bool has_version(struct span line)
{
        static const char mark[] = " HTTP/";

        return memmem(line.data, line.len, mark, sizeof(mark) - 1) != NULL;
}

static enum step read_first(struct inspector *in, struct span input, bool is_end, size_t *ret_len, const char **why)
{
        const uint8_t *end;

        if (input.data[0] == TLS_HANDSHAKE)
                return read_hello(in, input, is_end, ret_len, why);
        if (!may_be_http(input))
                return opaque(in, input, ret_len);
        end = memchr(input.data, '\n', input.len);
        if (!end && input.len < START_LINE_MAX && !is_end)
                return STEP_MORE;
        if (end != input.data && input.data[0] != '\r' &&
            !has_version(span_of(input.data, end ? (size_t)(end - input.data) : input.len)))
                return opaque(in, input, ret_len);
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
