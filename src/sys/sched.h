/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

/* What keeps the scheduler and the pager out of a measurement. All of it is asked for, none of it is insisted on: what
 * was granted and what was refused is recorded and becomes part of the evidence. */

#define SCHED_CPU_ANY (-1)

struct sched_request {
        int cpu;             /* to run on; SCHED_CPU_ANY leaves the affinity alone */
        int fifo_priority;   /* 1 to 99 asks for SCHED_FIFO; 0 leaves the policy alone */
        int nice;            /* -20 to 19 among ordinary processes; 0 leaves it alone */
        bool lock_memory;    /* all pages of the process, now and later */
        bool precise_timers; /* timer slack 1 ns; real-time threads have none anyway */
};

/* Each errno is 0 where the request was granted or nothing was asked, else why the kernel refused. */
struct sched_grant {
        struct sched_request request;
        int cpu_errno;
        int fifo_errno;
        int nice_errno;
        int memory_errno;
        int timer_errno;
};

/* sched_apply - ask the kernel for @request, for the calling thread (memory: for its process)
 *
 * Refusals are recorded in @ret and are no error; the order is memory, timers, CPU, nice value, priority, so that
 * nothing slow happens at real-time priority.
 *
 * Where the kernel groups processes by session (sched_autogroup_enabled), a nice value counts inside the session only,
 * and sessions compete by values of their own. So a process that leads its session (child_start() makes such) gives the
 * session the same value; any other leaves the session alone, since it is not only its own. In a cgroup of the cpu
 * controller the value counts inside the cgroup.
 */
void sched_apply(const struct sched_request *request, struct sched_grant *ret);

/* sched_grant_json - what was asked and granted, as an object: "cpu", "fifo_priority", "nice", "memory_locked",
 * "timer_slack_ns" hold what is in force (null where it was not asked for), "refused" the names of the refused ones
 * with their errno name
 *
 * Return: a new reference, or NULL if memory ran out.
 */
json_t *sched_grant_json(const struct sched_grant *grant);

/* sched_is_fifo_possible - whether this thread may use SCHED_FIFO: tried, and undone
 *
 * Return: 0; a negative errno with which the kernel refuses (-EPERM without the right, or in a cgroup without real-time
 * time).
 */
int sched_is_fifo_possible(void);

/* sched_cpus - the CPUs that the calling thread may use, in ascending order
 * @cpus: room for @size
 *
 * Return: how many there are, which may be more than @size; a negative errno.
 */
int sched_cpus(int *cpus, size_t size);
