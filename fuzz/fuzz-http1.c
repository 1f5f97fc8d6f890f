/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/macro.h"
#include "fuzz/fuzz.h"
#include "wire/http1.h"

/* The end of a head is where it is, however the octets arrive. */
static enum http1_fault find_head(struct span input, size_t *ret_len)
{
        size_t at = 0, len = 0;
        enum http1_fault fault = HTTP1_FAULT_INCOMPLETE;

        for (size_t n = 1; n <= input.len && fault == HTTP1_FAULT_INCOMPLETE; n++)
                fault = http1_head_end(span_of(input.data, n), HTTP1_HEAD_LEN, &at, &len);
        at = 0;
        if (input.len > 0 && http1_head_end(input, HTTP1_HEAD_LEN, &at, ret_len) != fault)
                abort();
        if (fault == HTTP1_FAULT_NONE && (*ret_len != len || len > input.len))
                abort();
        return fault;
}

/* A body comes out the same in one piece and octet by octet. */
static uint64_t read_body(enum http1_framing framing, uint64_t length, struct span input, size_t step,
                          enum http1_fault *ret_fault, bool *ret_done, size_t *ret_end)
{
        uint64_t sum = 0;
        struct http1_body body;
        size_t at = 0;

        http1_body_begin(&body, framing, length);
        *ret_fault = HTTP1_FAULT_NONE;
        while (at < input.len && !body.is_done && *ret_fault == HTTP1_FAULT_NONE) {
                struct span part, content;
                size_t took;

                part = span_of(input.data + at, MIN(step, input.len - at));
                *ret_fault = http1_body_read(&body, part, &content, &took);
                if (*ret_fault == HTTP1_FAULT_NONE && (took == 0 || took > part.len || content.len > took))
                        abort();
                for (size_t i = 0; *ret_fault == HTTP1_FAULT_NONE && i < content.len; i++)
                        sum = sum * 31 + content.data[i] + 1;
                at += took;
        }
        *ret_done = body.is_done;
        *ret_end = body.is_done ? at : input.len;
        return sum;
}

static void check_body(enum http1_framing framing, uint64_t length, struct span input)
{
        enum http1_fault fault, other_fault;
        size_t end, other_end;
        bool done, other_done;
        uint64_t sum = read_body(framing, length, input, SIZE_MAX, &fault, &done, &end);

        if (read_body(framing, length, input, 1, &other_fault, &other_done, &other_end) != sum ||
            fault != other_fault || done != other_done || end != other_end)
                abort();
}

static void check_request(struct span head, struct span rest)
{
        struct http1_request request;
        struct span value;

        if (http1_request_parse(head, &request) != HTTP1_FAULT_NONE)
                return;
        if (request.host.text[0] == '\0' || request.port == 0 || request.framing == HTTP1_FRAMING_CLOSE ||
            request.method.len == 0 || request.target.len == 0)
                abort();
        if (!(request.is_connect && request.minor_version == 0) && http1_field(head, "host", &value) != 1)
                abort();
        if (request.framing == HTTP1_FRAMING_CHUNKED && http1_field(head, "content-length", &value) != 0)
                abort();
        check_body(request.framing, request.content_length, rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct span input = span_of(data, size), head;
        struct http1_response response;
        size_t len = 0;

        if (find_head(input, &len) != HTTP1_FAULT_NONE) {
                /* Whatever else it is given, it does not trust it. */
                struct http1_request request;

                if (http1_request_parse(input, &request) == HTTP1_FAULT_NONE)
                        abort();
                return 0;
        }
        head = span_of(data, len);
        check_request(head, span_of(data + len, size - len));
        if (http1_response_parse(head, span_of_text("GET"), &response) == HTTP1_FAULT_NONE)
                check_body(response.framing, response.content_length, span_of(data + len, size - len));
        return 0;
}
