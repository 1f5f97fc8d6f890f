/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdatomic.h>

#include "bpfvm/admission.h"
#include "reflex/pipeline.h"
#include "reflex/routine-internal.h"

struct point {
        bool is_used;
        uint32_t number;
        struct pipeline *pipeline;
        struct attachment attachment;
        int fd; /* timerfd or eventfd */
        int64_t period_ns;
        int64_t burst_ns;        /* how far events may be ahead of their rate */
        int64_t due_ns;          /* when the next event is due by the rate; the burst may be ahead of it */
        bool is_held_back;       /* the next event is waiting for that */
        int64_t armed_ns;        /* a timer: when its period began, */
        uint64_t armed_sequence; /* with which event */
        uint64_t sequence;
        struct pipeline_counts counts;
        uint64_t charged; /* what it takes of p->admission */

        struct routine *routine;         /* of the loop */
        struct routine *_Atomic pending; /* handed over to the loop */
        struct routine *_Atomic retired; /* a list handed back by it */

        int64_t first_output_ns; /* of the event that is handled now; 0: none yet */
};

struct pipeline {
        struct monitor monitor;
        struct output *output;
        int64_t (*now_ns)(void *userdata);
        void (*observe)(void *userdata, const struct pipeline_trace *trace);
        void *userdata;
        struct admission admission;
        uint64_t output_errors;
        int epoll, wake_fd;
        atomic_bool is_stop_wanted;
        struct point points[PIPELINE_ATTACHMENTS_MAX];
};

/* pipeline_now_ns - the pipeline's time */
int64_t pipeline_now_ns(const struct pipeline *p);

/* pipeline_actuate - what stands behind the helpers that actuate; @userdata is the point */
int64_t pipeline_actuate(void *userdata, enum helper_id helper, const uint64_t args[static 2]);

/* pipeline_drive_safe_set - write the safe value of every channel */
void pipeline_drive_safe_set(struct pipeline *p);

/* pipeline_serve_stop - latch the stop that was asked for, if one was */
void pipeline_serve_stop(struct pipeline *p);

/* pipeline_latch - stop at once */
void pipeline_latch(struct pipeline *p);
