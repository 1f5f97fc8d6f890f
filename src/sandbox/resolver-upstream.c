/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/macro.h"
#include "sandbox/resolver-internal.h"

/* Two tries of each server, the second for twice as long, are over before a usual client gives up (5 s). */
#define TIMEOUT_MS 1500
#define TRIES      2

#define UDP_BYTES 1232 /* no fragments on any path */

static int on_timer(struct loop_timer *timer);

/* Sets the timer to when c-ares has to look after its queries next. */
static void arm(struct resolver *resolver)
{
        struct timeval left, *next = ares_timeout(resolver->channel, NULL, &left);
        int64_t wait_ns;

        if (!next) {
                loop_timer_remove(&resolver->upstream_timer);
                return;
        }
        wait_ns = (int64_t)next->tv_sec * NSEC_PER_SEC + (int64_t)next->tv_usec * NSEC_PER_USEC;
        /* Without memory for the timer, the next packet does its work. */
        (void)loop_timer_set(resolver->options.loop, &resolver->upstream_timer, clock_now_ns(CLOCK_MONOTONIC) + wait_ns,
                             on_timer);
}

static int on_timer(struct loop_timer *timer)
{
        struct resolver *resolver = CONTAINER_OF(timer, struct resolver, upstream_timer);

        ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
        arm(resolver);
        return 0;
}

static int on_io(struct loop_io *io, uint32_t events)
{
        struct resolver *resolver = CONTAINER_OF(io, struct resolver_upstream, io)->resolver;
        int fd = io->fd;

        /* An error is found by reading. @io may be gone afterwards. */
        ares_process_fd(resolver->channel, events & ~(uint32_t)EPOLLOUT ? fd : ARES_SOCKET_BAD,
                        events & EPOLLOUT ? fd : ARES_SOCKET_BAD);
        arm(resolver);
        return 0;
}

/* c-ares says what it waits for at a socket of its own; for nothing, right before it closes it. */
static void on_socket_state(void *userdata, ares_socket_t fd, int readable, int writable)
{
        uint32_t events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u);
        struct resolver *resolver = userdata;
        struct resolver_upstream **at = &resolver->upstreams, *upstream;

        while (*at && (*at)->io.fd != fd)
                at = &(*at)->next;
        upstream = *at;
        if (events == 0) {
                if (!upstream)
                        return;
                *at = upstream->next;
                loop_io_remove(&upstream->io);
                free(upstream);
                return;
        }
        if (upstream) {
                (void)loop_io_set(&upstream->io, events);
                return;
        }
        /* A socket that cannot be watched is one from which nothing comes: its queries time out. */
        upstream = calloc(1, sizeof(*upstream));
        if (!upstream)
                return;
        upstream->resolver = resolver;
        if (loop_io_add(resolver->options.loop, &upstream->io, fd, events, on_io) < 0) {
                free(upstream);
                return;
        }
        upstream->next = resolver->upstreams;
        resolver->upstreams = upstream;
}

int resolver_upstream_open(struct resolver *resolver, struct err *err)
{
        const int mask =
                ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB | ARES_OPT_EDNSPSZ;
        struct ares_options options = {
                .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ARES_FLAG_EDNS,
                .timeout = TIMEOUT_MS,
                .tries = TRIES,
                .sock_state_cb = on_socket_state,
                .sock_state_cb_data = resolver,
                .ednspsz = UDP_BYTES,
        };
        int status = ares_library_init(ARES_LIB_INIT_ALL);

        if (status != ARES_SUCCESS)
                return err_set(err, ERR_ENVIRONMENT, EIO, "cannot begin to resolve names: %s", ares_strerror(status));
        resolver->has_library = true;
        status = ares_init_options(&resolver->channel, &options, mask);
        if (status != ARES_SUCCESS)
                return err_set(err, ERR_ENVIRONMENT, EIO, "cannot read which servers resolve names: %s",
                               ares_strerror(status));
        resolver->has_channel = true;
        if (!resolver->options.servers)
                return 0;
        status = ares_set_servers_ports_csv(resolver->channel, resolver->options.servers);
        if (status != ARES_SUCCESS)
                return err_set(err, ERR_USAGE, EINVAL,
                               "\"%s\" names no servers: %s; expected addresses such as 192.0.2.53 or "
                               "[2001:db8::53]:5353, with commas between",
                               resolver->options.servers, ares_strerror(status));
        return 0;
}

void resolver_upstream_close(struct resolver *resolver)
{
        if (resolver->has_channel)
                ares_destroy(resolver->channel); /* ends all queries, and closes all sockets */
        if (resolver->has_library)
                ares_library_cleanup();
        loop_timer_remove(&resolver->upstream_timer);
        resolver->has_channel = resolver->has_library = false;
}

static void on_response(void *userdata, int status, int timeouts, unsigned char *bytes, int len)
{
        resolver_finish(userdata, span_of(bytes, bytes && len > 0 ? (size_t)len : 0), status);
}

void resolver_upstream_ask(struct resolver_query *query)
{
        struct resolver *resolver = query->resolver;

        ares_query(resolver->channel, query->name.text, DNS_CLASS_IN, query->message.type, on_response, query);
        arm(resolver);
}
