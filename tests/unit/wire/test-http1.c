/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http1.h"

#include "tests/test.h"

/* Reads a head as it arrives: its end first. */
static enum http1_fault parse_bytes(const void *data, size_t len, struct http1_request *ret)
{
        struct span input = span_of(data, len);
        size_t at = 0, head_len = 0;
        enum http1_fault fault = http1_head_end(input, HTTP1_HEAD_LEN, &at, &head_len);

        return fault == HTTP1_FAULT_NONE ? http1_request_parse(span_of(data, head_len), ret) : fault;
}

static enum http1_fault parse(const char *text, struct http1_request *ret)
{
        return parse_bytes(text, strlen(text), ret);
}

#define assert_fault(got, expected)                                                                                    \
        do {                                                                                                           \
                enum http1_fault _got = (got);                                                                         \
                if (_got != (expected))                                                                                \
                        fail_msg("%s: %s", #got, http1_fault_name(_got));                                              \
        } while (0)

#define assert_span(span, text) assert_true(span_equal(span, span_of_text(text)))

/* RFC 9112, 2.1: the example of a request. */
static void test_rfc_example(void **state)
{
        static const char text[] = "GET /hello.txt HTTP/1.1\r\n"
                                   "User-Agent: curl/7.64.1\r\n"
                                   "Host: www.example.com\r\n"
                                   "Accept-Language: en, mi\r\n"
                                   "\r\n";
        struct http1_request request;
        struct span value;

        assert_fault(parse(text, &request), HTTP1_FAULT_NONE);
        assert_span(request.method, "GET");
        assert_span(request.target, "/hello.txt");
        assert_int_equal(request.form, HTTP1_FORM_ORIGIN);
        assert_int_equal(request.minor_version, 1);
        assert_string_equal(request.host.text, "www.example.com");
        assert_int_equal(request.port, 80);
        assert_false(request.has_port);
        assert_int_equal(request.framing, HTTP1_FRAMING_NONE);
        assert_true(request.keeps_alive);
        assert_int_equal(http1_field(span_of_text(text), "accept-language", &value), 1);
        assert_span(value, "en, mi");
        assert_int_equal(http1_field(span_of_text(text), "accept", &value), 0);
}

static void test_forms(void **state)
{
        static const struct {
                const char *text;
                enum http1_form form;
                const char *host;
                uint16_t port;
        } rows[] = {
                /* RFC 9112, 3.2.1 to 3.2.4 */
                {"GET /where?q=now HTTP/1.1\r\nHost: www.example.org\r\n\r\n", HTTP1_FORM_ORIGIN, "www.example.org",
                 80},
                {"GET http://www.example.org/pub/WWW/TheProject.html HTTP/1.1\r\nHost: www.example.org\r\n\r\n",
                 HTTP1_FORM_ABSOLUTE, "www.example.org", 80},
                {"CONNECT www.example.com:80 HTTP/1.1\r\nHost: www.example.com\r\n\r\n", HTTP1_FORM_AUTHORITY,
                 "www.example.com", 80},
                {"OPTIONS * HTTP/1.1\r\nHost: www.example.org:8001\r\n\r\n", HTTP1_FORM_ASTERISK, "www.example.org",
                 8001},
                /* what curl 7.88 sends through a proxy, and Python's http.client to one */
                {"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\nUser-Agent: curl/7.88.1\r\n"
                 "Proxy-Connection: Keep-Alive\r\n\r\n",
                 HTTP1_FORM_AUTHORITY, "example.com", 443},
                {"CONNECT example.com:443 HTTP/1.0\r\n\r\n", HTTP1_FORM_AUTHORITY, "example.com", 443},
                {"GET HTTP://Example.COM:8080?q HTTP/1.1\r\nhOST:\texample.com.:8080 \r\n\r\n", HTTP1_FORM_ABSOLUTE,
                 "example.com", 8080},
                {"GET http://example.com HTTP/1.1\r\nHost: example.com:80\r\n\r\n", HTTP1_FORM_ABSOLUTE, "example.com",
                 80},
                {"GET / HTTP/1.1\r\nHost: [2001:DB8::1]:8080\r\n\r\n", HTTP1_FORM_ORIGIN, "2001:db8::1", 8080},
                {"GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n", HTTP1_FORM_ORIGIN, "192.0.2.1", 80},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct http1_request request;

                assert_fault(parse(rows[i].text, &request), HTTP1_FAULT_NONE);
                assert_int_equal(request.form, rows[i].form);
                assert_string_equal(request.host.text, rows[i].host);
                assert_int_equal(request.port, rows[i].port);
                assert_int_equal(request.is_connect, rows[i].form == HTTP1_FORM_AUTHORITY);
        }
}

#define HOST "Host: example.com\r\n"
#define GET  "GET / HTTP/1.1\r\n"

static const struct {
        const char *text;
        enum http1_fault fault;
} refused[] = {
        /* the host: none, two, or two that differ */
        {GET "\r\n", HTTP1_FAULT_HOST_MISSING},
        {"GET / HTTP/1.0\r\n\r\n", HTTP1_FAULT_HOST_MISSING},
        {"GET http://example.com/ HTTP/1.1\r\n\r\n", HTTP1_FAULT_HOST_MISSING},
        {"CONNECT example.com:443 HTTP/1.1\r\n\r\n", HTTP1_FAULT_HOST_MISSING},
        {GET HOST "Host: evil.example\r\n\r\n", HTTP1_FAULT_HOST_TWICE},
        {GET HOST "hOsT: example.com\r\n\r\n", HTTP1_FAULT_HOST_TWICE},
        {GET "Host: example.com, evil.example\r\n\r\n", HTTP1_FAULT_HOST},
        {"GET http://evil.example/ HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_HOST_DIFFERS},
        {"GET http://example.com:81/ HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_HOST_DIFFERS},
        {"GET http://example.com/ HTTP/1.1\r\nHost: example.com:81\r\n\r\n", HTTP1_FAULT_HOST_DIFFERS},
        {"CONNECT evil.example:443 HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_HOST_DIFFERS},
        {"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:80\r\n\r\n", HTTP1_FAULT_HOST_DIFFERS},
        /* how it is written */
        {GET "Host:\r\n\r\n", HTTP1_FAULT_HOST},
        {GET "Host: example.com..\r\n\r\n", HTTP1_FAULT_HOST},
        {GET "Host: ex%61mple.com\r\n\r\n", HTTP1_FAULT_HOST},
        {GET "Host: example.com/\r\n\r\n", HTTP1_FAULT_HOST},
        {GET "Host: example.com\\.evil.example\r\n\r\n", HTTP1_FAULT_HOST},
        {GET "Host: exam ple.com\r\n\r\n", HTTP1_FAULT_HOST},
        {GET "Host: http://example.com\r\n\r\n", HTTP1_FAULT_PORT},
        {GET "Host: user@example.com\r\n\r\n", HTTP1_FAULT_USERINFO},
        {"GET http://user:pw@example.com/ HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_USERINFO},
        {"GET http://evil.example#@example.com/ HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_TARGET},
        {"GET http://evil.example\\@example.com/ HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_USERINFO},
        {GET "Host: 2130706433\r\n\r\n", HTTP1_FAULT_HOST_ADDRESS},
        {GET "Host: 0x7f000001\r\n\r\n", HTTP1_FAULT_HOST_ADDRESS},
        {GET "Host: 0177.0.0.1\r\n\r\n", HTTP1_FAULT_HOST_ADDRESS},
        {GET "Host: 127.1\r\n\r\n", HTTP1_FAULT_HOST_ADDRESS},
        {GET "Host: [::ffff:127.0.0.1]\r\n\r\n", HTTP1_FAULT_HOST_ADDRESS},
        {GET "Host: 1.2.3.4.5\r\n\r\n", HTTP1_FAULT_HOST},
        {GET "Host: ::1\r\n\r\n", HTTP1_FAULT_HOST},
        {GET "Host: [::1\r\n\r\n", HTTP1_FAULT_HOST},
        {GET "Host: [::1]x\r\n\r\n", HTTP1_FAULT_HOST},
        {GET "Host: [fe80::1%25eth0]\r\n\r\n", HTTP1_FAULT_HOST},
        {GET "Host: [fe80::1%eth0]\r\n\r\n", HTTP1_FAULT_HOST},
        {GET "Host: example.com:\r\n\r\n", HTTP1_FAULT_PORT},
        {GET "Host: example.com:0\r\n\r\n", HTTP1_FAULT_PORT},
        {GET "Host: example.com:65536\r\n\r\n", HTTP1_FAULT_PORT},
        {GET "Host: example.com:080\r\n\r\n", HTTP1_FAULT_PORT},
        {GET "Host: example.com:+80\r\n\r\n", HTTP1_FAULT_PORT},
        {GET "Host: example.com:80:80\r\n\r\n", HTTP1_FAULT_PORT},
        {"CONNECT example.com HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_PORT},
        {"CONNECT http://example.com/ HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_PORT},
        /* the target */
        {"GET https://example.com/ HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_SCHEME},
        {"GET ftp://example.com/ HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_SCHEME},
        {"GET example.com/ HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_TARGET},
        {"GET http:/example.com/ HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_TARGET},
        {"GET * HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_TARGET},
        {"GET /\xc3\xbc HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_TARGET},
        {"GET http:/// HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_HOST},
        /* the request line */
        {"\r\n" GET HOST "\r\n", HTTP1_FAULT_START_LINE},
        {"GET  / HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_START_LINE},
        {"GET / HTTP/1.1 \r\n" HOST "\r\n", HTTP1_FAULT_START_LINE},
        {" GET / HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_START_LINE},
        {"GET\t/ HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_START_LINE},
        {"GET /\r\n" HOST "\r\n", HTTP1_FAULT_START_LINE},
        {"GET / http/1.1\r\n" HOST "\r\n", HTTP1_FAULT_START_LINE},
        {"G(T / HTTP/1.1\r\n" HOST "\r\n", HTTP1_FAULT_START_LINE},
        {"PRI * HTTP/2.0\r\n\r\n", HTTP1_FAULT_VERSION},
        {"GET / HTTP/1.2\r\n" HOST "\r\n", HTTP1_FAULT_VERSION},
        {"GET / HTTP/1.10\r\n" HOST "\r\n", HTTP1_FAULT_VERSION},
        /* lines */
        {"GET / HTTP/1.1\nHost: example.com\n\n", HTTP1_FAULT_LINE_END},
        {GET HOST "X: a\nHost: evil.example\r\n\r\n", HTTP1_FAULT_LINE_END},
        {GET HOST "X: a\rHost: evil.example\r\n\r\n", HTTP1_FAULT_LINE_END},
        {GET HOST "X: a\r\r\n\r\n", HTTP1_FAULT_LINE_END},
        {GET HOST "X: a\r\n b\r\n\r\n", HTTP1_FAULT_FOLD},
        {GET " Host: evil.example\r\n" HOST "\r\n", HTTP1_FAULT_FOLD},
        {GET HOST "\t\r\n\r\n", HTTP1_FAULT_FOLD},
        {GET "Host : example.com\r\n\r\n", HTTP1_FAULT_FIELD},
        {GET HOST ": x\r\n\r\n", HTTP1_FAULT_FIELD},
        {GET HOST "X\r\n\r\n", HTTP1_FAULT_FIELD},
        {GET HOST "X: \x01\r\n\r\n", HTTP1_FAULT_FIELD},
        {GET HOST "X: \x7f\r\n\r\n", HTTP1_FAULT_FIELD},
        {GET HOST "X\xff: a\r\n\r\n", HTTP1_FAULT_FIELD},
        /* where the next request begins */
        {GET HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP1_FAULT_FRAMING},
        {GET HOST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", HTTP1_FAULT_FRAMING},
        {GET HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", HTTP1_FAULT_LENGTH},
        {GET HOST "Content-Length: 5\r\ncontent-length: 6\r\n\r\n", HTTP1_FAULT_LENGTH},
        {GET HOST "Content-Length: 5, 5\r\n\r\n", HTTP1_FAULT_LENGTH},
        {GET HOST "Content-Length: +5\r\n\r\n", HTTP1_FAULT_LENGTH},
        {GET HOST "Content-Length: -1\r\n\r\n", HTTP1_FAULT_LENGTH},
        {GET HOST "Content-Length: 0x5\r\n\r\n", HTTP1_FAULT_LENGTH},
        {GET HOST "Content-Length: 5 \t 6\r\n\r\n", HTTP1_FAULT_LENGTH},
        {GET HOST "Content-Length:\r\n\r\n", HTTP1_FAULT_LENGTH},
        {GET HOST "Content-Length: 9223372036854775808\r\n\r\n", HTTP1_FAULT_LENGTH},
        {GET HOST "Content-Length: 18446744073709551621\r\n\r\n", HTTP1_FAULT_LENGTH},
        {GET HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", HTTP1_FAULT_ENCODING},
        {GET HOST "Transfer-Encoding: chunked, identity\r\n\r\n", HTTP1_FAULT_ENCODING},
        {GET HOST "Transfer-Encoding: xchunked\r\n\r\n", HTTP1_FAULT_ENCODING},
        {GET HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP1_FAULT_ENCODING},
        {GET HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", HTTP1_FAULT_ENCODING},
        {GET HOST "Transfer-Encoding:\r\n\r\n", HTTP1_FAULT_ENCODING},
        {"GET / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", HTTP1_FAULT_ENCODING},
        {GET HOST "Transfer-Encoding : chunked\r\n\r\n", HTTP1_FAULT_FIELD},
        {"CONNECT example.com:80 HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n", HTTP1_FAULT_FRAMING},
        /* what would carry requests that are not seen */
        {GET HOST "Upgrade: websocket, H2C\r\n\r\n", HTTP1_FAULT_UPGRADE},
        {GET HOST "Upgrade: h2c\r\nUpgrade: websocket\r\n\r\n", HTTP1_FAULT_UPGRADE},
        {GET HOST "Upgrade: HTTP/2.0\r\nContent-Length: 24\r\n\r\n", HTTP1_FAULT_UPGRADE},
        {GET HOST "HTTP2-Settings: AAMAAABkAAQ\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP1_FAULT_UPGRADE},
        {GET HOST "Expect: 200-ok\r\n\r\n", HTTP1_FAULT_EXPECT},
        {GET HOST "Expect: 100-continue\r\nExpect: x\r\n\r\n", HTTP1_FAULT_EXPECT},
};

static void test_refused(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                struct http1_request request;
                enum http1_fault fault = parse(refused[i].text, &request);

                if (fault != refused[i].fault)
                        fail_msg("%s: %s", refused[i].text, http1_fault_name(fault));
                if (fault != HTTP1_FAULT_LINE_END)
                        assert_int_equal(request.method.len, 0);
        }
}

static void test_nul(void **state)
{
        static const char in_field[] = GET HOST "X: a\0b\r\n\r\n", in_name[] = GET HOST "X\0: a\r\n\r\n",
                          in_host[] = GET "Host: example.com\0.evil\r\n\r\n",
                          in_target[] = "GET /\0 HTTP/1.1\r\n" HOST "\r\n";
        struct http1_request request;

        assert_fault(parse_bytes(in_field, sizeof(in_field) - 1, &request), HTTP1_FAULT_FIELD);
        assert_fault(parse_bytes(in_name, sizeof(in_name) - 1, &request), HTTP1_FAULT_FIELD);
        assert_fault(parse_bytes(in_host, sizeof(in_host) - 1, &request), HTTP1_FAULT_FIELD);
        assert_fault(parse_bytes(in_target, sizeof(in_target) - 1, &request), HTTP1_FAULT_TARGET);
}

static void test_framing(void **state)
{
        struct http1_request request;

        assert_fault(parse("POST / HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775807\r\n\r\n", &request),
                     HTTP1_FAULT_NONE);
        assert_int_equal(request.framing, HTTP1_FRAMING_LENGTH);
        assert_int_equal(request.content_length, INT64_MAX);
        assert_fault(parse("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n", &request),
                     HTTP1_FAULT_NONE);
        assert_int_equal(request.framing, HTTP1_FRAMING_CHUNKED);
        assert_fault(parse("POST / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n", &request),
                     HTTP1_FAULT_NONE);
        assert_true(request.expects_continue);
        assert_fault(parse(GET HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", &request), HTTP1_FAULT_NONE);
        assert_true(request.is_upgrade && !request.offers_h2);
        /* RFC 7540, 3.2 */
        assert_fault(parse(GET HOST "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                                    "HTTP2-Settings: AAMAAABkAAQ\r\n\r\n",
                           &request),
                     HTTP1_FAULT_NONE);
        assert_true(request.offers_h2 && !request.is_upgrade);
        assert_fault(parse(GET HOST "Connection: x, Close\r\n\r\n", &request), HTTP1_FAULT_NONE);
        assert_false(request.keeps_alive);
        assert_fault(parse("GET / HTTP/1.0\r\n" HOST "\r\n", &request), HTTP1_FAULT_NONE);
        assert_false(request.keeps_alive);
        assert_fault(parse("GET / HTTP/1.0\r\n" HOST "Connection: keep-alive\r\n\r\n", &request), HTTP1_FAULT_NONE);
        assert_true(request.keeps_alive);
}

/* The head is found where it ends however it arrives, and a long one is given up at the limit. */
static void test_head_end(void **state)
{
        static const char text[] = GET HOST "\r\nGET";
        size_t whole = sizeof(text) - 1 - 3, at = 0, head_len = 0;
        _cleanup_free_ char *large = malloc(HTTP1_HEAD_LEN_MAX + 1);

        for (size_t len = 0; len < whole; len++) {
                assert_fault(http1_head_end(span_of(text, len), HTTP1_HEAD_LEN, &at, &head_len),
                             HTTP1_FAULT_INCOMPLETE);
                assert_int_equal(at, len);
        }
        assert_fault(http1_head_end(span_of_text(text), HTTP1_HEAD_LEN, &at, &head_len), HTTP1_FAULT_NONE);
        assert_int_equal(head_len, whole);

        at = 0;
        assert_fault(http1_head_end(span_of_text(text), whole, &at, &head_len), HTTP1_FAULT_NONE);
        at = 0;
        assert_fault(http1_head_end(span_of_text(text), whole - 1, &at, &head_len), HTTP1_FAULT_HEAD_LENGTH);
        at = 0;
        assert_fault(http1_head_end(span_of(text, whole - 1), whole - 1, &at, &head_len), HTTP1_FAULT_HEAD_LENGTH);

        assert_non_null(large);
        memset(large, 'a', HTTP1_HEAD_LEN_MAX + 1);
        at = 0;
        assert_fault(http1_head_end(span_of(large, HTTP1_HEAD_LEN_MAX - 1), SIZE_MAX, &at, &head_len),
                     HTTP1_FAULT_INCOMPLETE);
        assert_fault(http1_head_end(span_of(large, HTTP1_HEAD_LEN_MAX + 1), SIZE_MAX, &at, &head_len),
                     HTTP1_FAULT_HEAD_LENGTH);
}

/* A head of a mebibyte is read once over. */
static void test_large_head(void **state)
{
        static const char start[] = GET HOST;
        size_t len = 0, at = 0, head_len;
        _cleanup_free_ char *text = malloc(HTTP1_HEAD_LEN_MAX);
        struct http1_request request;

        assert_non_null(text);
        len = sizeof(start) - 1;
        memcpy(text, start, len);
        while (len + 6 + 2 <= HTTP1_HEAD_LEN_MAX) {
                memcpy(text + len, "X: a\r\n", 6);
                len += 6;
        }
        memcpy(text + len, "\r\n", 2);
        len += 2;
        assert_fault(http1_head_end(span_of(text, len), HTTP1_HEAD_LEN_MAX, &at, &head_len), HTTP1_FAULT_NONE);
        assert_int_equal(head_len, len);
        assert_fault(http1_request_parse(span_of(text, len), &request), HTTP1_FAULT_NONE);
        assert_string_equal(request.host.text, "example.com");
}

/* A head that nobody has looked for the end of is not trusted. */
static void test_parse_alone(void **state)
{
        static const char *const rows[] = {"",
                                           "\r\n",
                                           GET HOST,
                                           GET HOST "\r",
                                           GET HOST "\r\nx",
                                           "GET / HTTP/1.1\r" HOST "\r\n",
                                           GET "Host: example.com\n\r\n"};
        struct http1_request request;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                assert_int_not_equal(http1_request_parse(span_of_text(rows[i]), &request), HTTP1_FAULT_NONE);
}

static enum http1_fault parse_response(const char *text, const char *method, struct http1_response *ret)
{
        return http1_response_parse(span_of_text(text), span_of_text(method), ret);
}

static void test_response(void **state)
{
        static const struct {
                const char *text, *method;
                enum http1_framing framing;
                bool keeps_alive;
        } rows[] = {
                /* RFC 9112, 6.3 */
                {"HTTP/1.1 200 OK\r\nContent-Length: 51\r\n\r\n", "GET", HTTP1_FRAMING_LENGTH, true},
                {"HTTP/1.1 200 OK\r\nContent-Length: 51\r\n\r\n", "HEAD", HTTP1_FRAMING_NONE, true},
                {"HTTP/1.1 304 Not Modified\r\nContent-Length: 51\r\n\r\n", "GET", HTTP1_FRAMING_NONE, true},
                {"HTTP/1.1 204 No Content\r\n\r\n", "GET", HTTP1_FRAMING_NONE, true},
                {"HTTP/1.1 100 Continue\r\n\r\n", "POST", HTTP1_FRAMING_NONE, true},
                {"HTTP/1.1 200 Connection established\r\n\r\n", "CONNECT", HTTP1_FRAMING_NONE, true},
                {"HTTP/1.1 403 No\r\nContent-Length: 1\r\n\r\n", "CONNECT", HTTP1_FRAMING_LENGTH, true},
                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", HTTP1_FRAMING_CHUNKED, true},
                {"HTTP/1.1 200 OK\r\n\r\n", "GET", HTTP1_FRAMING_CLOSE, false},
                {"HTTP/1.1 200\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "GET", HTTP1_FRAMING_LENGTH, false},
                {"HTTP/1.0 200 \r\nContent-Length: 0\r\n\r\n", "GET", HTTP1_FRAMING_LENGTH, false},
        };
        static const struct {
                const char *text;
                enum http1_fault fault;
        } faults[] = {
                {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP1_FAULT_FRAMING},
                {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", HTTP1_FAULT_LENGTH},
                {"HTTP/1.1 20 OK\r\n\r\n", HTTP1_FAULT_START_LINE},
                {"HTTP/1.1 2000 OK\r\n\r\n", HTTP1_FAULT_START_LINE},
                {"HTTP/1.1 099 OK\r\n\r\n", HTTP1_FAULT_START_LINE},
                {"HTTP/1.1  200 OK\r\n\r\n", HTTP1_FAULT_START_LINE},
                {"HTTP/1.1 2x0 OK\r\n\r\n", HTTP1_FAULT_START_LINE},
                {"HTTP/2.0 200 OK\r\n\r\n", HTTP1_FAULT_VERSION},
                {"ICY 200 OK\r\n\r\n", HTTP1_FAULT_START_LINE},
                {"HTTP/1.1 200 O\x01K\r\n\r\n", HTTP1_FAULT_START_LINE},
                {"HTTP/1.1 200 OK\r\n folded\r\n\r\n", HTTP1_FAULT_FOLD},
        };
        struct http1_response response;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                assert_fault(parse_response(rows[i].text, rows[i].method, &response), HTTP1_FAULT_NONE);
                assert_int_equal(response.framing, rows[i].framing);
                assert_int_equal(response.keeps_alive, rows[i].keeps_alive);
        }
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
                assert_fault(parse_response(faults[i].text, "GET", &response), faults[i].fault);
        assert_fault(parse_response("HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n\r\n", "GET", &response),
                     HTTP1_FAULT_NONE);
        assert_int_equal(response.status, 404);
        assert_span(response.reason, "Not Found");
        assert_int_equal(response.content_length, 7);
}

/* Reads @input in pieces of @step octets. Return: the fault; what is content goes into @content, what is behind the
 * body is counted in @ret_rest. */
static enum http1_fault read_body(enum http1_framing framing, uint64_t length, const char *input, size_t step,
                                  char content[static 256], size_t *ret_rest)
{
        size_t len = strlen(input), at = 0, n = 0;
        struct http1_body body;

        http1_body_begin(&body, framing, length);
        while (at < len && !body.is_done) {
                enum http1_fault fault;
                struct span part;
                size_t took;

                fault = http1_body_read(&body, span_of(input + at, MIN(step, len - at)), &part, &took);
                if (fault != HTTP1_FAULT_NONE)
                        return fault;
                assert_true(took > 0);
                if (part.len > 0)
                        memcpy(content + n, part.data, part.len);
                n += part.len;
                at += took;
        }
        content[n] = '\0';
        *ret_rest = len - at;
        return body.is_done ? HTTP1_FAULT_NONE : HTTP1_FAULT_INCOMPLETE;
}

static void test_body(void **state)
{
        static const struct {
                enum http1_framing framing;
                uint64_t length;
                const char *input, *content;
                size_t rest;
                enum http1_fault fault;
        } rows[] = {
                {HTTP1_FRAMING_NONE, 0, "GET", "", 3, HTTP1_FAULT_NONE},
                {HTTP1_FRAMING_LENGTH, 0, "GET", "", 3, HTTP1_FAULT_NONE},
                {HTTP1_FRAMING_LENGTH, 5, "helloGET", "hello", 3, HTTP1_FAULT_NONE},
                {HTTP1_FRAMING_LENGTH, 5, "hell", "hell", 0, HTTP1_FAULT_INCOMPLETE},
                {HTTP1_FRAMING_CLOSE, 0, "hello", "hello", 0, HTTP1_FAULT_INCOMPLETE},
                {HTTP1_FRAMING_CHUNKED, 0, "0\r\n\r\nGET", "", 3, HTTP1_FAULT_NONE},
                /* the chunks of the well-known example */
                {HTTP1_FRAMING_CHUNKED, 0, "4\r\nWiki\r\n6\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\n\r\n",
                 "Wikipedia in \r\n\r\nchunks.", 0, HTTP1_FAULT_NONE},
                {HTTP1_FRAMING_CHUNKED, 0, "00a;x=\"y\"\r\n0123456789\r\n000\r\nETag: x\r\nB:\r\n\r\nrest",
                 "0123456789", 4, HTTP1_FAULT_NONE},
                {HTTP1_FRAMING_CHUNKED, 0, "3\r\nab", "ab", 0, HTTP1_FAULT_INCOMPLETE},
        };
        char content[256];
        size_t rest;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                for (size_t step = 1; step < 64; step++) {
                        assert_fault(read_body(rows[i].framing, rows[i].length, rows[i].input, step, content, &rest),
                                     rows[i].fault);
                        assert_string_equal(content, rows[i].content);
                        assert_int_equal(rest, rows[i].rest);
                }
}

static void test_body_refused(void **state)
{
        static const struct {
                const char *input;
                enum http1_fault fault;
        } rows[] = {
                {"\r\n", HTTP1_FAULT_CHUNK},
                {"x\r\n", HTTP1_FAULT_CHUNK},
                {"-1\r\n", HTTP1_FAULT_CHUNK},
                {"0x1\r\na\r\n", HTTP1_FAULT_CHUNK},
                {" 1\r\na\r\n", HTTP1_FAULT_CHUNK},
                {"1 \r\na\r\n", HTTP1_FAULT_CHUNK},
                {"1000000000000000\r\n", HTTP1_FAULT_CHUNK}, /* 2^60 */
                {"1\na\r\n", HTTP1_FAULT_CHUNK},
                {"1;a\nb\r\n", HTTP1_FAULT_CHUNK}, /* an extension that another reader would end at the LF */
                {"1\r\rab", HTTP1_FAULT_LINE_END},
                {"1\r\nab\r\n", HTTP1_FAULT_CHUNK},
                {"1\r\na\n0\r\n\r\n", HTTP1_FAULT_CHUNK},
                {"1\r\na\rx", HTTP1_FAULT_LINE_END},
                {"0\r\n fold\r\n\r\n", HTTP1_FAULT_TRAILER},
                {"0\r\nno colon\r\n\r\n", HTTP1_FAULT_TRAILER},
                {"0\r\nA: b\n\r\n", HTTP1_FAULT_TRAILER},
                {"0\r\n\rx", HTTP1_FAULT_LINE_END},
        };
        char content[256], large[10000];
        size_t rest;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                for (size_t step = 1; step < 32; step += 30)
                        assert_fault(read_body(HTTP1_FRAMING_CHUNKED, 0, rows[i].input, step, content, &rest),
                                     rows[i].fault);

        memset(large, 'a', sizeof(large) - 1);
        large[sizeof(large) - 1] = '\0';
        memcpy(large, "1;", 2);
        assert_fault(read_body(HTTP1_FRAMING_CHUNKED, 0, large, 100, content, &rest), HTTP1_FAULT_CHUNK);
        memcpy(large, "0\r\n", 3);
        assert_fault(read_body(HTTP1_FRAMING_CHUNKED, 0, large, 100, content, &rest), HTTP1_FAULT_TRAILER);
}

/* What passes unseen is counted as what is read. */
static void test_body_pass(void **state)
{
        struct http1_body body;
        struct span part;
        size_t took;

        http1_body_begin(&body, HTTP1_FRAMING_CHUNKED, 0);
        assert_int_equal(http1_body_run(&body), 0);
        assert_fault(http1_body_read(&body, span_of_text("10\r\n0123"), &part, &took), HTTP1_FAULT_NONE);
        assert_int_equal(took, 4);
        assert_int_equal(part.len, 0);
        assert_int_equal(http1_body_run(&body), 16);
        http1_body_pass(&body, 10);
        assert_int_equal(http1_body_run(&body), 6);
        http1_body_pass(&body, 6);
        assert_int_equal(http1_body_run(&body), 0);
        assert_fault(http1_body_read(&body, span_of_text("\r\n0\r\n\r\n"), &part, &took), HTTP1_FAULT_NONE);
        assert_true(body.is_done);

        http1_body_begin(&body, HTTP1_FRAMING_LENGTH, 3);
        http1_body_pass(&body, 3);
        assert_true(body.is_done);
        http1_body_begin(&body, HTTP1_FRAMING_CLOSE, 0);
        http1_body_pass(&body, 1000);
        assert_true(http1_body_run(&body) == UINT64_MAX);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rfc_example),  cmocka_unit_test(test_forms),
                cmocka_unit_test(test_refused),      cmocka_unit_test(test_nul),
                cmocka_unit_test(test_framing),      cmocka_unit_test(test_head_end),
                cmocka_unit_test(test_large_head),   cmocka_unit_test(test_parse_alone),
                cmocka_unit_test(test_response),     cmocka_unit_test(test_body),
                cmocka_unit_test(test_body_refused), cmocka_unit_test(test_body_pass),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
