/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/loop.h"

#include <stdbool.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/macro.h"

#define BATCH 64

struct loop {
        int epoll_fd;
        bool is_stopped;
        int64_t now_ns;

        /* What epoll_wait() gave and has not been handed out: a source that is removed meanwhile is taken out here. */
        struct epoll_event batch[BATCH];
        int n_batch;

        struct loop_timer **heap; /* the earliest first */
        size_t n_timers, allocated;

        struct loop_io signal_io;
        int signal_fd;
        sigset_t old_mask;
        int (*on_signal)(int signal, void *userdata);
        void *signal_userdata;
};

int loop_new(struct loop **ret, struct err *err)
{
        _cleanup_loop_ struct loop *loop = calloc(1, sizeof(*loop));

        if (!loop)
                return err_set_nomem(err);
        loop->signal_fd = -1;
        loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (loop->epoll_fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot wait for descriptors");
        loop->now_ns = clock_now_ns(CLOCK_MONOTONIC);
        *ret = TAKE_PTR(loop);
        return 0;
}

void loop_free(struct loop *loop)
{
        if (!loop)
                return;
        if (loop->signal_fd >= 0) {
                close(loop->signal_fd);
                sigprocmask(SIG_SETMASK, &loop->old_mask, NULL);
        }
        close_cleanup(&loop->epoll_fd);
        free(loop->heap);
        free(loop);
}

void loop_stop(struct loop *loop)
{
        loop->is_stopped = true;
}

int64_t loop_now_ns(const struct loop *loop)
{
        return loop->now_ns;
}

/* ---- descriptors ---- */

int loop_io_add(struct loop *loop, struct loop_io *io, int fd, uint32_t events,
                int (*fn)(struct loop_io *io, uint32_t events))
{
        struct epoll_event event = {.events = events, .data.ptr = io};

        if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
                return -errno;
        *io = (struct loop_io){.loop = loop, .fd = fd, .events = events, .fn = fn};
        return 0;
}

int loop_io_set(struct loop_io *io, uint32_t events)
{
        struct epoll_event event = {.events = events, .data.ptr = io};

        if (io->events == events)
                return 0;
        if (epoll_ctl(io->loop->epoll_fd, EPOLL_CTL_MOD, io->fd, &event) < 0)
                return -errno;
        io->events = events;
        return 0;
}

void loop_io_remove(struct loop_io *io)
{
        struct loop *loop = io->loop;

        if (!loop)
                return;
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, io->fd, NULL);
        for (int i = 0; i < loop->n_batch; i++)
                if (loop->batch[i].data.ptr == io)
                        loop->batch[i].data.ptr = NULL;
        io->loop = NULL;
}

/* ---- times ---- */

static void heap_put(struct loop *loop, size_t place, struct loop_timer *timer)
{
        loop->heap[place] = timer;
        timer->place = place;
}

/* Moves the timer at @place to where it belongs, up or down. */
static void heap_settle(struct loop *loop, size_t place)
{
        struct loop_timer *timer = loop->heap[place];

        for (size_t above = (place - 1) / 2; place > 0 && loop->heap[above]->when_ns > timer->when_ns;
             above = (place - 1) / 2) {
                heap_put(loop, place, loop->heap[above]);
                place = above;
        }
        for (size_t below = 2 * place + 1; below < loop->n_timers; below = 2 * place + 1) {
                if (below + 1 < loop->n_timers && loop->heap[below + 1]->when_ns < loop->heap[below]->when_ns)
                        below++;
                if (loop->heap[below]->when_ns >= timer->when_ns)
                        break;
                heap_put(loop, place, loop->heap[below]);
                place = below;
        }
        heap_put(loop, place, timer);
}

int loop_timer_set(struct loop *loop, struct loop_timer *timer, int64_t when_ns, int (*fn)(struct loop_timer *timer))
{
        timer->when_ns = when_ns;
        timer->fn = fn;
        if (timer->loop) {
                heap_settle(loop, timer->place);
                return 0;
        }
        if (loop->n_timers == loop->allocated) {
                size_t wanted = MAX(2 * loop->allocated, (size_t)16);
                struct loop_timer **grown = reallocarray(loop->heap, wanted, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                loop->heap = grown;
                loop->allocated = wanted;
        }
        timer->loop = loop;
        heap_put(loop, loop->n_timers++, timer);
        heap_settle(loop, timer->place);
        return 0;
}

void loop_timer_remove(struct loop_timer *timer)
{
        struct loop *loop = timer->loop;
        struct loop_timer *last;

        if (!loop)
                return;
        timer->loop = NULL;
        last = loop->heap[--loop->n_timers];
        if (last == timer)
                return;
        heap_put(loop, timer->place, last);
        heap_settle(loop, last->place);
}

/* ---- signals ---- */

static int on_signal_fd(struct loop_io *io, uint32_t events)
{
        struct loop *loop = io->loop;
        struct signalfd_siginfo info;
        int r = 0;

        while (r >= 0 && read(io->fd, &info, sizeof(info)) == sizeof(info))
                r = loop->on_signal((int)info.ssi_signo, loop->signal_userdata);
        return r;
}

int loop_signals(struct loop *loop, const sigset_t *set, int (*fn)(int signal, void *userdata), void *userdata)
{
        _cleanup_close_ int fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
        int r;

        if (fd < 0)
                return -errno;
        r = loop_io_add(loop, &loop->signal_io, fd, EPOLLIN, on_signal_fd);
        if (r < 0)
                return r;
        sigprocmask(SIG_BLOCK, set, &loop->old_mask);
        loop->on_signal = fn;
        loop->signal_userdata = userdata;
        loop->signal_fd = TAKE_FD(fd);
        return 0;
}

/* ---- the loop ---- */

static int run_timers(struct loop *loop)
{
        int r = 0;

        while (r >= 0 && !loop->is_stopped && loop->n_timers > 0 && loop->heap[0]->when_ns <= loop->now_ns) {
                struct loop_timer *timer = loop->heap[0];

                loop_timer_remove(timer);
                r = timer->fn(timer);
        }
        return r;
}

/* Milliseconds, rounded up so that a timer has always come when the wait ends. */
static int patience_ms(const struct loop *loop)
{
        int64_t ns;

        if (loop->n_timers == 0)
                return -1;
        ns = loop->heap[0]->when_ns - clock_now_ns(CLOCK_MONOTONIC);
        return ns <= 0 ? 0 : (int)MIN((ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC, INT64_C(3600000));
}

static int run_batch(struct loop *loop)
{
        int r = 0;

        for (int i = 0; r >= 0 && !loop->is_stopped && i < loop->n_batch; i++) {
                struct loop_io *io = loop->batch[i].data.ptr;

                if (io)
                        r = io->fn(io, loop->batch[i].events);
        }
        loop->n_batch = 0;
        return r;
}

int loop_run(struct loop *loop)
{
        int r = 0;

        loop->is_stopped = false;
        while (r >= 0 && !loop->is_stopped) {
                loop->n_batch = epoll_wait(loop->epoll_fd, loop->batch, BATCH, patience_ms(loop));
                if (loop->n_batch < 0) {
                        loop->n_batch = 0;
                        if (errno != EINTR)
                                return -errno;
                }
                loop->now_ns = clock_now_ns(CLOCK_MONOTONIC);
                r = run_batch(loop);
                if (r >= 0)
                        r = run_timers(loop);
        }
        return MIN(r, 0);
}
