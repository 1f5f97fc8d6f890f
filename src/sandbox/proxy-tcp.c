/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "sandbox/inspector.h"
#include "sandbox/proxy-internal.h"

#define BACKLOG         4096
#define ACCEPTS_MAX     64 /* at one wake-up, so that open flows move too */
#define MOVES_MAX       16 /* of one direction at one wake-up */
#define HELD_MAX        ((size_t)64 * 1024)
#define SPLICE_FROM     (256 * 1024)  /* bytes in one direction after which it is worth a pipe */
#define PIPE_BYTES      (1024 * 1024) /* asked for; the kernel may give less */
#define ACCEPT_PAUSE_NS (50 * NSEC_PER_MSEC)

/* One end of a flow, and what was read from it. A flow that rests holds no memory but this. */
struct half {
        int fd;
        struct loop_io io;
        bool has_ended;                 /* no more comes from it */
        bool is_shut;                   /* nothing more goes to it */
        uint8_t *held;                  /* read, and not yet written to the other end */
        size_t held_len, held_released; /* of these bytes so many may go on */
        int pipe[2];                    /* -1: none */
        size_t in_pipe;
        uint64_t moved;
};

struct tcp_flow {
        struct proxy *proxy;
        struct tcp_flow *prev, *next;
        struct half client, server;
        struct destination to;
        struct inspector inspector;
        struct quota_flow quota;
        struct loop_timer pause; /* set while a limit of rate lets nothing be read */
        bool inspects, is_connected, is_connecting;
};

/* ---- the end of a flow ---- */

static void half_close(struct half *half, bool reset)
{
        const struct linger at_once = {.l_onoff = 1};

        loop_io_remove(&half->io);
        if (half->fd >= 0) {
                if (reset)
                        setsockopt(half->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
                close(half->fd);
        }
        for (size_t i = 0; i < 2; i++)
                if (half->pipe[i] >= 0)
                        close(half->pipe[i]);
        free(half->held);
}

static void flow_end(struct tcp_flow *flow, bool reset)
{
        struct proxy *proxy = flow->proxy;

        if (flow->is_connected)
                proxy_count(proxy, &flow->to, flow->client.moved, flow->server.moved);
        quota_close(proxy->quotas, &flow->quota);
        loop_timer_remove(&flow->pause);
        half_close(&flow->client, reset);
        half_close(&flow->server, reset);
        if (flow->prev)
                flow->prev->next = flow->next;
        else
                proxy->tcp_flows = flow->next;
        if (flow->next)
                flow->next->prev = flow->prev;
        proxy->n_tcp_flows--;
        free(flow);
}

/* ---- moving bytes ---- */

/* Return: 0, with what is not written still held; -EAGAIN where the other end takes no more now; a negative errno. */
static int write_held(struct half *from, struct half *to)
{
        while (from->held_released > 0) {
                ssize_t n = send(to->fd, from->held, from->held_released, MSG_NOSIGNAL);

                if (n < 0)
                        return -errno;
                from->moved += (uint64_t)n;
                from->held_len -= (size_t)n;
                from->held_released -= (size_t)n;
                memmove(from->held, from->held + n, from->held_len);
        }
        if (from->held_len == 0) {
                free(from->held);
                from->held = NULL;
        }
        return 0;
}

static int hold(struct half *from, const uint8_t *bytes, size_t len)
{
        uint8_t *grown = realloc(from->held, from->held_len + len);

        if (!grown)
                return -ENOMEM;
        memcpy(grown + from->held_len, bytes, len);
        from->held = grown;
        from->held_len += len;
        return 0;
}

/* Looks at what is held and lets go what may. Return: 0; -EPERM where the flow has to end. */
static int look(struct tcp_flow *flow)
{
        struct half *client = &flow->client;
        const char *why;
        size_t len;
        int r;

        if (client->held_len == client->held_released)
                return 0;
        r = inspector_read(&flow->inspector,
                           span_of(client->held + client->held_released, client->held_len - client->held_released),
                           client->has_ended, &len, &why);
        if (r < 0) {
                if (why)
                        proxy_tell(flow->proxy, &flow->to, NULL, false, why);
                return r;
        }
        client->held_released += len;
        if (flow->inspector.mode == INSPECTOR_OPEN)
                flow->inspects = false;
        return 0;
}

/* No byte more may be moved. Return: 0 where none is to come; -EAGAIN where it is not known yet; -EDQUOT, and it is
 * told, where there are some; another negative errno. */
static ssize_t read_over_limit(struct tcp_flow *flow, struct half *from)
{
        uint8_t byte;
        ssize_t n = recv(from->fd, &byte, sizeof(byte), MSG_PEEK);

        if (n <= 0)
                return n < 0 ? -errno : 0;
        proxy_tell(flow->proxy, &flow->to, NULL, false, "limits: bytes");
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

/* Return: how many bytes came; 0 where the end did; a negative errno, -EAGAIN where nothing came. */
static ssize_t read_more(struct tcp_flow *flow, struct half *from, struct half *to)
{
        uint8_t *buffer = flow->proxy->buffer;
        bool inspects = flow->inspects && from == &flow->client;
        size_t most = quota_chunk(flow->proxy->quotas, &flow->quota, PROXY_BUFFER_BYTES);
        ssize_t n, sent = 0;
        int r;

        if (most == 0)
                return read_over_limit(flow, from);
        n = recv(from->fd, buffer, most, 0);
        if (n <= 0)
                return n < 0 ? -errno : 0;
        r = count(flow, (size_t)n);
        if (r < 0)
                return r;
        if (!inspects && flow->is_connected && from->held_len == 0) {
                sent = send(to->fd, buffer, (size_t)n, MSG_NOSIGNAL);
                if (sent < 0 && errno != EAGAIN)
                        return -errno;
                sent = MAX(sent, (ssize_t)0);
                from->moved += (uint64_t)sent;
        }
        if (sent < n) {
                r = hold(from, buffer + sent, (size_t)(n - sent));
                if (r < 0)
                        return r;
                if (!inspects)
                        from->held_released = from->held_len;
        }
        return n;
}

static void make_pipe(struct half *from)
{
        if (pipe2(from->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
                from->pipe[0] = from->pipe[1] = -1; /* then bytes go on being copied */
        else
                fcntl(from->pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
}

/* Return: as read_more(). */
static ssize_t splice_more(struct tcp_flow *flow, struct half *from, struct half *to)
{
        ssize_t in = 0, out;
        int r;

        if (from->in_pipe == 0) {
                size_t most = quota_chunk(flow->proxy->quotas, &flow->quota, PIPE_BYTES);

                if (most == 0)
                        return read_over_limit(flow, from);
                in = splice(from->fd, NULL, from->pipe[1], NULL, most, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
                if (in <= 0)
                        return in < 0 ? -errno : 0;
                from->in_pipe = (size_t)in;
                r = count(flow, (size_t)in);
                if (r < 0)
                        return r;
        }
        out = splice(from->pipe[0], NULL, to->fd, NULL, from->in_pipe, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
        if (out < 0)
                return -errno;
        from->in_pipe -= (size_t)out;
        from->moved += (uint64_t)out;
        return out > 0 ? out : -EAGAIN;
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
        bool is_drained = false; /* the last read took all there was */
        ssize_t n;
        int r;

        for (unsigned i = 0; i < MOVES_MAX; i++) {
                if (flow->is_connected && from->held_released > 0) {
                        r = write_held(from, to);
                        if (r < 0)
                                return r == -EAGAIN ? 0 : r;
                }
                if (is_drained || (from->has_ended && from->in_pipe == 0) || (flow->pause.loop && from->in_pipe == 0))
                        break;
                if (from->held_len >= HELD_MAX)
                        return flow->is_connected && from->held_released == 0 ? -EMSGSIZE : 0;
                if (from->pipe[0] < 0 && from->moved >= SPLICE_FROM && !flow->inspects && from->held_len == 0)
                        make_pipe(from);
                n = from->pipe[0] >= 0 ? splice_more(flow, from, to) : read_more(flow, from, to);
                if (n == -EAGAIN)
                        break;
                if (n < 0)
                        return (int)n;
                if (n == 0)
                        from->has_ended = true;
                is_drained = n > 0 && from->pipe[0] < 0 && n < (ssize_t)PROXY_BUFFER_BYTES && !flow->pause.loop;
                if (flow->inspects && from == &flow->client) {
                        r = look(flow);
                        if (r < 0)
                                return r;
                }
        }
        if (flow->is_connected)
                hand_on_end(from, to);
        return 0;
}

static uint32_t wanted(const struct tcp_flow *flow, const struct half *half, const struct half *other)
{
        uint32_t events = 0;

        if (!flow->pause.loop && !half->has_ended && half->in_pipe == 0 && half->held_released == 0 &&
            half->held_len < HELD_MAX)
                events |= EPOLLIN;
        if (flow->is_connected && (other->held_released > 0 || other->in_pipe > 0))
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
        r = proxy_open_flow(flow->proxy, &flow->to, &flow->quota);
        if (r < 0)
                return r;
        server->fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (server->fd < 0)
                return -errno;
        setsockopt(server->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        if (connect(server->fd, (struct sockaddr *)&where, len) < 0 && errno != EINPROGRESS)
                return -errno;
        return loop_io_add(flow->proxy->sandbox->loop, &server->io, server->fd, EPOLLOUT, on_server);
}

static int on_client(struct loop_io *io, uint32_t events)
{
        struct tcp_flow *flow = CONTAINER_OF(io, struct tcp_flow, client.io);
        int r;

        r = events & EPOLLERR ? -ECONNRESET : move_both(flow);
        /* What waited for the client to say whom it wants. */
        if (r == 0 && !flow->is_connecting && (flow->client.held_released > 0 || !flow->inspects))
                r = connect_server(flow);
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
                        proxy_tell(proxy, &flow->to, NULL, false,
                                   "it asks for another host than the name that was looked up");
        } else if (!allowed) {
                proxy_tell(proxy, &flow->to, &decision, false, NULL);
        } else if (flow->inspector.mode == INSPECTOR_FIRST || flow->inspector.mode == INSPECTOR_HTTP_HEAD) {
                proxy_tell(proxy, &flow->to, &decision, true, NULL);
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
        for (size_t i = 0; i < 2; i++)
                flow->client.pipe[i] = flow->server.pipe[i] = -1;
        flow->inspector = (struct inspector){.is_allowed = is_allowed, .userdata = flow};
        flow->next = proxy->tcp_flows;
        if (flow->next)
                flow->next->prev = flow;
        proxy->tcp_flows = flow;
        proxy->n_tcp_flows++;
        return flow;
}

/* Decides as far as it can be done by the target alone. Return: 0; a negative errno that ends the flow. */
static int flow_begin(struct tcp_flow *flow)
{
        struct sockaddr_storage target;
        socklen_t len = sizeof(target);
        struct decision decision;
        bool by_name;
        int yes = 1;

        if (getsockname(flow->client.fd, (struct sockaddr *)&target, &len) < 0)
                return -errno;
        if (!destination_read(TRANSPORT_TCP, &target, &flow->to))
                return -EAFNOSUPPORT;
        switch (proxy_decide(flow->proxy, &flow->to, NULL, NULL, &by_name, &decision)) {
        case POLICY_DENIED:
                proxy_tell(flow->proxy, &flow->to, &decision, false, NULL);
                return -EPERM;
        case POLICY_PENDING:
                flow->inspects = flow->inspector.is_strict = true;
                break;
        case POLICY_ALLOWED:
                flow->inspects = by_name;
                if (!flow->inspects)
                        proxy_tell(flow->proxy, &flow->to, &decision, true, NULL);
        }
        setsockopt(flow->client.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        if (decision.outcome == POLICY_ALLOWED) {
                int r = connect_server(flow);

                if (r < 0)
                        return r;
        }
        return loop_io_add(flow->proxy->sandbox->loop, &flow->client.io, flow->client.fd, EPOLLIN, on_client);
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
                struct tcp_flow *flow;
                int fd, r;

                if (proxy->n_tcp_flows >= proxy->tcp_flows_max)
                        return pause_accepting(proxy);
                fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
                        return pause_accepting(proxy);
                if (fd < 0)
                        return 0; /* none any more, or it went away meanwhile */
                flow = flow_new(proxy, fd);
                if (!flow) {
                        close(fd);
                        return 0;
                }
                r = flow_begin(flow);
                if (r < 0)
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
        loop_timer_remove(&proxy->accept_timer);
        for (size_t i = 0; i < ARRAY_SIZE(proxy->listeners); i++) {
                loop_io_remove(&proxy->listeners[i].io);
                close_cleanup(&proxy->listeners[i].fd);
        }
}
