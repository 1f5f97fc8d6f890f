/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/sched.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The affinity mask of the kernel may be longer than glibc's cpu_set_t; this many CPUs are looked at. */
#define CPUS_MAX 8192
/* How often a session is given its nice value while others are given theirs. */
#define AUTOGROUP_TRIES 50

static int apply_cpu(int cpu)
{
        cpu_set_t *set;
        int r = 0;

        if (cpu == SCHED_CPU_ANY)
                return 0;
        if (cpu < 0 || cpu >= CPUS_MAX)
                return EINVAL;
        set = CPU_ALLOC(CPUS_MAX);
        if (!set)
                return ENOMEM;
        CPU_ZERO_S(CPU_ALLOC_SIZE(CPUS_MAX), set);
        CPU_SET_S((size_t)cpu, CPU_ALLOC_SIZE(CPUS_MAX), set);
        if (sched_setaffinity(0, CPU_ALLOC_SIZE(CPUS_MAX), set) < 0)
                r = errno;
        CPU_FREE(set);
        return r;
}

/* Gives the value to the session, too, where it is the process's own. Return: 0, also where the kernel has no such
 * groups; an errno. */
static int apply_nice_to_session(int nice)
{
        _cleanup_close_ int fd = -1;
        char text[8];
        int len;

        if (getsid(0) != getpid())
                return 0;
        fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? 0 : errno;
        len = snprintf(text, sizeof(text), "%d", nice);
        for (int tries = 1; write(fd, text, (size_t)len) < 0; tries++) {
                /* Of all that have no CAP_SYS_ADMIN, one at a time may: one each tenth of a second. */
                if (errno != EAGAIN || tries == AUTOGROUP_TRIES)
                        return errno;
                nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
        }
        return 0;
}

static int apply_nice(int nice)
{
        if (nice == 0)
                return 0;
        return setpriority(PRIO_PROCESS, 0, nice) < 0 ? errno : apply_nice_to_session(nice);
}

static int apply_fifo(int priority)
{
        struct sched_param param = {.sched_priority = priority};

        if (priority == 0)
                return 0;
        /* Children do not inherit it: what they need they ask for. */
        return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) < 0 ? errno : 0;
}

void sched_apply(const struct sched_request *request, struct sched_grant *ret)
{
        struct sched_grant grant = {.request = *request};

        if (request->lock_memory && mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
                grant.memory_errno = errno;
        if (request->precise_timers && prctl(PR_SET_TIMERSLACK, 1UL) < 0)
                grant.timer_errno = errno;
        grant.cpu_errno = apply_cpu(request->cpu);
        grant.nice_errno = apply_nice(request->nice);
        grant.fifo_errno = apply_fifo(request->fifo_priority);
        *ret = grant;
}

/* What is in force: @value where it was asked for and granted, null where it was not asked for or was refused. */
static int add_granted(json_t *object, json_t *refused, const char *key, bool is_asked, int errnum, json_t *value)
{
        if (is_asked && errnum == 0)
                return json_object_set_new(object, key, value);
        json_decref(value);
        if (json_object_set_new(object, key, json_null()) < 0)
                return -1;
        return errnum == 0 ? 0 : json_object_set_new(refused, key, json_string(strerrorname_np(errnum)));
}

json_t *sched_grant_json(const struct sched_grant *grant)
{
        const struct sched_request *asked = &grant->request;
        _cleanup_json_ json_t *object = json_object(), *refused = json_object();

        if (add_granted(object, refused, "cpu", asked->cpu != SCHED_CPU_ANY, grant->cpu_errno,
                        json_integer(asked->cpu)) < 0 ||
            add_granted(object, refused, "fifo_priority", asked->fifo_priority != 0, grant->fifo_errno,
                        json_integer(asked->fifo_priority)) < 0 ||
            add_granted(object, refused, "nice", asked->nice != 0, grant->nice_errno, json_integer(asked->nice)) < 0 ||
            add_granted(object, refused, "memory_locked", asked->lock_memory, grant->memory_errno, json_true()) < 0 ||
            add_granted(object, refused, "timer_slack_ns", asked->precise_timers, grant->timer_errno, json_integer(1)) <
                    0 ||
            json_object_set(object, "refused", refused) < 0)
                return NULL;
        return TAKE_PTR(object);
}

int sched_is_fifo_possible(void)
{
        struct sched_param held, lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
        int policy = sched_getscheduler(0);

        if (policy < 0 || sched_getparam(0, &held) < 0)
                return -errno;
        if ((policy & ~SCHED_RESET_ON_FORK) == SCHED_FIFO)
                return 0;
        /* Without the flag: who may use SCHED_FIFO by its resource limit alone may set the flag, but not clear it. */
        if (sched_setscheduler(0, SCHED_FIFO, &lowest) < 0)
                return -errno;
        return sched_setscheduler(0, policy, &held) < 0 ? -errno : 0;
}

int sched_cpus(int *cpus, size_t size)
{
        size_t set_size = CPU_ALLOC_SIZE(CPUS_MAX), n = 0;
        cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
        int r = 0;

        if (!set)
                return -ENOMEM;
        CPU_ZERO_S(set_size, set);
        if (sched_getaffinity(0, set_size, set) < 0)
                r = -errno;
        for (int cpu = 0; r == 0 && cpu < CPUS_MAX; cpu++) {
                if (!CPU_ISSET_S((size_t)cpu, set_size, set))
                        continue;
                if (n < size)
                        cpus[n] = cpu;
                n++;
        }
        CPU_FREE(set);
        return r < 0 ? r : (int)n;
}
