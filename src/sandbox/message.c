/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/socket.h>

#include "sandbox/runner-internal.h"

int message_send(int channel_fd, const struct message *message, int fd)
{
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(sizeof(int))];
        } control = {0};
        struct iovec iov = {.iov_base = (void *)message, .iov_len = sizeof(*message)};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

        if (fd < 0) /* not by sendmsg(), for which init's own filter may ask the supervisor, who waits for this */
                return send(channel_fd, message, sizeof(*message), MSG_NOSIGNAL) < 0 ? -errno : 0;
        control.head =
                (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
        m.msg_control = &control;
        m.msg_controllen = sizeof(control);
        return sendmsg(channel_fd, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int message_receive(int channel_fd, bool dont_wait, struct message *ret, int *ret_fd)
{
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec iov = {.iov_base = ret, .iov_len = sizeof(*ret)};
        struct msghdr m = {.msg_iov = &iov,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof(control)};
        const struct cmsghdr *c;
        ssize_t n;

        *ret_fd = -1;
        do
                n = recvmsg(channel_fd, &m, MSG_CMSG_CLOEXEC | (dont_wait ? MSG_DONTWAIT : 0));
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        if (n == 0)
                return -EPIPE;
        c = CMSG_FIRSTHDR(&m);
        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
                memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
        return n == sizeof(*ret) ? 0 : -EBADMSG;
}
