/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/relay.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/macro.h"

#define ROOM 65536

static ssize_t take(struct relay *relay)
{
        return relay->from_is_socket ? recv(relay->from_fd, relay->bytes, ROOM, MSG_DONTWAIT)
                                     : read(relay->from_fd, relay->bytes, ROOM);
}

static ssize_t give(struct relay *relay)
{
        const char *bytes = relay->bytes + relay->start;

        return relay->to_is_socket ? send(relay->to_fd, bytes, relay->len, MSG_DONTWAIT | MSG_NOSIGNAL)
                                   : write(relay->to_fd, bytes, relay->len);
}

static bool is_for_later(int errnum)
{
        return errnum == EAGAIN || errnum == EINTR;
}

static int on_readable(struct loop_io *io, uint32_t events);
static int on_writable(struct loop_io *io, uint32_t events);

/* One descriptor is waited for at a time: one that has hung up and is not wanted now would wake the loop for ever. */
static int wait_for(struct relay *relay, bool writing)
{
        struct loop_io *now = writing ? &relay->to_io : &relay->from_io;
        struct loop_io *other = writing ? &relay->from_io : &relay->to_io;

        loop_io_remove(other);
        if (now->loop)
                return 0;
        return loop_io_add(relay->loop, now, writing ? relay->to_fd : relay->from_fd, writing ? EPOLLOUT : EPOLLIN,
                           writing ? on_writable : on_readable);
}

static void end(struct relay *relay)
{
        relay_done(relay);
        loop_stop(relay->loop);
}

/* Bytes that nobody takes are dropped, as they are when a reader leaves a pipe. */
static int write_out(struct relay *relay)
{
        while (relay->len > 0) {
                ssize_t n = give(relay);

                if (n < 0 && is_for_later(errno))
                        return wait_for(relay, true);
                if (n < 0) {
                        end(relay);
                        return 0;
                }
                relay->start += (size_t)n;
                relay->len -= (size_t)n;
        }
        return wait_for(relay, false);
}

static int on_writable(struct loop_io *io, uint32_t events)
{
        return write_out(CONTAINER_OF(io, struct relay, to_io));
}

static int on_readable(struct loop_io *io, uint32_t events)
{
        struct relay *relay = CONTAINER_OF(io, struct relay, from_io);
        ssize_t n = take(relay);

        if (n < 0 && is_for_later(errno))
                return 0;
        if (n <= 0) { /* a terminal whose other end is closed fails with EIO */
                end(relay);
                return 0;
        }
        relay->start = 0;
        relay->len = (size_t)n;
        return write_out(relay);
}

int relay_start(struct relay *relay, struct loop *loop)
{
        relay->loop = loop;
        relay->bytes = malloc(ROOM);
        if (!relay->bytes)
                return -ENOMEM;
        return wait_for(relay, false);
}

bool relay_is_running(const struct relay *relay)
{
        return relay->bytes;
}

void relay_done(struct relay *relay)
{
        loop_io_remove(&relay->from_io);
        loop_io_remove(&relay->to_io);
        free(relay->bytes);
        relay->bytes = NULL;
        if (relay->owns_to && relay->to_fd >= 0)
                close(relay->to_fd);
        relay->to_fd = -1;
}
