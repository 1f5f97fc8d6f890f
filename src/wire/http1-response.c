/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http1-internal.h"

/* VERSION SP STATUS SP REASON; the reason may be empty, and its space missing, as in what many servers send. */
static enum http1_fault parse_status_line(struct span line, struct http1_response *response)
{
        enum http1_fault fault;
        struct span status;

        if (!span_sub(line, 9, 3, &status) || line.data[8] != ' ' || (line.len > 12 && line.data[12] != ' '))
                return HTTP1_FAULT_START_LINE;
        fault = http1_version_parse(span_of(line.data, 8), &response->minor_version);
        if (fault != HTTP1_FAULT_NONE)
                return fault;
        for (size_t i = 0; i < status.len; i++) {
                if (status.data[i] < '0' || status.data[i] > '9')
                        return HTTP1_FAULT_START_LINE;
                response->status = response->status * 10 + (unsigned)(status.data[i] - '0');
        }
        if (response->status < 100)
                return HTTP1_FAULT_START_LINE;
        if (line.len > 13)
                response->reason = span_of(line.data + 13, line.len - 13);
        for (size_t i = 0; i < response->reason.len; i++)
                if (!http1_is_value_octet(response->reason.data[i]))
                        return HTTP1_FAULT_START_LINE;
        return HTTP1_FAULT_NONE;
}

/* Whether there is no body, whatever the fields say (RFC 9112, 6.3). */
static bool has_no_body(unsigned status, struct span method)
{
        return status < 200 || status == 204 || status == 304 || span_equal(method, span_of_text("HEAD")) ||
               (status < 300 && span_equal(method, span_of_text("CONNECT")));
}

static enum http1_fault parse_head(struct span head, struct span method, struct http1_response *response)
{
        struct http1_fields fields;
        enum http1_fault fault;
        struct span line;
        size_t at = 0;

        if (!http1_line_next(head, &at, &line))
                return HTTP1_FAULT_START_LINE;
        fault = parse_status_line(line, response);
        if (fault == HTTP1_FAULT_NONE)
                fault = http1_fields_parse(head, at, &fields);
        if (fault == HTTP1_FAULT_NONE)
                fault = http1_fields_framing(&fields, response->minor_version, &response->framing,
                                             &response->content_length);
        if (fault != HTTP1_FAULT_NONE)
                return fault;
        if (has_no_body(response->status, method))
                response->framing = HTTP1_FRAMING_NONE;
        else if (response->framing == HTTP1_FRAMING_NONE)
                response->framing = HTTP1_FRAMING_CLOSE;
        response->keeps_alive = response->framing != HTTP1_FRAMING_CLOSE && !fields.has_close &&
                                (response->minor_version == 1 || fields.has_keep_alive);
        return HTTP1_FAULT_NONE;
}

enum http1_fault http1_response_parse(struct span head, struct span method, struct http1_response *ret)
{
        struct http1_response response = {0};
        enum http1_fault fault = parse_head(head, method, &response);

        *ret = fault == HTTP1_FAULT_NONE ? response : (struct http1_response){0};
        return fault;
}
