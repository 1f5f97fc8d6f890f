/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/loop.h"

#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "tests/test.h"

#define N_TIMERS 1000

static struct loop *new_loop(void)
{
        struct loop *loop;
        struct err err = {0};

        assert_int_equal(loop_new(&loop, &err), 0);
        return loop;
}

/* ---- times ---- */

struct alarm {
        struct loop_timer timer;
        int64_t when_ns;
};

static struct alarm alarms[N_TIMERS];
static int64_t last_ns;
static size_t n_rung, n_expected;
static struct loop *the_loop;

static int on_alarm(struct loop_timer *timer)
{
        const struct alarm *a = CONTAINER_OF(timer, struct alarm, timer);

        assert_true(a->when_ns >= last_ns);
        assert_true(a->when_ns <= loop_now_ns(the_loop));
        last_ns = a->when_ns;
        if (++n_rung == n_expected)
                loop_stop(the_loop);
        return 0;
}

/* Set in any order, some moved and some removed: they ring in the order of their times, each once. */
static void timers_ring_in_their_order(void **state)
{
        _cleanup_loop_ struct loop *loop = new_loop();
        int64_t start_ns = clock_now_ns(CLOCK_MONOTONIC);
        uint32_t random = 1;

        the_loop = loop;
        n_expected = n_rung = 0;
        for (size_t i = 0; i < N_TIMERS; i++) {
                random = random * 1664525 + 1013904223;
                alarms[i].when_ns = start_ns + random % 20000000;
                assert_int_equal(loop_timer_set(loop, &alarms[i].timer, alarms[i].when_ns, on_alarm), 0);
        }
        for (size_t i = 0; i < N_TIMERS; i++) {
                if (i % 3 == 0) {
                        loop_timer_remove(&alarms[i].timer);
                        continue;
                }
                n_expected++;
                if (i % 3 == 1) {
                        alarms[i].when_ns = start_ns + (int64_t)(N_TIMERS - i) * 10000;
                        assert_int_equal(loop_timer_set(loop, &alarms[i].timer, alarms[i].when_ns, on_alarm), 0);
                }
        }
        assert_int_equal(loop_run(loop), 0);
        assert_int_equal(n_rung, n_expected);
        for (size_t i = 0; i < N_TIMERS; i++)
                assert_null(alarms[i].timer.loop);
}

static int on_failing_alarm(struct loop_timer *timer)
{
        return -ENOTTY;
}

static void a_failure_ends_the_loop(void **state)
{
        _cleanup_loop_ struct loop *loop = new_loop();
        struct loop_timer timer = {0};

        assert_int_equal(loop_timer_set(loop, &timer, 0, on_failing_alarm), 0);
        assert_int_equal(loop_run(loop), -ENOTTY);
}

/* ---- descriptors ---- */

struct end {
        struct loop_io io;
        struct end *other;
        int n_called;
};

static int on_end(struct loop_io *io, uint32_t events)
{
        struct end *e = CONTAINER_OF(io, struct end, io);

        e->n_called++;
        loop_io_remove(&e->other->io);
        loop_io_remove(io);
        loop_stop(the_loop);
        return 0;
}

/* Both are readable when the loop wakes; the first that is called takes the other out, which is then not called. */
static void what_is_removed_is_not_called(void **state)
{
        _cleanup_loop_ struct loop *loop = new_loop();
        struct end ends[2] = {{.other = &ends[1]}, {.other = &ends[0]}};
        int fds[2][2];

        the_loop = loop;
        for (int i = 0; i < 2; i++) {
                assert_int_equal(pipe2(fds[i], O_CLOEXEC), 0);
                assert_int_equal(write(fds[i][1], "x", 1), 1);
                assert_int_equal(loop_io_add(loop, &ends[i].io, fds[i][0], EPOLLIN, on_end), 0);
        }
        assert_int_equal(loop_run(loop), 0);
        assert_int_equal(ends[0].n_called + ends[1].n_called, 1);
        for (int i = 0; i < 2; i++) {
                close(fds[i][0]);
                close(fds[i][1]);
        }
}

static int on_writable(struct loop_io *io, uint32_t events)
{
        assert_true(events & EPOLLOUT);
        loop_io_remove(io);
        loop_stop(the_loop);
        return 0;
}

static int on_never(struct loop_io *io, uint32_t events)
{
        fail_msg("called for an event that is not waited for");
        return 0;
}

static void events_can_be_changed(void **state)
{
        _cleanup_loop_ struct loop *loop = new_loop();
        struct loop_io io = {0};
        int fds[2];

        the_loop = loop;
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        assert_int_equal(loop_io_add(loop, &io, fds[1], 0, on_never), 0);
        io.fn = on_writable;
        assert_int_equal(loop_io_set(&io, EPOLLOUT), 0);
        assert_int_equal(loop_run(loop), 0);
        close(fds[0]);
        close(fds[1]);
}

static void a_file_cannot_be_waited_for(void **state)
{
        _cleanup_loop_ struct loop *loop = new_loop();
        struct loop_io io = {0};
        int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(loop_io_add(loop, &io, fd, EPOLLIN, on_never), -EPERM);
        assert_null(io.loop);
        loop_io_remove(&io);
        close(fd);
}

/* ---- signals ---- */

static int got[NSIG];

static int on_signal(int signal, void *userdata)
{
        got[signal]++;
        if (got[SIGUSR1] && got[SIGUSR2])
                loop_stop(userdata);
        return 0;
}

static void signals_arrive_and_the_mask_comes_back(void **state)
{
        struct loop *loop = new_loop();
        sigset_t set, before, after;

        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigaddset(&set, SIGUSR2);
        sigprocmask(SIG_SETMASK, NULL, &before);
        assert_int_equal(loop_signals(loop, &set, on_signal, loop), 0);
        raise(SIGUSR1);
        raise(SIGUSR2);
        assert_int_equal(loop_run(loop), 0);
        assert_int_equal(got[SIGUSR1], 1);
        assert_int_equal(got[SIGUSR2], 1);
        loop_free(loop);
        sigprocmask(SIG_SETMASK, NULL, &after);
        for (int i = 1; i < NSIG; i++)
                assert_int_equal(sigismember(&before, i), sigismember(&after, i));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(timers_ring_in_their_order),
                cmocka_unit_test(a_failure_ends_the_loop),
                cmocka_unit_test(what_is_removed_is_not_called),
                cmocka_unit_test(events_can_be_changed),
                cmocka_unit_test(a_file_cannot_be_waited_for),
                cmocka_unit_test(signals_arrive_and_the_mask_comes_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
