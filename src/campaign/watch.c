/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/watch.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "base/cleanup.h"
#include "base/clock.h"

static int add(int epoll, int fd)
{
        struct epoll_event event = {.events = EPOLLIN};

        return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int watch_open(struct watch *watch, const int *fds, size_t n, int64_t late_ns, struct err *err)
{
        const struct itimerspec late = {.it_value = timespec_of_nsec(late_ns)};
        int r = 0;

        watch->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        watch->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (watch->timer < 0 || watch->epoll < 0 || timerfd_settime(watch->timer, 0, &late, NULL) < 0)
                r = -errno;
        if (r == 0)
                r = add(watch->epoll, watch->timer);
        for (size_t i = 0; i < n && r == 0; i++)
                r = add(watch->epoll, fds[i]);
        return r < 0 ? err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot watch a workload") : 0;
}

void watch_done(struct watch *watch)
{
        close_cleanup(&watch->epoll);
        close_cleanup(&watch->timer);
        *watch = (struct watch)WATCH_INIT;
}
