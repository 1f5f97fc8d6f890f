/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex/pipeline.h"

#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "reflex/pipeline-internal.h"

#define PS_PER_SECOND UINT64_C(1000000000000)

int64_t pipeline_now_ns(const struct pipeline *p)
{
        return p->now_ns ? p->now_ns(p->userdata) : clock_now_ns(CLOCK_MONOTONIC);
}

static uint64_t time_of(void *userdata)
{
        const struct point *point = userdata;

        return (uint64_t)pipeline_now_ns(point->pipeline);
}

static int watch(struct pipeline *p, int fd, uint32_t number)
{
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};

        return epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int pipeline_new(const struct pipeline_options *options, struct pipeline **ret, struct err *err)
{
        _cleanup_pipeline_ struct pipeline *p = calloc(1, sizeof(*p));
        struct envelope envelopes[CHANNELS];
        uint32_t max_ppm = options->max_utilisation_ppm;
        int r;

        if (!p)
                return err_set_nomem(err);
        p->epoll = p->wake_fd = -1;
        p->now_ns = options->now_ns;
        p->observe = options->observe;
        p->userdata = options->userdata;
        p->max_charge = (max_ppm ? max_ppm : profile_find("embedded")->max_utilisation_ppm) * (PS_PER_SECOND / 1000000);

        envelopes_default(SLEW_WINDOW, envelopes);
        r = monitor_init(&p->monitor, options->envelopes ? options->envelopes : envelopes, pipeline_now_ns(p), err);
        if (r < 0)
                return r;
        p->epoll = epoll_create1(EPOLL_CLOEXEC);
        p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (p->epoll < 0 || p->wake_fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make the pipeline's descriptors");
        r = watch(p, p->wake_fd, PIPELINE_SOURCE_HOST);
        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot watch the pipeline's descriptors");

        p->output = options->output;
        pipeline_drive_safe_set(p);
        *ret = TAKE_PTR(p);
        return 0;
}

static void free_list(struct routine *list)
{
        while (list) {
                struct routine *next = list->next;

                routine_free(list);
                list = next;
        }
}

static void point_clear(struct point *point)
{
        if (!point->is_used)
                return;
        if (point->fd >= 0)
                close(point->fd);
        routine_free(point->routine);
        routine_free(atomic_exchange(&point->pending, NULL));
        free_list(atomic_exchange(&point->retired, NULL));
        point->pipeline->charged -= point->charged;
        point->routine = NULL;
        point->is_used = false;
}

void pipeline_free(struct pipeline *p)
{
        if (!p)
                return;
        for (size_t i = 0; i < PIPELINE_ATTACHMENTS_MAX; i++)
                point_clear(&p->points[i]);
        if (p->output)
                pipeline_drive_safe_set(p);
        if (p->wake_fd >= 0)
                close(p->wake_fd);
        if (p->epoll >= 0)
                close(p->epoll);
        free(p);
}

static struct point *point_find(const struct pipeline *p, uint32_t number)
{
        if (number >= PIPELINE_ATTACHMENTS_MAX || !p->points[number].is_used)
                return NULL;
        return (struct point *)&p->points[number];
}

/* What the routine takes of a second, if with it instead of @old nothing exceeds the cap. */
static int admit(const struct pipeline *p, const struct routine *routine, uint64_t rate_hz, uint64_t old, uint64_t *ret,
                 struct fault *fault)
{
        uint64_t charge, sum;

        if (__builtin_mul_overflow(routine->cost_ps, rate_hz, &charge) ||
            __builtin_add_overflow(charge, p->charged - old, &sum) || sum > p->max_charge)
                return fault_set(fault, FAULT_UTILISATION, FAULT_NO_SLOT,
                                 "%s costs up to %" PRIu64 " ns, %" PRIu64 " times a second; beside %" PRIu64
                                 " us of each second that others take, the cap is %" PRIu64 " us",
                                 routine_name(routine), routine->cost_ps / 1000, rate_hz, (p->charged - old) / 1000000,
                                 p->max_charge / 1000000);
        *ret = charge;
        return 0;
}

static int prepare(struct point *point, struct routine *routine, struct err *err)
{
        struct embed embed = {.userdata = point, .time_ns = time_of, .actuate = pipeline_actuate};

        return interp_new(routine->program, routine->store, &embed, &routine->interp, err);
}

static int point_open(struct point *point, struct err *err)
{
        bool is_timer = point->attachment.kind == ATTACH_TIMER;
        int r;

        point->fd = is_timer ? timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)
                             : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r = point->fd < 0 ? -errno : watch(point->pipeline, point->fd, point->number);
        return r < 0 ? err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot make an attach point") : 0;
}

static int point_find_free(struct pipeline *p, struct point **ret, struct err *err)
{
        for (uint32_t i = 0; i < PIPELINE_ATTACHMENTS_MAX; i++) {
                if (!p->points[i].is_used) {
                        *ret = &p->points[i];
                        **ret = (struct point){.number = i, .pipeline = p, .fd = -1};
                        return 0;
                }
        }
        return err_set(err, ERR_USAGE, ENOSPC, "at most %d programs can be attached", PIPELINE_ATTACHMENTS_MAX);
}

int pipeline_attach(struct pipeline *p, const struct attachment *attachment, struct routine **routine,
                    uint32_t *ret_number, struct fault *fault, struct err *err)
{
        struct point *point = NULL;
        uint64_t charge = 0;
        int r;

        if (attachment->rate_hz == 0 || attachment->rate_hz > PIPELINE_RATE_MAX)
                return err_set(err, ERR_USAGE, EINVAL, "a rate of %" PRIu64 " a second; from 1 to %d are possible",
                               attachment->rate_hz, PIPELINE_RATE_MAX);
        r = point_find_free(p, &point, err);
        if (r == 0)
                r = admit(p, *routine, attachment->rate_hz, 0, &charge, fault);
        if (r != 0)
                return r;

        point->is_used = true;
        point->attachment = *attachment;
        point->period_ns = NSEC_PER_SEC / (int64_t)attachment->rate_hz;
        point->burst_ns = MAX((PIPELINE_BURST - 1) * point->period_ns, PIPELINE_BURST_NS);
        r = point_open(point, err);
        if (r == 0)
                r = prepare(point, *routine, err);
        if (r < 0) {
                point_clear(point);
                return r;
        }
        point->charged = charge;
        p->charged += charge;
        point->routine = TAKE_PTR(*routine);
        *ret_number = point->number;
        return 0;
}

int pipeline_detach(struct pipeline *p, uint32_t number)
{
        struct point *point = point_find(p, number);

        if (!point)
                return -ENOENT;
        point_clear(point);
        return 0;
}

int pipeline_swap(struct pipeline *p, uint32_t number, struct routine **routine, struct fault *fault, struct err *err)
{
        struct point *point = point_find(p, number);
        uint64_t charge;
        int r;

        if (!point)
                return err_set(err, ERR_USAGE, ENOENT, "nothing is attached as number %" PRIu32, number);
        r = admit(p, *routine, point->attachment.rate_hz, point->charged, &charge, fault);
        if (r == 0)
                r = prepare(point, *routine, err);
        if (r != 0)
                return r;

        /* What the loop has not taken up by now never runs; what it gave back is no longer in use. */
        routine_free(atomic_exchange_explicit(&point->pending, TAKE_PTR(*routine), memory_order_acq_rel));
        free_list(atomic_exchange_explicit(&point->retired, NULL, memory_order_acquire));
        p->charged = p->charged - point->charged + charge;
        point->charged = charge;
        return 0;
}

int pipeline_event_fd(const struct pipeline *p, uint32_t number)
{
        const struct point *point = point_find(p, number);

        return point && point->attachment.kind == ATTACH_EVENT ? point->fd : -ENOENT;
}

uint64_t pipeline_utilisation_ppm(const struct pipeline *p)
{
        return (p->charged + PS_PER_SECOND / 1000000 - 1) / (PS_PER_SECOND / 1000000);
}

void pipeline_stop(struct pipeline *p)
{
        const uint64_t one = 1;
        int saved = errno;
        ssize_t n;

        atomic_store_explicit(&p->is_stop_wanted, true, memory_order_release);
        n = write(p->wake_fd, &one, sizeof(one)); /* fails only where a wake-up is waiting already */
        (void)n;
        errno = saved;
}

int pipeline_release(struct pipeline *p, uint32_t epoch)
{
        pipeline_serve_stop(p);
        return monitor_release(&p->monitor, epoch, AUTHORITY_OPERATOR, PIPELINE_SOURCE_HOST, pipeline_now_ns(p));
}

struct monitor *pipeline_monitor(struct pipeline *p)
{
        return &p->monitor;
}

int pipeline_counts(const struct pipeline *p, uint32_t number, struct pipeline_counts *ret)
{
        const struct point *point = point_find(p, number);

        if (!point)
                return -ENOENT;
        *ret = point->counts;
        return 0;
}

uint64_t pipeline_output_errors(const struct pipeline *p)
{
        return p->output_errors;
}
