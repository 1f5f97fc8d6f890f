/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kind-stamp-probe.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "campaign/boundary-zones.h"
#include "campaign/traffic.h"
#include "load/probe.h"
#include "load/reflector.h"

/* Of the probe; the reflector may share its processor, and has to get it when a packet comes. */
#define FIFO_PRIORITY 50

#define LINGER_NS (500 * NSEC_PER_MSEC) /* a reply that comes later is lost */
#define EXIT_NS   (5 * NSEC_PER_SEC)

struct stamp_probe {
        struct workload base;
        struct boundary *boundary;
        struct stamp_probe_keys keys;
        struct path_flow there, back;
        struct probe *probe;
        struct reflector *reflector;
        struct child probe_child, reflector_child;
        int epoll; /* readable when either child ended */
        uint64_t warmup_slots;
};

static struct stamp_probe *stamp_probe_of(struct workload *w)
{
        return (struct stamp_probe *)w; /* the first member */
}

static int run_probe(struct child_side *side, void *userdata)
{
        struct stamp_probe *s = userdata;
        struct err err = {0};
        int64_t start_ns;

        if (probe_open(s->probe, &err) < 0)
                return child_failed(side, &err);
        if (child_ready(side) < 0 || child_wait_go(side, &start_ns) < 0)
                return 1;
        return probe_run(s->probe, start_ns, NULL, &err) < 0;
}

/* Answers until it is killed; what it counts lies in shared memory. */
static int run_reflector(struct child_side *side, void *userdata)
{
        struct stamp_probe *s = userdata;
        struct err err = {0};
        int64_t start_ns;

        if (reflector_open(s->reflector, &err) < 0)
                return child_failed(side, &err);
        if (child_ready(side) < 0 || child_wait_go(side, &start_ns) < 0)
                return 1;
        return reflector_run(s->reflector, NULL, &err) < 0;
}

static int zone_address(struct stamp_probe *s, const char *zone, uint16_t port, union address *ret, struct err *err)
{
        return traffic_address(boundary_zones_testbed(s->boundary), zone, s->keys.slice, s->keys.family, port, ret,
                               err);
}

static int make_reflector(struct stamp_probe *s, struct err *err)
{
        struct reflector_config config = {
                .sched = {.cpu = (int)s->keys.reflector_cpu,
                          .fifo_priority = FIFO_PRIORITY + 1,
                          .lock_memory = true,
                          .precise_timers = true},
        };
        int r;

        r = zone_address(s, s->keys.to, STAMP_PORT, &config.local, err);
        return r < 0 ? r : reflector_new(&config, &s->reflector, err);
}

static uint64_t slots_in(int64_t duration_ns, int64_t rate_hz)
{
        return (uint64_t)((__int128)duration_ns * rate_hz / NSEC_PER_SEC);
}

static int make_probe(struct stamp_probe *s, struct err *err)
{
        const struct stamp_probe_keys *k = &s->keys;
        struct probe_config config = {
                .size_bytes = (uint32_t)k->packet_bytes - udp_ip_overhead(traffic_family(k->family)),
                .rate_hz = (uint64_t)k->rate_hz,
                .linger_ns = LINGER_NS,
                .sched = {.cpu = (int)k->cpu,
                          .fifo_priority = FIFO_PRIORITY,
                          .lock_memory = true,
                          .precise_timers = true},
        };
        int r;

        s->warmup_slots = slots_in(k->warmup_ns, k->rate_hz);
        config.n_slots = s->warmup_slots + slots_in(k->duration_ns, k->rate_hz);
        r = zone_address(s, k->to, STAMP_PORT, &config.peer, err);
        if (r >= 0)
                r = zone_address(s, k->from, 0, &config.local, err);
        return r < 0 ? r : probe_new(&config, &s->probe, err);
}

static int watch(int epoll, int fd)
{
        struct epoll_event event = {.events = EPOLLIN};

        return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int make_event(struct stamp_probe *s, struct err *err)
{
        int r = 0;

        s->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (s->epoll < 0)
                r = -errno;
        if (r >= 0)
                r = watch(s->epoll, s->probe_child.pidfd);
        if (r >= 0)
                r = watch(s->epoll, s->reflector_child.pidfd);
        return r < 0 ? err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot watch the probe") : 0;
}

static int find_flows(struct stamp_probe *s, struct err *err)
{
        int r;

        r = traffic_flow(s->boundary, "the probe", s->keys.from, s->keys.to, s->keys.slice, &s->there, err);
        if (r < 0)
                return r;
        s->back = (struct path_flow){.from = s->there.to, .to = s->there.from, .slice = s->there.slice};
        return 0;
}

static void stamp_probe_free(struct workload *w)
{
        struct stamp_probe *s = stamp_probe_of(w);

        if (!s)
                return;
        child_done(&s->probe_child);
        child_done(&s->reflector_child);
        if (s->epoll >= 0)
                close(s->epoll);
        probe_free(s->probe);
        reflector_free(s->reflector);
        key_table_done(&stamp_probe_table, &s->keys);
        free(s);
}

/* The reflector first, so that it listens when the first packet comes. */
static int stamp_probe_build(struct stamp_probe *s, const struct node *config, struct err *err)
{
        int r;

        r = key_table_read(&stamp_probe_table, config, "workload", &s->keys, err);
        if (r >= 0)
                r = find_flows(s, err);
        if (r >= 0)
                r = make_reflector(s, err);
        if (r >= 0)
                r = make_probe(s, err);
        if (r >= 0)
                r = traffic_child_start(s->boundary, "reflector", s->keys.to, run_reflector, s, &s->reflector_child,
                                        err);
        if (r >= 0)
                r = traffic_child_start(s->boundary, "probe", s->keys.from, run_probe, s, &s->probe_child, err);
        return r < 0 ? r : make_event(s, err);
}

static int stamp_probe_prepare(struct boundary *b, const char *name, const struct node *config, struct workload **ret,
                               struct err *err)
{
        struct stamp_probe *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return err_set_nomem(err);
        s->base.ops = &stamp_probe_ops;
        s->boundary = b;
        s->epoll = -1;
        s->probe_child = s->reflector_child = (struct child)CHILD_INIT;
        r = stamp_probe_build(s, config, err);
        if (r < 0) {
                stamp_probe_free(&s->base);
                return r;
        }
        *ret = &s->base;
        return 0;
}

static int stamp_probe_start(struct workload *w, int64_t start_ns, struct err *err)
{
        struct stamp_probe *s = stamp_probe_of(w);
        int r;

        r = child_go(&s->reflector_child, start_ns, err);
        if (r < 0)
                err_prefix(err, "the reflector");
        else if ((r = child_go(&s->probe_child, start_ns, err)) < 0)
                err_prefix(err, "the probe");
        return r;
}

static int stamp_probe_event_fd(const struct workload *w)
{
        return ((const struct stamp_probe *)w)->epoll;
}

static int stamp_probe_stop(struct workload *w, struct err *err)
{
        struct stamp_probe *s = stamp_probe_of(w);
        struct child_status status = {0};
        int r;

        if (!child_is_alive(&s->reflector_child)) {
                child_wait(&s->reflector_child, 0, &status);
                r = child_check("the reflector", &status, err);
                return r < 0 ? r : err_set(err, ERR_ENVIRONMENT, EPIPE, "the reflector ended in mid-trial");
        }
        r = child_wait(&s->probe_child, EXIT_NS, &status);
        if (r < 0)
                return err_set(err, ERR_ENVIRONMENT, -r, "the probe did not end");
        r = child_check("the probe", &status, err);
        child_stop(&s->reflector_child, NSEC_PER_SEC, NULL);
        return r;
}

static int account(struct stamp_probe *s, const struct slots_counts *all, struct err *err)
{
        int r;

        s->there.sent_packets = all->sent - all->refused;
        s->there.has_ttl = all->forward_ttl_max > 0;
        s->there.ttl_min = all->forward_ttl_min;
        s->there.ttl_max = all->forward_ttl_max;
        s->back.sent_packets = reflector_counts(s->reflector)->reflected;
        s->back.has_ttl = all->return_ttl_max > 0;
        s->back.ttl_min = all->return_ttl_min;
        s->back.ttl_max = all->return_ttl_max;
        r = boundary_zones_account(s->boundary, &s->there, err);
        return r < 0 ? r : boundary_zones_account(s->boundary, &s->back, err);
}

static int stamp_probe_collect(struct workload *w, struct sample_writer *out, struct workload_result *ret,
                               struct err *err)
{
        struct stamp_probe *s = stamp_probe_of(w);
        const struct slots *slots = probe_slots(s->probe);
        struct slots_counts all;
        int r;

        if (probe_notes(s->probe)->is_realtime_stepped)
                return err_set(err, ERR_ENVIRONMENT, ECANCELED,
                               "the real-time clock was set during the trial, and kernel stamps are taken of it");
        r = slots_write(slots, out, err);
        if (r < 0)
                return r;
        slots_count(slots, 0, slots->n, &all);
        r = account(s, &all, err);
        if (r < 0)
                return r;
        ret->counts = slots_counts_json(&all);
        ret->notes = json_pack("{s:o*, s:o*}", "probe", probe_notes_json(s->probe), "reflector",
                               reflector_notes_json(s->reflector));
        if (!ret->counts || !ret->notes ||
            json_object_set_new(ret->counts, "warmup_slots", json_integer((json_int_t)s->warmup_slots)) < 0)
                return err_set_nomem(err);
        return 0;
}

const struct workload_ops stamp_probe_ops = {
        .columns = slots_columns,
        .n_columns = SLOTS_N_COLUMNS,
        .prepare = stamp_probe_prepare,
        .start = stamp_probe_start,
        .event_fd = stamp_probe_event_fd,
        .stop = stamp_probe_stop,
        .collect = stamp_probe_collect,
        .free = stamp_probe_free,
};

int stamp_probe_size(const struct node *map, struct workload_size *ret, struct err *err)
{
        struct stamp_probe_keys k = {0};
        int r = key_table_read(&stamp_probe_table, map, "workload", &k, err);

        if (r >= 0) {
                ret->duration_ns = k.warmup_ns + k.duration_ns;
                ret->values = (int64_t)slots_in(k.duration_ns, k.rate_hz);
                ret->rows = (int64_t)slots_in(k.warmup_ns, k.rate_hz) + ret->values;
        }
        key_table_done(&stamp_probe_table, &k);
        return r;
}
