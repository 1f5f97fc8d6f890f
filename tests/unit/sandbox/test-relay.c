/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/relay.h"

#include <signal.h>
#include <sys/socket.h>

#include "tests/test.h"

#define MANY (1u << 20) /* more than fits on the way */

struct writer {
        struct loop_io io;
        size_t n;
};

static uint8_t pattern(size_t i)
{
        return (uint8_t)(i * 7 + i / 251);
}

static int on_room(struct loop_io *io, uint32_t events)
{
        struct writer *w = CONTAINER_OF(io, struct writer, io);
        uint8_t byte[997];
        size_t want = MIN(sizeof(byte), MANY - w->n);
        ssize_t n;

        for (size_t i = 0; i < want; i++)
                byte[i] = pattern(w->n + i);
        n = send(io->fd, byte, want, MSG_DONTWAIT | MSG_NOSIGNAL);
        w->n += n > 0 ? (size_t)n : 0;
        if (w->n == MANY) {
                shutdown(io->fd, SHUT_WR);
                loop_io_remove(io);
        }
        return 0;
}

static int on_bytes(struct loop_io *io, uint32_t events)
{
        struct writer *r = CONTAINER_OF(io, struct writer, io);
        uint8_t bytes[4099];
        ssize_t n = read(io->fd, bytes, sizeof(bytes));

        assert_true(n >= 0);
        for (ssize_t i = 0; i < n; i++)
                assert_int_equal(bytes[i], pattern(r->n + (size_t)i));
        r->n += (size_t)n;
        if (n == 0)
                loop_stop(io->loop);
        return 0;
}

/* All that a socket gave before its end arrives at the pipe, whose end then comes too. */
static void everything_arrives_in_order_and_then_the_end(void **state)
{
        _cleanup_loop_ struct loop *loop = NULL;
        struct relay relay = RELAY_INIT;
        struct writer in = {0}, out = {0};
        struct err err = {0};
        int sockets[2], ends[2];

        assert_int_equal(loop_new(&loop, &err), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
        relay.from_fd = sockets[1];
        relay.from_is_socket = true;
        relay.to_fd = ends[1];
        relay.owns_to = true;
        assert_int_equal(relay_start(&relay, loop), 0);
        assert_int_equal(loop_io_add(loop, &in.io, sockets[0], EPOLLOUT, on_room), 0);
        assert_int_equal(loop_io_add(loop, &out.io, ends[0], EPOLLIN, on_bytes), 0);
        while (out.n < MANY || relay_is_running(&relay))
                assert_int_equal(loop_run(loop), 0);
        assert_int_equal(out.n, MANY);
        loop_io_remove(&out.io);
        relay_done(&relay);
        close(sockets[0]);
        close(sockets[1]);
        close(ends[0]);
}

/* Nobody reads any more: the relay ends, and takes no signal for it. */
static void a_reader_that_left_ends_it(void **state)
{
        _cleanup_loop_ struct loop *loop = NULL;
        struct relay relay = RELAY_INIT;
        struct err err = {0};
        int sockets[2], ends[2];

        signal(SIGPIPE, SIG_IGN); /* as in the supervisor */
        assert_int_equal(loop_new(&loop, &err), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
        assert_int_equal(pipe(ends), 0);
        close(ends[0]);
        relay.from_fd = sockets[1];
        relay.from_is_socket = true;
        relay.to_fd = ends[1];
        relay.owns_to = true;
        assert_int_equal(relay_start(&relay, loop), 0);
        assert_int_equal(send(sockets[0], "x", 1, 0), 1);
        assert_int_equal(loop_run(loop), 0);
        assert_false(relay_is_running(&relay));
        close(sockets[0]);
        close(sockets[1]);
        signal(SIGPIPE, SIG_DFL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(everything_arrives_in_order_and_then_the_end),
                cmocka_unit_test(a_reader_that_left_ends_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
