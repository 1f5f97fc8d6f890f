/* SPDX-License-Identifier: Apache-2.0 */
#include "load/http-stream.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t http_stream_read(struct http_stream *s, void *to, size_t size)
{
        ssize_t n = recv(s->fd, to, size, 0);

        return n < 0 ? -errno : n;
}

ssize_t http_stream_write(struct http_stream *s, struct span head, struct span body)
{
        struct iovec parts[] = {{.iov_base = (void *)head.data, .iov_len = head.len},
                                {.iov_base = (void *)body.data, .iov_len = body.len}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t n = sendmsg(s->fd, &message, MSG_NOSIGNAL);

        return n < 0 ? -errno : n;
}

void http_stream_close(struct http_stream *s)
{
        if (s->fd >= 0)
                close(s->fd);
        s->fd = -1;
}
