/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "bpf/reflex.h"
#include "reflex/pipeline-internal.h"

#define BATCH 16 /* events of one attachment before the others have a turn */

/* Between two events: the routine that was handed over, if there is one, becomes the point's. The old one goes onto a
 * list, as the thread that swaps may look at it only then, and releasing memory is not for this thread. */
static void adopt(struct point *point)
{
        struct routine *next = atomic_load_explicit(&point->pending, memory_order_relaxed), *old = point->routine;

        if (!next)
                return;
        next = atomic_exchange_explicit(&point->pending, NULL, memory_order_acq_rel);
        point->routine = next;
        point->counts.swaps++;
        old->next = atomic_load_explicit(&point->retired, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(&point->retired, &old->next, old, memory_order_release,
                                                      memory_order_relaxed))
                ;
}

static int64_t due_ns(const struct point *point, uint64_t sequence)
{
        if (point->attachment.kind != ATTACH_TIMER)
                return 0;
        return point->armed_ns + (int64_t)(sequence - point->armed_sequence + 1) * point->period_ns;
}

static int handle(struct point *point, int64_t woke_ns, uint64_t missed, struct err *err)
{
        struct pipeline *p = point->pipeline;
        struct reflex_event event = {.sequence = point->sequence++, .missed = missed};
        struct fault fault;
        uint64_t result;
        int r;

        pipeline_serve_stop(p);
        adopt(point);
        point->first_output_ns = 0;
        event.time_ns = (uint64_t)pipeline_now_ns(p);
        r = interp_run(point->routine->interp, &event, point->routine->budget, &result, &fault);
        point->counts.events++;
        if (r > 0) {
                pipeline_latch(p);
                return err_set(err, ERR_BUG, ENOTRECOVERABLE,
                               "%s, which was verified, ran longer than its cost allows; everything was stopped: %s",
                               routine_name(point->routine), fault.text);
        }
        if (p->observe) {
                const struct pipeline_trace trace = {
                        .attachment = point->number,
                        .sequence = event.sequence,
                        .due_ns = due_ns(point, event.sequence),
                        .woke_ns = woke_ns,
                        .entered_ns = (int64_t)event.time_ns,
                        .output_ns = point->first_output_ns,
                        .result = result,
                };

                p->observe(p->userdata, &trace);
        }
        return 0;
}

/* When the rate allows the next event. */
static int64_t earliest_ns(const struct point *point)
{
        return point->due_ns - point->burst_ns;
}

/* Whether that is now. */
static bool take_turn(struct point *point, int64_t now_ns)
{
        bool was_held_back = point->is_held_back;

        point->is_held_back = now_ns < earliest_ns(point);
        if (point->is_held_back)
                return false;
        point->counts.delayed += was_held_back;
        point->due_ns = MAX(point->due_ns, now_ns) + point->period_ns;
        return true;
}

static int handle_timer(struct point *point, int64_t woke_ns, struct err *err)
{
        uint64_t missed = point->counts.waiting - 1;

        point->counts.waiting = 0;
        point->counts.missed += missed;
        point->sequence += missed;
        return handle(point, woke_ns, missed, err);
}

static int handle_events(struct point *point, int64_t woke_ns, struct err *err)
{
        for (unsigned i = 0; i < BATCH && point->counts.waiting > 0; i++) {
                int r;

                if (!take_turn(point, clock_now_ns(CLOCK_MONOTONIC)))
                        return 0;
                point->counts.waiting--;
                r = handle(point, woke_ns, 0, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* How long there is nothing to do: until @until_ns, or an event that waits may be handled. */
static int64_t idle_ns(const struct pipeline *p, int64_t until_ns)
{
        int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC), when_ns = until_ns;

        for (size_t i = 0; i < PIPELINE_ATTACHMENTS_MAX; i++) {
                const struct point *point = &p->points[i];

                if (point->is_used && point->counts.waiting > 0)
                        when_ns = MIN(when_ns, earliest_ns(point));
        }
        return MAX(when_ns - now_ns, INT64_C(0));
}

/* Reads what the descriptors have counted. Return: 0 or a negative errno. */
static int collect(struct pipeline *p, const struct epoll_event *events, int n, struct err *err)
{
        for (int i = 0; i < n; i++) {
                uint32_t number = events[i].data.u32;
                int fd = number == PIPELINE_SOURCE_HOST ? p->wake_fd : p->points[number].fd;
                uint64_t count;

                if (read(fd, &count, sizeof(count)) != sizeof(count)) {
                        if (errno == EAGAIN)
                                continue;
                        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot read an attach point");
                }
                if (number != PIPELINE_SOURCE_HOST &&
                    __builtin_add_overflow(p->points[number].counts.waiting, count, &p->points[number].counts.waiting))
                        p->points[number].counts.waiting = UINT64_MAX;
        }
        return 0;
}

static int wait_for_events(struct pipeline *p, int64_t until_ns, struct err *err)
{
        struct epoll_event events[PIPELINE_ATTACHMENTS_MAX + 1];
        struct timespec timeout = timespec_of_nsec(idle_ns(p, until_ns));
        int n = epoll_pwait2(p->epoll, events, ARRAY_SIZE(events), &timeout, NULL);

        if (n < 0)
                return errno == EINTR ? 0 : err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot wait for events");
        return collect(p, events, n, err);
}

/* The first expiry is a period ahead. Events that expired before and were not handled are forgotten with the setting.
 */
static void arm_timers(struct pipeline *p)
{
        for (size_t i = 0; i < PIPELINE_ATTACHMENTS_MAX; i++) {
                struct point *point = &p->points[i];
                struct itimerspec setting = {.it_interval = timespec_of_nsec(point->period_ns)};

                if (!point->is_used || point->attachment.kind != ATTACH_TIMER)
                        continue;
                point->armed_ns = clock_now_ns(CLOCK_MONOTONIC);
                point->armed_sequence = point->sequence;
                setting.it_value = timespec_of_nsec(point->armed_ns + point->period_ns);
                timerfd_settime(point->fd, TFD_TIMER_ABSTIME, &setting, NULL);
        }
}

static void disarm_timers(struct pipeline *p)
{
        const struct itimerspec off = {0};

        for (size_t i = 0; i < PIPELINE_ATTACHMENTS_MAX; i++)
                if (p->points[i].is_used && p->points[i].attachment.kind == ATTACH_TIMER)
                        timerfd_settime(p->points[i].fd, 0, &off, NULL);
}

static int run(struct pipeline *p, int64_t until_ns, const volatile int *quit, struct err *err)
{
        for (;;) {
                int64_t woke_ns;
                int r = 0;

                if (quit && *quit)
                        return -EINTR;
                if (clock_now_ns(CLOCK_MONOTONIC) >= until_ns)
                        return 0;
                r = wait_for_events(p, until_ns, err);
                woke_ns = p->observe ? pipeline_now_ns(p) : 0;
                pipeline_serve_stop(p);
                for (size_t i = 0; i < PIPELINE_ATTACHMENTS_MAX && r >= 0; i++) {
                        struct point *point = &p->points[i];

                        if (!point->is_used || point->counts.waiting == 0)
                                continue;
                        r = point->attachment.kind == ATTACH_TIMER ? handle_timer(point, woke_ns, err)
                                                                   : handle_events(point, woke_ns, err);
                }
                if (r < 0)
                        return r;
        }
}

int pipeline_run(struct pipeline *p, int64_t until_ns, const volatile int *quit, struct err *err)
{
        int r;

        arm_timers(p);
        r = run(p, until_ns, quit, err);
        disarm_timers(p);
        return r;
}
