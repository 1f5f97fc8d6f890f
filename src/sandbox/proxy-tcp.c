/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "sandbox/askers.h"
#include "sandbox/inspector.h"
#include "sandbox/proxy-internal.h"

#define BACKLOG         4096
#define ACCEPTS_MAX     64                        /* at one wake-up, so that open flows move too */
#define MOVES_MAX       16                        /* of one direction at one wake-up */
#define HELD_MAX        (64 * 1024)               /* of one flow */
#define HELD_TOTAL_MAX  ((size_t)4 * 1024 * 1024) /* of all of them */
#define SPLICE_FROM     (256 * 1024)              /* bytes in one direction after which it is worth a pipe */
#define SILENCE_NS      (5 * NSEC_PER_SEC)
#define ACCEPT_PAUSE_NS (50 * NSEC_PER_MSEC)

/* One end of a flow. What the other end does not take yet stays in the kernel, whose buffers hold back who sends: all
 * that is kept here are the bytes of which the inspector cannot yet tell what they are. Of @released and @in_pipe at
 * most one is not 0. */
struct half {
        int fd;
        struct loop_io io;
        bool has_ended; /* no more comes from it */
        bool is_shut;   /* nothing more goes to it */
        uint32_t held_len, held_size;
        uint8_t *held;     /* read, and not yet written to the other end */
        uint32_t released; /* so many may go on that the other end did not take yet: of those held, or else of those
                            * that are still to be read */
        uint32_t in_pipe;
        struct proxy_pipe *pipe; /* only while something is in it */
        uint64_t moved;
};

struct tcp_flow {
        struct proxy *proxy;
        struct tcp_flow *prev, *next;
        struct half client, server;
        struct destination to;
        struct inspector inspector;
        struct quota_flow quota;
        struct loop_timer pause;   /* set while a limit of rate lets nothing be read */
        struct loop_timer silence; /* set until a flow that has to say whom it wants has said it */
        bool inspects, is_connected, is_connecting;
};

/* As proxy_tell(). */
static void tell(const struct tcp_flow *flow, const struct decision *decision, bool allowed, const char *why)
{
        struct sockaddr_storage address;
        socklen_t len = sizeof(address);
        struct destination from;
        bool is_known = askers_looks_up(flow->proxy->sandbox->askers) &&
                        getpeername(flow->client.fd, (struct sockaddr *)&address, &len) == 0 &&
                        destination_read(TRANSPORT_TCP, &address, &from);

        proxy_tell(flow->proxy, is_known ? &from : NULL, &flow->to, decision, allowed, why);
}

/* ---- the end of a flow ---- */

static void close_at_once(int fd)
{
        const struct linger at_once = {.l_onoff = 1};

        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        close(fd);
}

static void drop_held(struct proxy *proxy, struct half *half)
{
        proxy->held_bytes -= half->held_size;
        half->held_len = half->held_size = 0;
        free(half->held);
        half->held = NULL;
}

static void half_close(struct proxy *proxy, struct half *half, bool reset)
{
        loop_io_remove(&half->io);
        if (half->fd >= 0 && reset)
                close_at_once(half->fd);
        else if (half->fd >= 0)
                close(half->fd);
        proxy_pipe_give(proxy, TAKE_PTR(half->pipe), half->in_pipe == 0);
        drop_held(proxy, half);
}

static void flow_end(struct tcp_flow *flow, bool reset)
{
        struct proxy *proxy = flow->proxy;

        if (flow->is_connected)
                proxy_count(proxy, &flow->to, flow->client.moved, flow->server.moved);
        quota_close(proxy->quotas, &flow->quota);
        loop_timer_remove(&flow->pause);
        loop_timer_remove(&flow->silence);
        half_close(proxy, &flow->client, reset);
        half_close(proxy, &flow->server, reset);
        if (flow->prev)
                flow->prev->next = flow->next;
        else
                proxy->tcp_flows = flow->next;
        if (flow->next)
                flow->next->prev = flow->prev;
        proxy->n_tcp_flows--;
        free(flow);
}

/* ---- what is held ---- */

/* Return: 0, or -EAGAIN where the other end takes no more now; another negative errno. */
static int write_held(struct tcp_flow *flow, struct half *from, struct half *to)
{
        while (from->released > 0) {
                ssize_t n = send(to->fd, from->held, from->released, MSG_NOSIGNAL);

                if (n < 0)
                        return -errno;
                from->moved += (uint64_t)n;
                from->held_len -= (uint32_t)n;
                from->released -= (uint32_t)n;
                memmove(from->held, from->held + n, from->held_len);
        }
        if (from->held_len == 0)
                drop_held(flow->proxy, from);
        return 0;
}

/* Return: 0; a negative errno that ends the flow. */
static int hold(struct tcp_flow *flow, const uint8_t *bytes, size_t len)
{
        struct half *client = &flow->client;
        struct proxy *proxy = flow->proxy;
        size_t size = MAX(client->held_len + len, (size_t)client->held_size);
        uint8_t *grown;

        if (proxy->held_bytes - client->held_size + size > HELD_TOTAL_MAX) {
                tell(flow, NULL, false, "too many connections have not said yet whom they ask for");
                return -ENOBUFS;
        }
        grown = realloc(client->held, size);
        if (!grown)
                return -ENOMEM;
        memcpy(grown + client->held_len, bytes, len);
        client->held = grown;
        client->held_len += (uint32_t)len;
        proxy->held_bytes += size - client->held_size;
        client->held_size = (uint32_t)size;
        return 0;
}

/* Looks at what the client says next and lets go what may. Return: 0; -EPERM where the flow has to end. */
static int look(struct tcp_flow *flow, const uint8_t *bytes, size_t len)
{
        struct half *client = &flow->client;
        const char *why;
        size_t passes;
        int r;

        if (len == 0)
                return 0;
        r = inspector_read(&flow->inspector, span_of(bytes, len), client->has_ended, &passes, &why);
        if (r < 0) {
                if (why)
                        tell(flow, NULL, false, why);
                return r;
        }
        client->released += (uint32_t)passes;
        if (flow->inspector.mode == INSPECTOR_OPEN)
                flow->inspects = false;
        return 0;
}

static int look_at_held(struct tcp_flow *flow)
{
        const struct half *client = &flow->client;

        return look(flow, client->held + client->released, client->held_len - client->released);
}

/* ---- moving bytes ---- */

/* No byte more may be moved. Return: 0 where none is to come; -EAGAIN where it is not known yet; -EDQUOT, and it is
 * told, where there are some; another negative errno. */
static ssize_t read_over_limit(struct tcp_flow *flow, struct half *from)
{
        uint8_t byte;
        ssize_t n = recv(from->fd, &byte, sizeof(byte), MSG_PEEK);

        if (n < 0)
                return -errno;
        if (n == 0) {
                from->has_ended = true;
                return 0;
        }
        tell(flow, NULL, false, "limits: bytes");
        return -EDQUOT;
}

static int on_resume(struct loop_timer *timer);

/* Counts what was read; over a limit of rate, nothing is read for a while. Return: 0 or a negative errno. */
static int count(struct tcp_flow *flow, size_t len)
{
        struct loop *loop = flow->proxy->sandbox->loop;
        int64_t now_ns = loop_now_ns(loop), wait_ns;
        int r;

        r = quota_move(flow->proxy->quotas, &flow->quota, len, now_ns, &wait_ns);
        if (r == 0 && wait_ns > 0)
                r = loop_timer_set(loop, &flow->pause, now_ns + wait_ns, on_resume);
        return r;
}

/* Reads on where part of what the inspector has to see is held. Return: how many bytes came; 0 where the end did; a
 * negative errno. */
static ssize_t read_held(struct tcp_flow *flow)
{
        struct half *client = &flow->client;
        uint8_t *buffer = flow->proxy->buffer;
        size_t most = quota_chunk(flow->proxy->quotas, &flow->quota, HELD_MAX - client->held_len);
        ssize_t n;
        int r;

        if (client->held_len >= HELD_MAX)
                return -EMSGSIZE;
        if (most == 0)
                return read_over_limit(flow, client);
        n = recv(client->fd, buffer, most, 0);
        if (n < 0)
                return -errno;
        if (n == 0)
                client->has_ended = true;
        r = count(flow, (size_t)n);
        if (r == 0)
                r = hold(flow, buffer, (size_t)n);
        if (r == 0)
                r = look_at_held(flow);
        return r < 0 ? r : n;
}

/* Takes bytes that are in the buffer already out of the kernel. Return: 0 or a negative errno. */
static int discard(struct tcp_flow *flow, struct half *from, size_t len)
{
        for (size_t left = len; left > 0;) {
                ssize_t n = recv(from->fd, NULL, left, MSG_TRUNC);

                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                left -= (size_t)n;
        }
        return count(flow, len);
}

/* Sends what may go on of @len bytes that were looked at in the kernel's buffer. Return: how many went; a negative
 * errno. */
static ssize_t send_released(struct tcp_flow *flow, struct half *from, struct half *to, size_t len)
{
        ssize_t n;

        if (!flow->is_connected || from->released == 0)
                return 0;
        n = send(to->fd, flow->proxy->buffer, MIN(len, (size_t)from->released), MSG_NOSIGNAL);
        if (n < 0)
                return errno == EAGAIN ? 0 : -errno;
        from->released -= (uint32_t)n;
        from->moved += (uint64_t)n;
        return n;
}

/* Bytes leave the kernel's buffer when they have been sent: so none is ever kept here for an end that is slow. Those of
 * the client that say nothing yet are, since their number alone would wake the loop for ever.
 * Return: how many bytes came; 0 where the end did; a negative errno, -EAGAIN where nothing (more) can be done now. */
static ssize_t read_more(struct tcp_flow *flow, struct half *from, struct half *to)
{
        bool inspects = flow->inspects && from == &flow->client, looks = inspects && from->released == 0;
        size_t most = quota_chunk(flow->proxy->quotas, &flow->quota, PROXY_BUFFER_BYTES), kept;
        uint8_t *buffer = flow->proxy->buffer;
        ssize_t n, sent;
        int r = 0;

        if (most == 0)
                return read_over_limit(flow, from);
        n = recv(from->fd, buffer, most, MSG_PEEK);
        if (n < 0)
                return -errno;
        if (n == 0) {
                from->has_ended = true;
                return 0;
        }
        if (looks)
                r = look(flow, buffer, (size_t)n);
        else if (!inspects)
                from->released = (uint32_t)n;
        sent = r < 0 ? r : send_released(flow, from, to, (size_t)n);
        if (sent < 0)
                return sent;
        kept = looks && from->released == 0 ? (size_t)(n - sent) : 0;
        if (kept > 0)
                r = hold(flow, buffer + sent, kept);
        if (r == 0)
                r = discard(flow, from, (size_t)sent + kept);
        if (r == 0 && (from->released > 0 || (sent + (ssize_t)kept == n && (size_t)n < most)))
                r = -EAGAIN; /* the other end takes no more; or that was all there is */
        return r < 0 ? r : n;
}

/* Return: as read_more(). */
static ssize_t splice_more(struct tcp_flow *flow, struct half *from, struct half *to)
{
        ssize_t in = 0, out;
        int r;

        if (from->in_pipe == 0) {
                size_t most = quota_chunk(flow->proxy->quotas, &flow->quota, PROXY_PIPE_BYTES);

                if (most == 0)
                        return read_over_limit(flow, from);
                in = splice(from->fd, NULL, from->pipe->fds[1], NULL, most, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
                if (in < 0)
                        return -errno;
                if (in == 0) {
                        from->has_ended = true;
                        return 0;
                }
                from->in_pipe = (uint32_t)in;
                r = count(flow, (size_t)in);
                if (r < 0)
                        return r;
        }
        out = splice(from->pipe->fds[0], NULL, to->fd, NULL, from->in_pipe, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
        if (out < 0)
                return -errno;
        from->in_pipe -= (uint32_t)out;
        from->moved += (uint64_t)out;
        return out > 0 ? out : -EAGAIN;
}

/* Return: as read_more(). */
static ssize_t move_some(struct tcp_flow *flow, struct half *from, struct half *to)
{
        bool inspects = flow->inspects && from == &flow->client;

        if (from->held_len > 0)
                return read_held(flow);
        if (from->moved >= SPLICE_FROM && !inspects && from->released == 0 && !from->pipe)
                from->pipe = proxy_pipe_take(flow->proxy);
        return from->pipe ? splice_more(flow, from, to) : read_more(flow, from, to);
}

/* What has gone one way goes on as the end of it does. */
static void hand_on_end(struct half *from, struct half *to)
{
        if (!from->has_ended || from->held_len > 0 || from->in_pipe > 0 || to->is_shut)
                return;
        shutdown(to->fd, SHUT_WR);
        to->is_shut = true;
}

/* Moves what there is from one end to the other. Return: 0, or a negative errno that ends the flow. */
static int move(struct tcp_flow *flow, struct half *from, struct half *to)
{
        ssize_t n = 0;
        int r;

        for (unsigned i = 0; i < MOVES_MAX && n >= 0; i++) {
                if (!flow->is_connected && (!flow->inspects || from->released > 0))
                        break; /* it waits in the kernel until there is somebody to send it to */
                if (flow->is_connected && from->held_len > 0 && from->released > 0) {
                        r = write_held(flow, from, to);
                        if (r < 0)
                                return r == -EAGAIN ? 0 : r;
                }
                if (from->in_pipe == 0 && (from->has_ended || flow->pause.loop))
                        break;
                n = move_some(flow, from, to);
        }
        if (from->in_pipe == 0)
                proxy_pipe_give(flow->proxy, TAKE_PTR(from->pipe), from->in_pipe == 0);
        if (n < 0 && n != -EAGAIN)
                return (int)n;
        if (flow->is_connected)
                hand_on_end(from, to);
        return 0;
}

static uint32_t wanted(const struct tcp_flow *flow, const struct half *half, const struct half *other)
{
        uint32_t events = 0;

        if (!flow->pause.loop && !half->has_ended && half->in_pipe == 0 && half->released == 0 &&
            (flow->is_connected || flow->inspects))
                events |= EPOLLIN;
        if (flow->is_connected &&
            (other->in_pipe > 0 || (other->released > 0 && (other->held_len > 0 || !flow->pause.loop))))
                events |= EPOLLOUT;
        return events;
}

/* One end that is through with both directions would report that for ever. */
static int wait_for_half(struct tcp_flow *flow, struct half *half, const struct half *other)
{
        if (half->has_ended && half->is_shut)
                loop_io_remove(&half->io);
        return half->io.loop ? loop_io_set(&half->io, wanted(flow, half, other)) : 0;
}

/* After something moved: wait for what comes next, or be done. */
static void settle(struct tcp_flow *flow, int r)
{
        struct half *client = &flow->client, *server = &flow->server;

        if (r == 0 && client->is_shut && server->is_shut) {
                flow_end(flow, false);
                return;
        }
        if (r == 0)
                r = wait_for_half(flow, client, server);
        if (r == 0 && flow->is_connected)
                r = wait_for_half(flow, server, client);
        if (r < 0)
                flow_end(flow, true);
}

/* ---- connecting ---- */

static int move_both(struct tcp_flow *flow)
{
        int r = move(flow, &flow->client, &flow->server);

        return r < 0 || !flow->is_connected ? r : move(flow, &flow->server, &flow->client);
}

static int on_resume(struct loop_timer *timer)
{
        struct tcp_flow *flow = CONTAINER_OF(timer, struct tcp_flow, pause);

        settle(flow, move_both(flow));
        return 0;
}

/* There is no room, or a limit of the kernel's. Return: @r. */
static int cannot_open(const struct tcp_flow *flow, int r)
{
        if (r == -EMFILE || r == -ENFILE)
                tell(flow, NULL, false, "this host has no more descriptors");
        return r;
}

static int on_server(struct loop_io *io, uint32_t events)
{
        struct tcp_flow *flow = CONTAINER_OF(io, struct tcp_flow, server.io);
        int failure = 0;
        socklen_t len = sizeof(failure);

        if (!flow->is_connected) {
                if (getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &failure, &len) < 0 || failure != 0) {
                        flow_end(flow, true);
                        return 0;
                }
                flow->is_connected = true;
                events &= ~(uint32_t)EPOLLERR;
        }
        settle(flow, events & EPOLLERR ? -ECONNRESET : move_both(flow));
        return 0;
}

/* Return: 0, or a negative errno. */
static int connect_server(struct tcp_flow *flow)
{
        struct half *server = &flow->server;
        struct sockaddr_storage where;
        socklen_t len = ip_prefix_sockaddr(&flow->to.address, flow->to.port, &where);
        int yes = 1, r;

        flow->is_connecting = true;
        loop_timer_remove(&flow->silence);
        r = proxy_open_flow(flow->proxy, &flow->to, &flow->quota);
        if (r < 0)
                return r;
        server->fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (server->fd < 0)
                return cannot_open(flow, -errno);
        setsockopt(server->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        if (connect(server->fd, (struct sockaddr *)&where, len) == 0)
                flow->is_connected = true; /* on this host that can be */
        else if (errno != EINPROGRESS)
                return -errno;
        return loop_io_add(flow->proxy->sandbox->loop, &server->io, server->fd, flow->is_connected ? EPOLLIN : EPOLLOUT,
                           on_server);
}

static int on_client(struct loop_io *io, uint32_t events)
{
        struct tcp_flow *flow = CONTAINER_OF(io, struct tcp_flow, client.io);
        int r;

        r = events & EPOLLERR ? -ECONNRESET : move_both(flow);
        /* What waited for the client to say whom it wants. */
        if (r == 0 && !flow->is_connecting && (flow->client.released > 0 || !flow->inspects)) {
                r = connect_server(flow);
                if (r == 0)
                        r = move_both(flow);
        }
        if (r == 0 && !flow->is_connecting && flow->client.has_ended)
                r = -ECONNRESET;
        settle(flow, r);
        return 0;
}

/* ---- accepting ---- */

/* The inspector's question. A name that is said has to be one that may be reached at this address, whatever name the
 * address was given for. */
static bool is_allowed(void *userdata, const char *sni, const char *http_host)
{
        struct tcp_flow *flow = userdata;
        const struct proxy *proxy = flow->proxy;
        const char *said = sni && sni[0] ? sni : http_host;
        struct decision decision;
        bool allowed, by_name;

        allowed = proxy_decide(proxy, &flow->to, sni, http_host, &by_name, &decision) == POLICY_ALLOWED;
        if (allowed && by_name && said && said[0]) {
                struct target target = {.transport = TRANSPORT_TCP,
                                        .address = flow->to.address,
                                        .port = flow->to.port,
                                        .name = said,
                                        .sni = sni,
                                        .http_host = http_host};

                policy_decide(proxy->sandbox->policy, &target, &decision);
                allowed = decision.outcome == POLICY_ALLOWED;
                if (!allowed)
                        tell(flow, NULL, false, "it asks for another host than the name that was looked up");
        } else if (!allowed) {
                tell(flow, &decision, false, NULL);
        } else if (flow->inspector.mode == INSPECTOR_FIRST || flow->inspector.mode == INSPECTOR_HTTP_HEAD) {
                tell(flow, &decision, true, NULL);
        }
        return allowed;
}

static struct tcp_flow *flow_new(struct proxy *proxy, int fd)
{
        struct tcp_flow *flow = calloc(1, sizeof(*flow));

        if (!flow)
                return NULL;
        flow->proxy = proxy;
        flow->client.fd = fd;
        flow->server.fd = -1;
        flow->inspector = (struct inspector){.is_allowed = is_allowed, .userdata = flow};
        flow->next = proxy->tcp_flows;
        if (flow->next)
                flow->next->prev = flow;
        proxy->tcp_flows = flow;
        proxy->n_tcp_flows++;
        return flow;
}

/* A client whose server speaks first, or one that never ends its ClientHello, would wait for ever. */
static int on_silence(struct loop_timer *timer)
{
        struct tcp_flow *flow = CONTAINER_OF(timer, struct tcp_flow, silence);

        tell(flow, NULL, false, "it did not say in time which host it is for (sni, http-host)");
        flow_end(flow, true);
        return 0;
}

/* Decides as far as it can be done by the target alone. Return: 0; a negative errno that ends the flow. */
static int flow_begin(struct tcp_flow *flow)
{
        struct loop *loop = flow->proxy->sandbox->loop;
        struct sockaddr_storage target;
        socklen_t len = sizeof(target);
        struct decision decision;
        bool by_name;
        int yes = 1, r;

        if (getsockname(flow->client.fd, (struct sockaddr *)&target, &len) < 0)
                return -errno;
        if (!destination_read(TRANSPORT_TCP, &target, &flow->to))
                return -EAFNOSUPPORT;
        switch (proxy_decide(flow->proxy, &flow->to, NULL, NULL, &by_name, &decision)) {
        case POLICY_DENIED:
                tell(flow, &decision, false, NULL);
                return -EPERM;
        case POLICY_PENDING:
                flow->inspects = flow->inspector.is_strict = true;
                break;
        case POLICY_ALLOWED:
                flow->inspects = by_name;
        }
        setsockopt(flow->client.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        if (decision.outcome == POLICY_ALLOWED) {
                r = connect_server(flow);
                if (!flow->inspects) /* once it is on its way, since it may take a while to find out who asks */
                        tell(flow, &decision, true, NULL);
        } else {
                r = loop_timer_set(loop, &flow->silence, loop_now_ns(loop) + SILENCE_NS, on_silence);
        }
        if (r < 0)
                return r;
        return loop_io_add(loop, &flow->client.io, flow->client.fd, EPOLLIN, on_client);
}

/* Whether there is room for one more; flows of datagrams make some, since nobody tells when they are over. */
static bool has_room(struct proxy *proxy)
{
        size_t wanted = 2 * (proxy->n_tcp_flows + 1);

        if (proxy->n_tcp_flows >= proxy->tcp_flows_max)
                return false;
        while (wanted + proxy->n_udp_flows > proxy->descriptors_max)
                proxy_udp_end_oldest(proxy);
        return true;
}

/* Ends a connection at once that there is no room for, so that who made it does not wait. */
static void refuse(const struct proxy *proxy, int fd)
{
        struct sockaddr_storage target;
        socklen_t len = sizeof(target);
        struct destination to;
        char why[96];

        snprintf(why, sizeof(why), "%zu connections are open, and no more fit in the limit of descriptors (ulimit -n)",
                 proxy->n_tcp_flows);
        if (getsockname(fd, (struct sockaddr *)&target, &len) == 0 && destination_read(TRANSPORT_TCP, &target, &to))
                proxy_tell(proxy, NULL, &to, NULL, false, why);
        close_at_once(fd);
}

/* Where not even a descriptor to accept with is left, a spare one is given up for that long. Return: whether a
 * connection was refused; errno is as it was where none was. */
static bool refuse_with_spare(struct proxy *proxy, int listener_fd)
{
        int errnum = errno, fd;

        close(proxy->spare_fd);
        fd = accept4(listener_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
                refuse(proxy, fd);
        proxy->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        errno = errnum;
        return fd >= 0;
}

static int resume_accepting(struct loop_timer *timer)
{
        struct proxy *proxy = CONTAINER_OF(timer, struct proxy, accept_timer);

        for (size_t i = 0; i < ARRAY_SIZE(proxy->listeners); i++)
                if (proxy->listeners[i].io.loop)
                        loop_io_set(&proxy->listeners[i].io, EPOLLIN);
        return 0;
}

static int pause_accepting(struct proxy *proxy)
{
        for (size_t i = 0; i < ARRAY_SIZE(proxy->listeners); i++)
                if (proxy->listeners[i].io.loop)
                        loop_io_set(&proxy->listeners[i].io, 0);
        return loop_timer_set(proxy->sandbox->loop, &proxy->accept_timer,
                              clock_now_ns(CLOCK_MONOTONIC) + ACCEPT_PAUSE_NS, resume_accepting);
}

static int on_listener(struct loop_io *io, uint32_t events)
{
        struct proxy *proxy = CONTAINER_OF(io, struct proxy_entry, io)->proxy;

        for (unsigned i = 0; i < ACCEPTS_MAX; i++) {
                int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                struct tcp_flow *flow;

                if (fd < 0 && (errno == EMFILE || errno == ENFILE) && proxy->spare_fd >= 0 &&
                    refuse_with_spare(proxy, io->fd))
                        continue;
                if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
                        return pause_accepting(proxy);
                if (fd < 0)
                        return 0; /* none any more, or it went away meanwhile */
                if (!has_room(proxy)) {
                        refuse(proxy, fd);
                        continue;
                }
                flow = flow_new(proxy, fd);
                if (!flow) {
                        close_at_once(fd);
                        return 0;
                }
                if (flow_begin(flow) < 0)
                        flow_end(flow, true);
        }
        return 0;
}

int proxy_tcp_open(struct proxy *proxy, struct err *err)
{
        static const int families[] = {AF_INET, AF_INET6};

        for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
                int fd = proxy_listen(families[i], SOCK_STREAM);

                if (fd < 0 && families[i] == AF_INET)
                        return err_set_errno(err, ERR_UNSUPPORTED, -fd, "cannot listen for connections");
                proxy->listeners[i].fd = MAX(fd, -1);
        }
        return 0;
}

int proxy_tcp_serve(struct proxy *proxy, struct err *err)
{
        proxy->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        for (size_t i = 0; i < ARRAY_SIZE(proxy->listeners); i++) {
                struct proxy_entry *entry = &proxy->listeners[i];
                int r;

                if (entry->fd < 0)
                        continue;
                r = listen(entry->fd, BACKLOG) < 0 ? -errno : 0;
                if (r == 0)
                        r = loop_io_add(proxy->sandbox->loop, &entry->io, entry->fd, EPOLLIN, on_listener);
                if (r < 0)
                        return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot wait for connections");
        }
        return 0;
}

void proxy_tcp_close(struct proxy *proxy)
{
        while (proxy->tcp_flows)
                flow_end(proxy->tcp_flows, true);
        proxy_pipes_close(proxy);
        close_cleanup(&proxy->spare_fd);
        loop_timer_remove(&proxy->accept_timer);
        for (size_t i = 0; i < ARRAY_SIZE(proxy->listeners); i++) {
                loop_io_remove(&proxy->listeners[i].io);
                close_cleanup(&proxy->listeners[i].fd);
        }
}
