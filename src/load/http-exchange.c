/* SPDX-License-Identifier: Apache-2.0 */
#include "load/http-exchange.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include <netinet/tcp.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/sample.h"
#include "wire/http1.h"

#define TICK_MS 100 /* how often a wait looks at the time and at the stop flag */

static const char *const texts[] = {
        [HTTP_FAILURE_NONE] = "none",
        [HTTP_FAILURE_CONNECT] = "connect",
        [HTTP_FAILURE_TLS] = "TLS",
        [HTTP_FAILURE_SEND] = "send",
        [HTTP_FAILURE_RECEIVE] = "receive",
        [HTTP_FAILURE_ENDED] = "the connection ended before the response",
        [HTTP_FAILURE_TIMEOUT] = "no response in time",
        [HTTP_FAILURE_STOPPED] = "stopped",
        [HTTP_FAILURE_RESPONSE] = "not an HTTP response",
        [HTTP_FAILURE_STATUS] = "status",
        [HTTP_FAILURE_TOO_LONG] = "the body is too long",
        [HTTP_FAILURE_EXTRA] = "more than the response came",
        [HTTP_FAILURE_LENGTH] = "the body has another length",
        [HTTP_FAILURE_DIGEST] = "the body has another SHA-256",
};

char *http_failure_format(enum http_failure failure, int detail, char buf[static HTTP_FAILURE_TEXT])
{
        const char *text = (size_t)failure < ARRAY_SIZE(texts) ? texts[failure] : "unknown";

        switch (failure) {
        case HTTP_FAILURE_TLS:
                snprintf(buf, HTTP_FAILURE_TEXT, "%s: %s", text,
                         detail == EKEYREJECTED ? "the certificate is not the right one" : strerror(detail));
                break;
        case HTTP_FAILURE_CONNECT:
        case HTTP_FAILURE_SEND:
        case HTTP_FAILURE_RECEIVE:
                snprintf(buf, HTTP_FAILURE_TEXT, "%s: %s", text, strerror(detail));
                break;
        case HTTP_FAILURE_STATUS:
                snprintf(buf, HTTP_FAILURE_TEXT, "%s %d", text, detail);
                break;
        case HTTP_FAILURE_RESPONSE:
                snprintf(buf, HTTP_FAILURE_TEXT, "%s: %s", text, http1_fault_name((enum http1_fault)detail));
                break;
        default:
                snprintf(buf, HTTP_FAILURE_TEXT, "%s", text);
        }
        return buf;
}

static void fail(struct http_outcome *o, enum http_failure failure, int detail)
{
        o->failure = failure;
        o->detail = detail;
}

/* Whether a wait that a tick ended has to end for good; then the failure is set. */
static bool is_over(const struct http_exchange *x, struct http_outcome *o)
{
        if (x->stop && *x->stop)
                fail(o, HTTP_FAILURE_STOPPED, 0);
        else if (clock_now_ns(CLOCK_MONOTONIC) - o->start_ns > x->timeout_ns)
                fail(o, HTTP_FAILURE_TIMEOUT, 0);
        return o->failure != HTTP_FAILURE_NONE;
}

/* A connection attempt that a tick, or a signal, ended goes on in the kernel. Return: 0 or a negative errno; also where
 * it is over, with the failure set. */
static int await_connection(const struct http_exchange *x, struct http_outcome *o)
{
        struct pollfd pfd = {.fd = x->stream.fd, .events = POLLOUT};
        socklen_t len = sizeof(int);
        int error = 0;

        while (poll(&pfd, 1, TICK_MS) <= 0)
                if (is_over(x, o))
                        return -ETIMEDOUT;
        if (getsockopt(x->stream.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
                return -errno;
        return -error;
}

/* The socket blocks, in ticks: so waiting costs no system call of its own. */
static int open_connection(struct http_exchange *x, struct http_outcome *o)
{
        const struct timeval tick = {.tv_usec = TICK_MS * 1000L};
        int fd = socket(x->peer->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int r = 0;

        if (fd < 0)
                return -errno;
        x->stream.fd = fd;
        if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick)) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tick, sizeof(tick)) < 0)
                return -errno;
        if (connect(fd, &x->peer->any, address_len(x->peer)) < 0)
                r = errno == EINPROGRESS || errno == EINTR ? await_connection(x, o) : -errno;
        return r;
}

/* The end of the handshake and the request are two writes, of which the second must not wait until the first has been
 * acknowledged. */
static void secure_connection(struct http_exchange *x, struct http_outcome *o)
{
        const int one = 1;
        int r = setsockopt(x->stream.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ? -errno : 0;

        if (r == 0)
                r = http_stream_secure(&x->stream, x->tls);

        if (r == 0)
                do
                        r = http_tls_handshake(x->stream.tls);
                while (r == -EAGAIN && !is_over(x, o));
        if (r < 0 && o->failure == HTTP_FAILURE_NONE)
                fail(o, HTTP_FAILURE_TLS, -r);
}

static void make_connection(struct http_exchange *x, struct http_outcome *o)
{
        int r = open_connection(x, o);

        if (r < 0 && o->failure == HTTP_FAILURE_NONE)
                fail(o, HTTP_FAILURE_CONNECT, -r);
        if (r == 0 && x->tls)
                secure_connection(x, o);
        if (o->failure == HTTP_FAILURE_NONE)
                o->connect_ns = clock_now_ns(CLOCK_MONOTONIC) - o->start_ns;
}

static void send_request(struct http_exchange *x, struct http_outcome *o)
{
        struct span left = x->request;

        while (left.len > 0) {
                ssize_t n = http_stream_write(&x->stream, left, span_of(NULL, 0));

                if (n >= 0)
                        left = span_of(left.data + n, left.len - (size_t)n);
                else if (n != -EAGAIN && n != -EINTR)
                        fail(o, HTTP_FAILURE_SEND, (int)-n);
                else
                        (void)is_over(x, o);
                if (o->failure != HTTP_FAILURE_NONE)
                        return;
        }
}

/* A response as it comes in. */
struct reading {
        size_t len;      /* octets in the buffer */
        size_t head_len; /* of the final head, 0 before it has come; octets before it were of interim responses */
        size_t taken;    /* octets that were looked at */
        size_t content;  /* octets of content, which begin after the head */
        struct http1_response response;
        struct http1_body body;
        bool has_ended; /* the connection */
};

/* Reads once. Return: whether anything came, the end included. */
static bool read_some(struct http_exchange *x, struct http_outcome *o, struct reading *rd)
{
        size_t most = x->buffer_size - rd->len;
        ssize_t n;

        /* What is known to come fills its place and not more; so nothing of it is moved. */
        if (rd->head_len > 0 && rd->response.framing == HTTP1_FRAMING_LENGTH)
                most = MIN(most, (size_t)http1_body_run(&rd->body));
        if (most == 0) {
                fail(o, HTTP_FAILURE_TOO_LONG, 0);
                return false;
        }
        do
                n = http_stream_read(&x->stream, x->buffer + rd->len, most);
        while ((n == -EAGAIN || n == -EINTR) && !is_over(x, o));
        if (o->failure != HTTP_FAILURE_NONE)
                return false;
        if (n < 0) {
                fail(o, HTTP_FAILURE_RECEIVE, (int)-n);
                return false;
        }
        rd->has_ended = n == 0;
        rd->len += (size_t)n;
        return true;
}

/* Takes a head where one is complete; those of interim responses (1xx) are dropped. */
static void take_head(const struct http_exchange *x, struct http_outcome *o, struct reading *rd)
{
        while (rd->head_len == 0) {
                struct span left = span_of(x->buffer + rd->taken, rd->len - rd->taken);
                const struct span method = span_of_text(x->is_head ? "HEAD" : "GET");
                enum http1_fault fault;
                size_t at = 0, len = 0;

                fault = http1_head_end(left, HTTP1_HEAD_LEN, &at, &len);
                if (fault == HTTP1_FAULT_INCOMPLETE)
                        return;
                if (fault == HTTP1_FAULT_NONE)
                        fault = http1_response_parse(span_of(left.data, len), method, &rd->response);
                if (fault != HTTP1_FAULT_NONE) {
                        fail(o, HTTP_FAILURE_RESPONSE, (int)fault);
                        return;
                }
                rd->taken += len;
                if (rd->response.status < 200)
                        continue;
                rd->head_len = rd->taken;
                http1_body_begin(&rd->body, rd->response.framing, rd->response.content_length);
                if (rd->response.framing == HTTP1_FRAMING_LENGTH &&
                    rd->response.content_length > x->buffer_size - rd->head_len)
                        fail(o, HTTP_FAILURE_TOO_LONG, 0);
        }
}

/* Takes what has come of the body, and moves content together where framing stands between. */
static void take_body(const struct http_exchange *x, struct http_outcome *o, struct reading *rd)
{
        while (!rd->body.is_done && rd->taken < rd->len) {
                enum http1_fault fault;
                struct span content;
                size_t n = 0;

                fault = http1_body_read(&rd->body, span_of(x->buffer + rd->taken, rd->len - rd->taken), &content, &n);
                if (fault != HTTP1_FAULT_NONE) {
                        fail(o, HTTP_FAILURE_RESPONSE, (int)fault);
                        return;
                }
                if (content.len > 0 && content.data != x->buffer + rd->head_len + rd->content)
                        memmove(x->buffer + rd->head_len + rd->content, content.data, content.len);
                rd->content += content.len;
                rd->taken += n;
                if (n == 0 && content.len == 0)
                        break;
        }
        /* What was looked at and is no content makes room again. */
        if (rd->taken > rd->head_len + rd->content) {
                memmove(x->buffer + rd->head_len + rd->content, x->buffer + rd->taken, rd->len - rd->taken);
                rd->len -= rd->taken - rd->head_len - rd->content;
                rd->taken = rd->head_len + rd->content;
        }
}

static void take(const struct http_exchange *x, struct http_outcome *o, struct reading *rd)
{
        int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

        if (rd->head_len == 0)
                take_head(x, o, rd);
        if (rd->head_len > 0 && o->failure == HTTP_FAILURE_NONE)
                take_body(x, o, rd);
        if (rd->content > 0 && o->first_byte_ns == SAMPLE_MISSING)
                o->first_byte_ns = now_ns - o->start_ns;
}

static bool is_complete(const struct reading *rd)
{
        if (rd->head_len == 0)
                return false;
        switch (rd->response.framing) {
        case HTTP1_FRAMING_NONE:
                return true;
        case HTTP1_FRAMING_CLOSE:
                return rd->has_ended;
        default:
                return rd->body.is_done;
        }
}

/* Reads the response. Return: whether the connection can be used again. */
static bool receive_response(struct http_exchange *x, struct http_outcome *o, struct reading *rd)
{
        while (!is_complete(rd)) {
                if (rd->has_ended) {
                        fail(o, HTTP_FAILURE_ENDED, 0);
                        return false;
                }
                if (!read_some(x, o, rd))
                        return false;
                take(x, o, rd);
                if (o->failure != HTTP_FAILURE_NONE)
                        return false;
        }
        o->request_ns = clock_now_ns(CLOCK_MONOTONIC) - o->start_ns;
        o->body = span_of(x->buffer + rd->head_len, rd->content);
        if (rd->taken < rd->len)
                fail(o, HTTP_FAILURE_EXTRA, 0);
        else if (rd->response.status != 200)
                fail(o, HTTP_FAILURE_STATUS, (int)rd->response.status);
        return o->failure != HTTP_FAILURE_EXTRA && rd->response.keeps_alive && !rd->has_ended;
}

static void begin(struct http_outcome *o)
{
        *o = (struct http_outcome){.connect_ns = SAMPLE_MISSING,
                                   .first_byte_ns = SAMPLE_MISSING,
                                   .request_ns = SAMPLE_MISSING,
                                   .start_ns = clock_now_ns(CLOCK_MONOTONIC)};
}

/* Return: whether the peer had closed the connection before it could see the request. */
static bool try_once(struct http_exchange *x, struct http_outcome *o, bool is_reused)
{
        struct reading rd = {0};
        bool is_reusable = false;

        if (!is_reused)
                make_connection(x, o);
        if (o->failure == HTTP_FAILURE_NONE)
                send_request(x, o);
        if (o->failure == HTTP_FAILURE_NONE)
                is_reusable = receive_response(x, o, &rd);
        if (!is_reusable || !x->is_kept)
                http_exchange_end(x);
        if (!is_reused || rd.len > 0)
                return false;
        return o->failure == HTTP_FAILURE_ENDED || o->detail == EPIPE || o->detail == ECONNRESET;
}

void http_exchange_run(struct http_exchange *x, struct http_outcome *ret)
{
        begin(ret);
        if (try_once(x, ret, x->stream.fd >= 0)) {
                begin(ret);
                (void)try_once(x, ret, false);
        }
        if (ret->failure != HTTP_FAILURE_NONE)
                ret->request_ns = SAMPLE_MISSING; /* what failed has no duration */
}

void http_exchange_end(struct http_exchange *x)
{
        http_stream_close(&x->stream);
}
