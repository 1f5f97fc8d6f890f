/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/instrument.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/macro.h"
#include "sys/child.h"

#define READY_NS (10 * NSEC_PER_SEC)

/* From the parent's word to the child's first packet. */
#define START_NS (20 * NSEC_PER_MSEC)

/* The signals that end an instrument, and that its child is spared until it is told to stop. */
static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

static volatile int stop;

static void on_signal(int signal)
{
        stop = 1;
}

static void catch_signals(struct sigaction old[static ARRAY_SIZE(signals)])
{
        const struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART: poll() has to notice */

        stop = 0;
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                sigaction(signals[i], &action, &old[i]);
}

struct job {
        const struct instrument *instrument;
        struct err *failure; /* shared: why running failed */
};

static int run_child(struct child_side *side, void *userdata)
{
        struct sigaction old[ARRAY_SIZE(signals)];
        const struct job *job = userdata;
        struct err err = {0};
        int64_t start_ns;

        catch_signals(old);
        if (job->instrument->open(job->instrument->object, &err) < 0)
                return child_failed(side, &err);
        if (child_ready(side) < 0 || child_wait_go(side, &start_ns) < 0)
                return 1;
        return job->instrument->run(job->instrument->object, start_ns, &stop, job->failure) < 0;
}

/* Shows a line a second until the child ends, which it is told to when it is time or when the user says so. */
static int watch(const struct instrument *instrument, struct child *child, int64_t start_ns, struct child_status *ret)
{
        int64_t end_ns = instrument->duration_ns > 0 ? start_ns + instrument->duration_ns : INT64_MAX;
        int64_t tick_ns = start_ns + NSEC_PER_SEC, now_ns = start_ns;
        bool is_told = false;

        while (child_is_alive(child)) {
                struct pollfd pfd = {.fd = child->pidfd, .events = POLLIN};
                int64_t until_ns = is_told ? tick_ns : MIN(tick_ns, end_ns);
                struct timespec timeout = timespec_of_nsec(MAX(until_ns - now_ns, INT64_C(0)));

                if (ppoll(&pfd, 1, &timeout, NULL) < 0 && errno != EINTR)
                        return -errno;
                now_ns = clock_now_ns(CLOCK_MONOTONIC);
                if (!is_told && (stop || now_ns >= end_ns)) {
                        child_signal(child, SIGTERM);
                        is_told = true;
                }
                if (now_ns < tick_ns)
                        continue;
                if (instrument->tick)
                        instrument->tick(instrument->object, tick_ns - start_ns);
                tick_ns += NSEC_PER_SEC;
        }
        return child_wait(child, 0, ret);
}

static int run_and_watch(const struct job *job, struct err *err)
{
        const struct child_options options = {.name = job->instrument->name, .keep_stdio = true};
        _cleanup_child_ struct child child = CHILD_INIT;
        struct child_status status = {0};
        int64_t start_ns;
        int r;

        r = child_start(&options, run_child, (void *)job, &child, err);
        if (r == 0)
                r = child_wait_ready(&child, READY_NS, err);
        if (r < 0)
                return r;
        if (job->instrument->opened)
                job->instrument->opened(job->instrument->object);
        start_ns = clock_now_ns(CLOCK_MONOTONIC) + START_NS;
        r = child_go(&child, start_ns, err);
        if (r < 0)
                return r;
        r = watch(job->instrument, &child, start_ns, &status);
        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot watch the %s", job->instrument->name);
        if (job->failure->kind != ERR_NONE) {
                *err = *job->failure;
                return err->errnum > 0 ? -err->errnum : -EIO;
        }
        return child_check(job->instrument->name, &status, err);
}

int instrument_run(const struct instrument *instrument, struct err *err)
{
        struct job job = {.instrument = instrument};
        struct sigaction old[ARRAY_SIZE(signals)];
        int r;

        job.failure = mmap(NULL, sizeof(*job.failure), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (job.failure == MAP_FAILED)
                return err_set_nomem(err);
        catch_signals(old);
        r = run_and_watch(&job, err);
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                sigaction(signals[i], &old[i], NULL);
        munmap(job.failure, sizeof(*job.failure));
        return r;
}

struct sched_request instrument_sched(int64_t cpu, int64_t priority)
{
        return (struct sched_request){.cpu = (int)cpu,
                                      .fifo_priority = (int)priority,
                                      .lock_memory = true,
                                      .precise_timers = true};
}

static int take_family(struct instrument_families families, int *ret, struct err *err)
{
        if (families.only_v4 && families.only_v6)
                return err_set(err, ERR_USAGE, EINVAL, "--ipv4 and --ipv6 exclude each other");
        *ret = families.only_v4 ? AF_INET : families.only_v6 ? AF_INET6 : AF_UNSPEC;
        return 0;
}

int instrument_peer(const char *peer, uint16_t port, const char *source, struct instrument_families families,
                    union address *ret_peer, union address *ret_local, struct err *err)
{
        int family = AF_UNSPEC, r;

        r = take_family(families, &family, err);
        if (r >= 0)
                r = address_resolve(peer, port, family, ret_peer, err);
        if (r >= 0 && source)
                r = address_resolve(source, 0, ret_peer->any.sa_family, ret_local, err);
        return r;
}

int instrument_local(const char *address, uint16_t port, struct instrument_families families, union address *ret,
                     struct err *err)
{
        int family = AF_UNSPEC, r;

        r = take_family(families, &family, err);
        if (r < 0)
                return r;
        if (!address)
                address = family == AF_INET6 ? "::" : "0.0.0.0";
        return address_resolve(address, port, family, ret, err);
}

void instrument_add_grant(const struct sched_grant *g, struct text *out)
{
        const struct {
                const char *what;
                bool is_asked;
                int errnum;
        } parts[] = {
                {"a processor", g->request.cpu != SCHED_CPU_ANY, g->cpu_errno},
                {"real-time priority", g->request.fifo_priority > 0, g->fifo_errno},
                {"a nice value", g->request.nice != 0, g->nice_errno},
                {"locked memory", g->request.lock_memory, g->memory_errno},
                {"precise timers", g->request.precise_timers, g->timer_errno},
        };
        const char *separator = "  granted: ";

        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                if (!parts[i].is_asked || parts[i].errnum != 0)
                        continue;
                text_addf(out, "%s%s", separator, parts[i].what);
                separator = ", ";
        }
        if (separator[0] == ',')
                text_add(out, "\n");
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
                if (parts[i].is_asked && parts[i].errnum != 0)
                        text_addf(out, "  refused: %s (%s)\n", parts[i].what, strerror(parts[i].errnum));
}
