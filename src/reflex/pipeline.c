/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex/pipeline.h"

#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "reflex/pipeline-internal.h"

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
        p->admission = admission_open(max_ppm ? max_ppm : profile_find("embedded")->max_utilisation_ppm);

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
        admission_refund(&point->pipeline->admission, &point->charged);
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
        int r;

        if (attachment->rate_hz == 0 || attachment->rate_hz > PIPELINE_RATE_MAX)
                return err_set(err, ERR_USAGE, EINVAL, "a rate of %" PRIu64 " a second; from 1 to %d are possible",
                               attachment->rate_hz, PIPELINE_RATE_MAX);
        r = point_find_free(p, &point, err);
        if (r == 0)
                r = admission_charge(&p->admission, routine_name(*routine), routine_cost_ps(*routine),
                                     attachment->rate_hz, &point->charged, fault);
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
        struct admission admission = p->admission;
        uint64_t charged;
        int r;

        if (!point)
                return err_set(err, ERR_USAGE, ENOENT, "nothing is attached as number %" PRIu32, number);
        charged = point->charged;
        r = admission_charge(&admission, routine_name(*routine), routine_cost_ps(*routine), point->attachment.rate_hz,
                             &charged, fault);
        if (r == 0)
                r = prepare(point, *routine, err);
        if (r != 0)
                return r;

        /* What the loop has not taken up by now never runs; what it gave back is no longer in use. */
        routine_free(atomic_exchange_explicit(&point->pending, TAKE_PTR(*routine), memory_order_acq_rel));
        free_list(atomic_exchange_explicit(&point->retired, NULL, memory_order_acquire));
        p->admission = admission;
        point->charged = charged;
        return 0;
}

int pipeline_event_fd(const struct pipeline *p, uint32_t number)
{
        const struct point *point = point_find(p, number);

        return point && point->attachment.kind == ATTACH_EVENT ? point->fd : -ENOENT;
}

uint64_t pipeline_utilisation_ppm(const struct pipeline *p)
{
        return admission_ppm(&p->admission);
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
