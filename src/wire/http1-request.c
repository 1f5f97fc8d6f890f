/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
#include "base/number.h"
#include "wire/http1-internal.h"

#define DEFAULT_PORT 80

struct authority {
        struct host_name host;
        uint16_t port;
        bool has_port;
};

static enum http1_fault parse_port(struct span text, struct authority *ret)
{
        uint64_t port;

        if (number_parse_u64(text, &port) < 0 || port == 0 || port > UINT16_MAX)
                return HTTP1_FAULT_PORT;
        ret->port = (uint16_t)port;
        ret->has_port = true;
        return HTTP1_FAULT_NONE;
}

/* "host", "host:port", "[v6]:port" */
static enum http1_fault parse_authority(struct span text, struct authority *ret)
{
        const uint8_t *colon, *bracket;
        struct span host = text;
        enum http1_fault fault;

        *ret = (struct authority){.port = DEFAULT_PORT};
        if (text.len == 0)
                return HTTP1_FAULT_HOST;
        if (memchr(text.data, '@', text.len))
                return HTTP1_FAULT_USERINFO;
        bracket = text.data[0] == '[' ? memchr(text.data, ']', text.len) : NULL;
        if (bracket)
                host.len = (size_t)(bracket - text.data) + 1;
        else if ((colon = memchr(text.data, ':', text.len)))
                host.len = (size_t)(colon - text.data);
        if (host_name_parse(host, &ret->host) < 0)
                return HTTP1_FAULT_HOST;
        if (!ret->host.is_plain)
                return HTTP1_FAULT_HOST_ADDRESS;
        if (host.len == text.len)
                return HTTP1_FAULT_NONE;
        if (text.data[host.len] != ':')
                return HTTP1_FAULT_HOST;
        fault = parse_port(span_of(text.data + host.len + 1, text.len - host.len - 1), ret);
        return fault;
}

static enum http1_fault parse_absolute(struct span target, struct authority *ret)
{
        const uint8_t *colon = memchr(target.data, ':', target.len);
        size_t scheme = colon ? (size_t)(colon - target.data) : 0, at = scheme + 3, end = at;

        if (!colon || target.len < at || memcmp(colon, "://", 3) != 0)
                return HTTP1_FAULT_TARGET;
        if (!http1_equal_nocase(span_of(target.data, scheme), "http"))
                return HTTP1_FAULT_SCHEME;
        while (end < target.len && target.data[end] != '/' && target.data[end] != '?')
                end++;
        return parse_authority(span_of(target.data + at, end - at), ret);
}

/* @ret_authority: untouched with the forms that have none */
static enum http1_fault parse_target(struct span target, struct http1_request *request, struct authority *ret_authority)
{
        enum http1_fault fault;

        for (size_t i = 0; i < target.len; i++)
                if (target.data[i] <= ' ' || target.data[i] >= 0x7f || target.data[i] == '#')
                        return HTTP1_FAULT_TARGET;
        request->is_connect = span_equal(request->method, span_of_text("CONNECT"));
        if (request->is_connect) {
                request->form = HTTP1_FORM_AUTHORITY;
                fault = parse_authority(target, ret_authority);
                return fault == HTTP1_FAULT_NONE && !ret_authority->has_port ? HTTP1_FAULT_PORT : fault;
        }
        if (target.data[0] == '/') {
                request->form = HTTP1_FORM_ORIGIN;
                return HTTP1_FAULT_NONE;
        }
        if (span_equal(target, span_of_text("*"))) {
                request->form = HTTP1_FORM_ASTERISK;
                return span_equal(request->method, span_of_text("OPTIONS")) ? HTTP1_FAULT_NONE : HTTP1_FAULT_TARGET;
        }
        request->form = HTTP1_FORM_ABSOLUTE;
        return parse_absolute(target, ret_authority);
}

/* METHOD SP TARGET SP VERSION */
static enum http1_fault parse_request_line(struct span line, struct http1_request *request)
{
        const uint8_t *end = line.data + line.len, *first = memchr(line.data, ' ', line.len), *second;

        second = first ? memchr(first + 1, ' ', (size_t)(end - first - 1)) : NULL;
        if (!second || second == first + 1 || memchr(second + 1, ' ', (size_t)(end - second - 1)))
                return HTTP1_FAULT_START_LINE;
        request->method = span_of(line.data, (size_t)(first - line.data));
        request->target = span_of(first + 1, (size_t)(second - first - 1));
        if (!http1_is_token(request->method))
                return HTTP1_FAULT_START_LINE;
        return http1_version_parse(span_of(second + 1, (size_t)(end - second - 1)), &request->minor_version);
}

/* The one host of a request. CONNECT of HTTP/1.0 may come without a Host field, as old clients send it: the target
 * names the host. */
static enum http1_fault decide_host(const struct http1_fields *fields, const struct authority *target,
                                    struct http1_request *request)
{
        bool has_target = request->form == HTTP1_FORM_ABSOLUTE || request->form == HTTP1_FORM_AUTHORITY;
        struct authority host = *target;
        enum http1_fault fault;

        if (fields->n_hosts > 1)
                return HTTP1_FAULT_HOST_TWICE;
        if (fields->n_hosts == 0 && !(request->is_connect && request->minor_version == 0))
                return HTTP1_FAULT_HOST_MISSING;
        if (fields->n_hosts == 1) {
                fault = parse_authority(fields->host, &host);
                if (fault != HTTP1_FAULT_NONE)
                        return fault;
        }
        /* After CONNECT many clients leave the port out of Host. */
        if (request->is_connect && !host.has_port) {
                host.has_port = true;
                host.port = target->port;
        }
        if (has_target && (!host_name_equal(&host.host, &target->host) || host.port != target->port))
                return HTTP1_FAULT_HOST_DIFFERS;
        request->host = host.host;
        request->port = host.port;
        request->has_port = host.has_port;
        return HTTP1_FAULT_NONE;
}

static enum http1_fault parse_head(struct span head, struct http1_request *request)
{
        struct authority target = {0};
        struct http1_fields fields;
        enum http1_fault fault;
        struct span line;
        size_t at = 0;
        bool has_body;

        if (!http1_line_next(head, &at, &line))
                return HTTP1_FAULT_START_LINE;
        fault = parse_request_line(line, request);
        if (fault == HTTP1_FAULT_NONE)
                fault = parse_target(request->target, request, &target);
        if (fault == HTTP1_FAULT_NONE)
                fault = http1_fields_parse(head, at, &fields);
        if (fault == HTTP1_FAULT_NONE)
                fault = decide_host(&fields, &target, request);
        if (fault == HTTP1_FAULT_NONE)
                fault = http1_fields_framing(&fields, request->minor_version, &request->framing,
                                             &request->content_length);
        if (fault != HTTP1_FAULT_NONE)
                return fault;
        if (request->is_connect && request->framing != HTTP1_FRAMING_NONE)
                return HTTP1_FAULT_FRAMING; /* is it a body, or the first octets in the tunnel? */
        has_body = request->framing == HTTP1_FRAMING_CHUNKED || request->content_length > 0;
        if (fields.has_upgrade_h2 && (fields.has_upgrade || has_body))
                return HTTP1_FAULT_UPGRADE; /* HTTP/2 would begin in what is a body here */
        if (fields.has_expect_other)
                return HTTP1_FAULT_EXPECT;
        request->is_upgrade = fields.has_upgrade;
        request->offers_h2 = fields.has_upgrade_h2;
        request->expects_continue = fields.has_expect;
        request->keeps_alive = !fields.has_close && (request->minor_version == 1 || fields.has_keep_alive);
        return HTTP1_FAULT_NONE;
}

enum http1_fault http1_request_parse(struct span head, struct http1_request *ret)
{
        struct http1_request request = {0};
        enum http1_fault fault = parse_head(head, &request);

        *ret = fault == HTTP1_FAULT_NONE ? request : (struct http1_request){0};
        return fault;
}
