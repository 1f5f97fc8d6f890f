/* SPDX-License-Identifier: Apache-2.0 */
#include "load/http-stream.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

int http_stream_secure(struct http_stream *s, struct http_tls *tls)
{
        return http_tls_session_new(tls, s->fd, &s->tls);
}

ssize_t http_stream_read(struct http_stream *s, void *to, size_t size)
{
        ssize_t n;

        if (s->tls)
                return http_tls_read(s->tls, to, size);
        n = recv(s->fd, to, size, 0);
        return n < 0 ? -errno : n;
}

bool http_stream_has_more(const struct http_stream *s)
{
        return s->tls && http_tls_has_more(s->tls);
}

ssize_t http_stream_write(struct http_stream *s, struct span head, struct span body)
{
        struct iovec parts[] = {{.iov_base = (void *)head.data, .iov_len = head.len},
                                {.iov_base = (void *)body.data, .iov_len = body.len}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t n;

        if (s->tls)
                return http_tls_write(s->tls, head.len > 0 ? head : body);
        n = sendmsg(s->fd, &message, MSG_NOSIGNAL);
        return n < 0 ? -errno : n;
}

void http_stream_close(struct http_stream *s)
{
        http_tls_session_free(s->tls);
        s->tls = NULL;
        if (s->fd >= 0)
                close(s->fd);
        s->fd = -1;
}
