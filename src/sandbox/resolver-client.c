/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/clock.h"
#include "base/macro.h"
#include "sandbox/resolver-internal.h"

#define DATAGRAMS_AT_ONCE 64

#define STREAM_QUERY_MAX   4096 /* octets; no honest query comes near */
#define STREAM_ANSWERS_MAX ((size_t)256 * 1024)
#define STREAM_WAITING_MAX 32 /* queries of one connection */
#define STREAM_IDLE_NS     (10 * NSEC_PER_SEC)

/* A connection over TCP. It is read while it has little under way, and closed when it is idle, misbehaves, or has ended
 * and got all its answers. */
struct resolver_client {
        struct loop_io io;
        struct loop_timer idle;
        struct resolver *resolver;
        struct resolver_client *next, **place;
        int fd;
        bool has_ended;   /* the peer sends no more */
        size_t n_waiting; /* queries that are not answered */
        size_t len;       /* received, of a message with its length before it */
        uint8_t in[2 + STREAM_QUERY_MAX];
        uint8_t *out; /* not sent yet */
        size_t out_len, out_allocated;
};

/* ---- datagrams ---- */

/* Keeps of the control messages the one that says at which address a datagram arrived, to be the answer's source. */
static void keep_destination(struct msghdr *header, struct resolver_return *to)
{
        for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
                bool is_v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO;
                bool is_v6 = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO;

                if (!is_v4 && !is_v6)
                        continue;
                if (is_v4)
                        /* The interface is where it came in; the answer takes the route that there is. */
                        ((struct in_pktinfo *)(void *)CMSG_DATA(c))->ipi_ifindex = 0;
                to->control_len = CMSG_SPACE(c->cmsg_len - CMSG_LEN(0));
                memmove(to->control, c, c->cmsg_len);
                return;
        }
        to->control_len = 0;
}

static int on_datagrams(struct loop_io *io, uint32_t events)
{
        struct resolver_service *service = CONTAINER_OF(io, struct resolver_service, io);

        for (int i = 0; i < DATAGRAMS_AT_ONCE; i++) {
                struct resolver_return to = {.service = service};
                uint8_t bytes[STREAM_QUERY_MAX];
                struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
                struct msghdr header = {.msg_name = &to.peer,
                                        .msg_namelen = sizeof(to.peer),
                                        .msg_iov = &iov,
                                        .msg_iovlen = 1,
                                        .msg_control = to.control,
                                        .msg_controllen = sizeof(to.control)};
                ssize_t len = recvmsg(service->fd, &header, MSG_DONTWAIT);

                if (len < 0)
                        return 0; /* none is left; or an error of one that was sent, now consumed */
                if (header.msg_flags & MSG_TRUNC)
                        continue;
                to.peer_len = header.msg_namelen;
                keep_destination(&header, &to);
                resolver_take(service->resolver, span_of(bytes, (size_t)len), &to);
        }
        return 0;
}

static void reply_datagram(const struct resolver_return *to, struct span message)
{
        struct iovec iov = {.iov_base = (void *)message.data, .iov_len = message.len};
        struct msghdr header = {.msg_name = (void *)&to->peer,
                                .msg_namelen = to->peer_len,
                                .msg_iov = &iov,
                                .msg_iovlen = 1,
                                .msg_control = to->control_len > 0 ? (void *)to->control : NULL,
                                .msg_controllen = to->control_len};

        (void)sendmsg(to->service->fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- streams ---- */

static void client_close(struct resolver_client *client)
{
        struct resolver *resolver = client->resolver;

        for (struct resolver_query *query = resolver->waiting; query; query = query->next)
                if (query->to.client == client)
                        query->to.client = NULL;
        loop_io_remove(&client->io);
        loop_timer_remove(&client->idle);
        close(client->fd);
        *client->place = client->next;
        if (client->next)
                client->next->place = client->place;
        resolver->n_clients--;
        free(client->out);
        free(client);
        resolver_client_resume(resolver);
}

static int on_idle(struct loop_timer *timer)
{
        client_close(CONTAINER_OF(timer, struct resolver_client, idle));
        return 0;
}

/* What to wait for next; or nothing more, and it is closed. */
static void client_settle(struct resolver_client *client)
{
        bool reads = !client->has_ended && client->n_waiting < STREAM_WAITING_MAX && client->out_len == 0;
        uint32_t events = (reads ? EPOLLIN : 0u) | (client->out_len > 0 ? EPOLLOUT : 0u);

        if ((client->has_ended && client->n_waiting == 0 && client->out_len == 0) ||
            loop_io_set(&client->io, events) < 0)
                client_close(client);
}

/* Sends what is there, as far as it goes. Return: false where the connection is broken. */
static bool client_send(struct resolver_client *client)
{
        size_t sent = 0;

        while (sent < client->out_len) {
                ssize_t n = send(client->fd, client->out + sent, client->out_len - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0 && errno == EAGAIN)
                        break;
                if (n < 0)
                        return false;
                sent += (size_t)n;
        }
        if (sent > 0)
                memmove(client->out, client->out + sent, client->out_len - sent);
        client->out_len -= sent;
        return true;
}

/* Takes the whole messages out of what was received. Return: false where one is longer than it may be. */
static bool client_take(struct resolver_client *client)
{
        struct resolver_return to = {.client = client};

        while (client->len >= 2) {
                size_t len = get_be16(client->in);

                if (len > STREAM_QUERY_MAX)
                        return false;
                if (client->len - 2 < len || client->n_waiting >= STREAM_WAITING_MAX)
                        break;
                client->n_waiting++;
                resolver_take(client->resolver, span_of(client->in + 2, len), &to);
                client->len -= 2 + len;
                memmove(client->in, client->in + 2 + len, client->len);
        }
        return true;
}

/* While a connection is served here, nothing that its queries lead to closes it: see resolver_client_release(). */
static int on_stream(struct loop_io *io, uint32_t events)
{
        struct resolver_client *client = CONTAINER_OF(io, struct resolver_client, io);
        bool is_good = !(events & EPOLLERR);

        if (events & EPOLLIN && client->len < sizeof(client->in)) {
                ssize_t n = recv(client->fd, client->in + client->len, sizeof(client->in) - client->len, MSG_DONTWAIT);

                client->has_ended |= n == 0;
                is_good &= n >= 0 || errno == EAGAIN;
                if (n > 0) {
                        client->len += (size_t)n;
                        is_good &= loop_timer_set(io->loop, &client->idle, loop_now_ns(io->loop) + STREAM_IDLE_NS,
                                                  on_idle) == 0;
                }
        }
        is_good = is_good && client_take(client) && client_send(client);
        if (is_good)
                client_settle(client);
        else
                client_close(client);
        return 0;
}

static int on_connection(struct loop_io *io, uint32_t events)
{
        struct resolver_service *service = CONTAINER_OF(io, struct resolver_service, io);
        struct resolver *resolver = service->resolver;
        _cleanup_close_ int fd = accept4(service->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct resolver_client *client;

        /* Without descriptors the connection stays where it is, and would be reported again at once. */
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
                return loop_io_set(io, 0);
        if (fd < 0 || resolver->n_clients >= RESOLVER_CLIENTS_MAX)
                return 0;
        client = calloc(1, sizeof(*client));
        if (!client)
                return 0;
        client->resolver = resolver;
        if (loop_io_add(io->loop, &client->io, fd, EPOLLIN, on_stream) < 0 ||
            loop_timer_set(io->loop, &client->idle, loop_now_ns(io->loop) + STREAM_IDLE_NS, on_idle) < 0) {
                loop_io_remove(&client->io);
                free(client);
                return 0;
        }
        client->fd = TAKE_FD(fd);
        client->next = resolver->clients;
        client->place = &resolver->clients;
        if (client->next)
                client->next->place = &client->next;
        resolver->clients = client;
        resolver->n_clients++;
        return 0;
}

static void reply_stream(struct resolver_client *client, struct span message)
{
        size_t len = client->out_len + 2 + message.len;
        uint8_t *larger;

        if (len > STREAM_ANSWERS_MAX)
                return;
        if (len > client->out_allocated) {
                larger = realloc(client->out, 2 * len);
                if (!larger)
                        return;
                client->out = larger;
                client->out_allocated = 2 * len;
        }
        put_be16(client->out + client->out_len, (uint16_t)message.len);
        memcpy(client->out + client->out_len + 2, message.data, message.len);
        client->out_len = len;
}

/* ---- both ---- */

int resolver_client_serve(struct resolver_service *service, int type, struct err *err)
{
        const int on = 1;
        int r;

        /* Each works on sockets of one family, and is refused on the others. */
        if (type == SOCK_DGRAM) {
                (void)setsockopt(service->fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
                (void)setsockopt(service->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
        }
        r = loop_io_add(service->resolver->options.loop, &service->io, service->fd, EPOLLIN,
                        type == SOCK_DGRAM ? on_datagrams : on_connection);
        return r < 0 ? err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot wait for questions about names") : 0;
}

void resolver_client_reply(const struct resolver_return *to, struct span message)
{
        if (to->service)
                reply_datagram(to, message);
        else if (to->client)
                reply_stream(to->client, message);
}

void resolver_client_release(struct resolver_client *client)
{
        client->n_waiting--;
        /* What is to be sent is sent by the loop, not here: the connection may be in the middle of being read. */
        (void)loop_io_set(&client->io, client->io.events | EPOLLOUT);
}

void resolver_client_resume(struct resolver *resolver)
{
        for (size_t i = 0; i < RESOLVER_SERVICES_MAX; i++)
                if (resolver->services[i].fd >= 0)
                        (void)loop_io_set(&resolver->services[i].io, EPOLLIN);
}

void resolver_client_close_all(struct resolver *resolver)
{
        while (resolver->clients)
                client_close(resolver->clients);
}
