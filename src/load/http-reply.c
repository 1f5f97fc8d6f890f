/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "load/http-origin-internal.h"
#include "wire/http1.h"

#define TURN_WRITES 256 /* in a row, before other connections have their turn */

/* Around an event: its length in hexadecimal, two line ends, and the chunk that ends the body. */
#define CHUNK_OVERHEAD 32

static void count(atomic_ullong *total, uint64_t n)
{
        atomic_fetch_add_explicit(total, n, memory_order_relaxed);
}

int http_reply_start(struct http_reply *reply, const struct http_reply_source *source, int fd)
{
        memset(reply, 0, offsetof(struct http_reply, in));
        reply->stream.fd = fd;
        reply->source = source;
        return source->tls ? http_stream_secure(&reply->stream, source->tls) : 0;
}

void http_reply_done(struct http_reply *reply)
{
        http_stream_close(&reply->stream);
        free(reply->chunk);
        reply->chunk = NULL;
}

static void set_head(struct http_reply *reply, const char *status, const char *fields)
{
        int n = snprintf(reply->head_text, sizeof(reply->head_text), "HTTP/1.1 %s\r\n%s%s\r\n", status, fields,
                         reply->is_kept ? "" : "Connection: close\r\n");

        reply->head = span_of(reply->head_text, (size_t)n);
}

/* Says why, and ends the connection: where the next request would begin may not be known. */
static void refuse(struct http_reply *reply, const char *status)
{
        reply->is_kept = false;
        reply->is_refusal = true;
        set_head(reply, status, "Content-Length: 0\r\n");
}

static const char *status_of_fault(enum http1_fault fault)
{
        switch (fault) {
        case HTTP1_FAULT_HEAD_LENGTH:
                return "431 Request Header Fields Too Large";
        case HTTP1_FAULT_VERSION:
                return "505 HTTP Version Not Supported";
        case HTTP1_FAULT_EXPECT:
                return "417 Expectation Failed";
        default:
                return "400 Bad Request";
        }
}

static void answer_body(struct http_reply *reply, bool is_head)
{
        const struct http_origin_config *c = reply->source->config;
        char fields[96];

        snprintf(fields, sizeof(fields), "Content-Type: application/octet-stream\r\nContent-Length: %zu\r\n",
                 c->body_bytes);
        set_head(reply, "200 OK", fields);
        if (!is_head)
                reply->body = span_of(reply->source->body, c->body_bytes);
}

/* A client of HTTP/1.0 knows no chunks: for it the end of the connection ends the events. */
static void answer_events(struct http_reply *reply, bool is_head, unsigned minor_version, int64_t now_ns)
{
        reply->is_chunked = minor_version > 0;
        reply->is_kept = reply->is_kept && reply->is_chunked;
        set_head(reply, "200 OK",
                 reply->is_chunked ? "Content-Type: text/event-stream\r\nCache-Control: no-store\r\n"
                                     "Transfer-Encoding: chunked\r\n"
                                   : "Content-Type: text/event-stream\r\nCache-Control: no-store\r\n");
        reply->is_stream = !is_head;
        reply->event = 0;
        reply->asked_ns = now_ns;
}

/* The path of a target, in origin or absolute form, without its query. */
static struct span path_of(const struct http1_request *request)
{
        struct span path = request->target;
        const uint8_t *at;

        if (request->form == HTTP1_FORM_ABSOLUTE) {
                size_t scheme = strlen("http://");

                at = memchr(path.data + scheme, '/', path.len - scheme);
                if (!at)
                        return span_of_text("/");
                path = span_of(at, (size_t)(path.data + path.len - at));
        }
        at = memchr(path.data, '?', path.len);
        return at ? span_of(path.data, (size_t)(at - path.data)) : path;
}

static void answer(struct http_reply *reply, const struct http1_request *request, int64_t now_ns)
{
        bool is_head = span_equal(request->method, span_of_text("HEAD"));
        struct span path;

        reply->is_kept = request->keeps_alive;
        if (!is_head && !span_equal(request->method, span_of_text("GET"))) {
                refuse(reply, "405 Method Not Allowed\r\nAllow: GET, HEAD");
                return;
        }
        if (request->framing != HTTP1_FRAMING_NONE || request->expects_continue) {
                refuse(reply, "413 Content Too Large");
                return;
        }
        path = path_of(request);
        if (span_equal(path, span_of_text("/")))
                answer_body(reply, is_head);
        else if (span_equal(path, span_of_text("/events")))
                answer_events(reply, is_head, request->minor_version, now_ns);
        else
                refuse(reply, "404 Not Found");
}

/* Takes the next request out of what was read. Return: whether there was one, or something to refuse. */
static bool take_request(struct http_reply *reply, int64_t now_ns)
{
        struct http1_request request;
        enum http1_fault fault;
        size_t at = 0, len = 0;

        reply->is_stream = reply->is_refusal = false;
        fault = http1_head_end(span_of(reply->in, reply->in_len), HTTP_REPLY_HEAD_MAX, &at, &len);
        if (fault == HTTP1_FAULT_INCOMPLETE && reply->in_len < HTTP_REPLY_HEAD_MAX)
                return false;
        if (fault == HTTP1_FAULT_INCOMPLETE)
                fault = HTTP1_FAULT_HEAD_LENGTH;
        if (fault == HTTP1_FAULT_NONE)
                fault = http1_request_parse(span_of(reply->in, len), &request);
        if (fault == HTTP1_FAULT_NONE)
                answer(reply, &request, now_ns);
        else
                refuse(reply, status_of_fault(fault));
        reply->in_len -= len;
        memmove(reply->in, reply->in + len, reply->in_len);
        return true;
}

/* Makes the next event what is to be written. Return: false where memory ran out. */
static bool put_event(struct http_reply *reply)
{
        const struct http_origin_config *c = reply->source->config;
        bool is_last = reply->event + 1 >= c->events;
        size_t len = 0;

        if (!reply->chunk)
                reply->chunk = malloc(c->event_bytes + CHUNK_OVERHEAD);
        if (!reply->chunk)
                return false;
        if (reply->is_chunked && c->events > 0)
                len = (size_t)sprintf((char *)reply->chunk, "%zx\r\n", c->event_bytes);
        if (c->events > 0) {
                http_body_event(reply->chunk + len, c->event_bytes, reply->event);
                len += c->event_bytes;
        }
        if (reply->is_chunked)
                len += (size_t)sprintf((char *)reply->chunk + len, "%s%s", c->events > 0 ? "\r\n" : "",
                                       is_last ? "0\r\n\r\n" : "");
        reply->body = span_of(reply->chunk, len);
        count(&reply->source->totals->body_bytes, c->events > 0 ? c->event_bytes : 0);
        reply->event++;
        reply->due_ns = reply->asked_ns + (int64_t)reply->event * c->every_ns;
        if (is_last)
                reply->is_stream = false; /* nothing comes after what is on its way */
        return true;
}

static struct span drop_front(struct span s, size_t n)
{
        return n > 0 ? span_of(s.data + n, s.len - n) : s; /* nothing of nothing has no address to add to */
}

/* Hands over what is to be written. Return: 0 all of it; -EAGAIN there is no room, or others have their turn; another
 * negative errno. */
static int write_out(struct http_reply *reply)
{
        const struct http_origin_config *c = reply->source->config;
        bool is_body = reply->body.len > 0 && reply->body.data != reply->chunk;

        for (unsigned i = 0; reply->head.len + reply->body.len > 0; i++) {
                size_t most = is_body && c->write_bytes > 0 ? MIN(c->write_bytes, reply->body.len) : reply->body.len;
                size_t of_head;
                ssize_t n;

                if (i == TURN_WRITES)
                        return -EAGAIN;
                n = http_stream_write(&reply->stream, reply->head, span_of(reply->body.data, most));
                if (n < 0)
                        return (int)n;
                of_head = MIN(reply->head.len, (size_t)n);
                reply->head = drop_front(reply->head, of_head);
                reply->body = drop_front(reply->body, (size_t)n - of_head);
                if (is_body)
                        count(&reply->source->totals->body_bytes, (size_t)n - of_head);
        }
        return 0;
}

/* What was not read when a connection is closed turns its end into a reset, which can overtake the refusal. */
static void discard_input(struct http_reply *reply)
{
        for (unsigned i = 0; i < TURN_WRITES; i++)
                if (http_stream_read(&reply->stream, reply->in, sizeof(reply->in)) <= 0)
                        return;
}

/* Writes, and lets the events follow that are due. */
static enum http_reply_state go_on(struct http_reply *reply, int64_t now_ns)
{
        struct http_reply_totals *totals = reply->source->totals;

        for (unsigned i = 0; i < TURN_WRITES; i++) {
                int r;

                if (reply->is_stream && reply->body.len == 0 && (reply->event == 0 || reply->due_ns <= now_ns) &&
                    !put_event(reply))
                        return HTTP_REPLY_ENDED;
                r = write_out(reply);
                if (r == -EAGAIN || r == -EINTR)
                        return HTTP_REPLY_WRITING;
                if (r < 0) {
                        count(&totals->lost, 1);
                        return HTTP_REPLY_ENDED;
                }
                if (!reply->is_stream) {
                        count(reply->is_refusal ? &totals->refused : &totals->requests, 1);
                        if (reply->is_refusal)
                                discard_input(reply);
                        return reply->is_kept ? HTTP_REPLY_READING : HTTP_REPLY_ENDED;
                }
                if (reply->due_ns > now_ns)
                        break;
        }
        return HTTP_REPLY_WAITING;
}

/* One read a turn: where more has come, epoll says so again. */
enum http_reply_state http_reply_go(struct http_reply *reply, enum http_reply_state state, int64_t now_ns)
{
        bool has_read = state != HTTP_REPLY_READING;

        for (;;) {
                if (state != HTTP_REPLY_READING || (reply->in_len > 0 && take_request(reply, now_ns))) {
                        state = go_on(reply, now_ns);
                        if (state != HTTP_REPLY_READING)
                                return state;
                } else if (has_read) {
                        return HTTP_REPLY_READING;
                } else {
                        ssize_t n = http_stream_read(&reply->stream, reply->in + reply->in_len,
                                                     sizeof(reply->in) - reply->in_len);

                        if (n == -EAGAIN || n == -EINTR)
                                return HTTP_REPLY_READING;
                        if (n <= 0)
                                return HTTP_REPLY_ENDED;
                        reply->in_len += (size_t)n;
                        has_read = !http_stream_has_more(&reply->stream);
                }
        }
}
