/* SPDX-License-Identifier: Apache-2.0 */
#include "load/http-exchange.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/sample.h"
#include "tests/test.h"
#include "wire/http1.h"

#define BUFFER_BYTES 4096

/* A server that answers whatever comes with what it was told to say. */
struct server {
        int listener;
        union address address;
        const char *say[2];  /* to the first connection, to the second; NULL: nothing, until the client goes */
        size_t piece;        /* octets at once; 0: all */
        unsigned n_requests; /* on each connection, before it is closed */
        pthread_t thread;
};

static void read_head(int fd)
{
        char last[4] = "", c;

        while (memcmp(last, "\r\n\r\n", 4) != 0 && read(fd, &c, 1) == 1) {
                memmove(last, last + 1, 3);
                last[3] = c;
        }
}

static void *serve(void *userdata)
{
        struct server *s = userdata;

        for (size_t i = 0; i < ARRAY_SIZE(s->say); i++) {
                _cleanup_close_ int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
                char c;

                if (fd < 0)
                        break;
                for (unsigned k = 0; k < s->n_requests; k++) {
                        const char *text = s->say[i] ? s->say[i] : "";
                        size_t len = strlen(text);

                        read_head(fd);
                        for (size_t at = 0, n; at < len; at += n) {
                                n = s->piece > 0 ? MIN(s->piece, len - at) : len;
                                if (send(fd, text + at, n, MSG_NOSIGNAL) < 0)
                                        break;
                        }
                }
                if (!s->say[i])
                        while (read(fd, &c, 1) > 0)
                                ;
        }
        return NULL;
}

static void server_start(struct server *s)
{
        socklen_t len = sizeof(s->address);

        s->address.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(s->listener, &s->address.any, sizeof(s->address.v4)), 0);
        assert_int_equal(listen(s->listener, 8), 0);
        assert_int_equal(getsockname(s->listener, &s->address.any, &len), 0);
        assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_end(struct server *s)
{
        shutdown(s->listener, SHUT_RDWR);
        pthread_join(s->thread, NULL);
        close(s->listener);
}

static uint8_t buffer[BUFFER_BYTES];

static struct http_exchange exchange_with(const struct server *s, bool is_kept)
{
        return (struct http_exchange){
                .peer = &s->address,
                .request = span_of_text("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"),
                .is_kept = is_kept,
                .timeout_ns = 10 * NSEC_PER_SEC,
                .buffer = buffer,
                .buffer_size = sizeof(buffer),
                .stream.fd = -1,
        };
}

/* What comes of one response, sent in pieces of @piece octets. */
static struct http_outcome outcome_of(const char *response, size_t piece)
{
        struct server s = {.say = {response, response}, .piece = piece, .n_requests = 1};
        struct http_exchange x;
        struct http_outcome o;

        server_start(&s);
        x = exchange_with(&s, false);
        http_exchange_run(&x, &o);
        server_end(&s);
        assert_int_equal(x.stream.fd, -1);
        return o;
}

static void assert_body(const struct http_outcome *o, const char *expected)
{
        assert_int_equal(o->failure, HTTP_FAILURE_NONE);
        assert_int_equal(o->body.len, strlen(expected));
        assert_memory_equal(o->body.data, expected, o->body.len);
        assert_true(o->connect_ns >= 0);
        assert_true(o->request_ns >= o->connect_ns);
        if (o->body.len > 0)
                assert_in_range(o->first_byte_ns, o->connect_ns, o->request_ns);
        else
                assert_true(o->first_byte_ns == SAMPLE_MISSING);
}

static void test_bodies(void **state)
{
        const struct {
                const char *response, *body;
        } cases[] = {
                {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello"},
                {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""},
                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", "hello"},
                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n", "hello"},
                {"HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end"},
                {"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (size_t piece = 0; piece < 3; piece++) {
                        struct http_outcome o = outcome_of(cases[i].response, piece);

                        assert_body(&o, cases[i].body);
                }
}

static void assert_failure(const struct http_outcome *o, enum http_failure failure, int detail)
{
        assert_int_equal(o->failure, failure);
        assert_int_equal(o->detail, detail);
        assert_true(o->request_ns == SAMPLE_MISSING);
}

static void test_failures(void **state)
{
        const struct {
                const char *response;
                enum http_failure failure;
                int detail;
        } cases[] = {
                {"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", HTTP_FAILURE_STATUS, 403},
                {"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", HTTP_FAILURE_ENDED, 0},
                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", HTTP_FAILURE_ENDED, 0},
                {"HTTP/1.1 200 OK\r\nContent-Le", HTTP_FAILURE_ENDED, 0},
                {"", HTTP_FAILURE_ENDED, 0},
                {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!", HTTP_FAILURE_EXTRA, 0},
                {"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\nx", HTTP_FAILURE_TOO_LONG, 0},
                {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_FAILURE_RESPONSE,
                 HTTP1_FAULT_FRAMING},
                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", HTTP_FAILURE_RESPONSE,
                 HTTP1_FAULT_CHUNK},
                {"220 smtp.example ESMTP\r\n\r\n", HTTP_FAILURE_RESPONSE, HTTP1_FAULT_START_LINE},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct http_outcome o = outcome_of(cases[i].response, 0);

                assert_failure(&o, cases[i].failure, cases[i].detail);
        }
}

/* Extra octets that come later are of no response; on a connection of its own nothing looks for them. */
static void test_endless_body_is_too_long(void **state)
{
        char response[2 * BUFFER_BYTES];
        struct http_outcome o;

        memset(response, 'x', sizeof(response));
        memcpy(response, "HTTP/1.1 200 OK\r\n\r\n", 19);
        response[sizeof(response) - 1] = '\0';
        o = outcome_of(response, 0);
        assert_failure(&o, HTTP_FAILURE_TOO_LONG, 0);
}

static void test_nobody_listens(void **state)
{
        struct server s = {.n_requests = 1};
        struct http_exchange x;
        struct http_outcome o;
        char text[HTTP_FAILURE_TEXT];

        server_start(&s);
        server_end(&s);
        x = exchange_with(&s, false);
        http_exchange_run(&x, &o);
        assert_failure(&o, HTTP_FAILURE_CONNECT, ECONNREFUSED);
        assert_string_equal(http_failure_format(o.failure, o.detail, text), "connect: Connection refused");
}

static void test_silence_ends(void **state)
{
        struct server s = {.n_requests = 1};
        struct http_exchange x;
        struct http_outcome o;
        const int stop = 1;

        server_start(&s);
        x = exchange_with(&s, false);
        x.timeout_ns = 1;
        http_exchange_run(&x, &o);
        assert_failure(&o, HTTP_FAILURE_TIMEOUT, 0);
        x = exchange_with(&s, false);
        x.stop = &stop;
        http_exchange_run(&x, &o);
        assert_failure(&o, HTTP_FAILURE_STOPPED, 0);
        server_end(&s);
}

static const char short_response[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

static void test_connection_is_used_again(void **state)
{
        struct server s = {.say = {short_response, NULL}, .n_requests = 2};
        struct http_exchange x;
        struct http_outcome o;

        server_start(&s);
        x = exchange_with(&s, true);
        http_exchange_run(&x, &o);
        assert_body(&o, "ok");
        assert_true(x.stream.fd >= 0);
        http_exchange_run(&x, &o);
        assert_int_equal(o.failure, HTTP_FAILURE_NONE);
        assert_true(o.connect_ns == SAMPLE_MISSING); /* there was no connection to make */
        http_exchange_end(&x);
        server_end(&s);
}

/* The server closes after each response, without saying so. */
static void test_connection_closed_meanwhile(void **state)
{
        struct server s = {.say = {short_response, short_response}, .n_requests = 1};
        struct http_exchange x;
        struct http_outcome o;

        server_start(&s);
        x = exchange_with(&s, true);
        http_exchange_run(&x, &o);
        assert_body(&o, "ok");
        http_exchange_run(&x, &o);
        assert_body(&o, "ok"); /* and with a connection of its own */
        http_exchange_end(&x);
        server_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bodies),
                cmocka_unit_test(test_failures),
                cmocka_unit_test(test_endless_body_is_too_long),
                cmocka_unit_test(test_nobody_listens),
                cmocka_unit_test(test_silence_ends),
                cmocka_unit_test(test_connection_is_used_again),
                cmocka_unit_test(test_connection_closed_meanwhile),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
