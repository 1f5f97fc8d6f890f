/* SPDX-License-Identifier: Apache-2.0 */
#include "load/probe.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>

#include "base/macro.h"
#include "load/clocksync.h"

/* A sleeping processor has cold caches and forgets its branches: after it, a packet takes a microsecond or two more. So
 * at high rates a real-time probe does not sleep between slots, but spins, and only now and then naps, so that ordinary
 * tasks of the processor get their share before the kernel takes it from the probe (real-time throttling, or the
 * scheduler's server for fair tasks: 5% of each second). Without real-time priority a thread that spins is soon taken
 * for one that can wait: it sleeps whenever there is time.
 *
 * A nap begins as soon as the reply is there and is short: the rest of the slot is left to a task that the kernel does
 * not take the processor from at once, and to get warm again. The longer the naps the slower the slots after them (p99
 * of the round trip through a gateway, on a virtual machine: 14 to 16 us with naps of 0.9 ms, 8 to 12 us with ones of
 * 0.1 to 0.2 ms); but when they come in every second or third slot the processor does not get warm at all, and the
 * median rises (from 5.8 to 6.2 us and more). */
#define SPIN_PERIOD_MAX_NS (2 * NSEC_PER_MSEC)
#define NAP_TENTHS         3  /* of a period */
#define NAP_SHARE          11 /* awake for so many times as long as asleep */

/* How long before a slot's time the probe wakes up, since timers are late by some ten microseconds. At the highest
 * rates it is half a period. */
#define MARGIN_NS (100 * NSEC_PER_USEC)

/* So long the probe asks for a reply again and again before it sleeps: a wake-up costs more than a short round trip.
 * Where replies keep coming later than that it gives it up for good, as it gives up spinning: then the path is long, or
 * the reflector shares the processor and has to wait for it (which is why it should have the higher priority). */
#define REPLY_POLL_NS      (150 * NSEC_PER_USEC)
#define POLL_SCORE_GIVE_UP 16 /* so many more replies came late, or not at all, than in time */

/* In the last moment before a slot's time it looks at the clock only. */
#define AIM_NS (2 * NSEC_PER_USEC)

/* What the process that measures shares with the one that reads. */
struct shared {
        struct probe_notes notes;
        struct slots slots;
};

struct probe {
        struct probe_config config;
        struct shared *shared; /* followed by the memory of the slots */
        size_t shared_bytes;

        /* of the process that runs it */
        int fd, watch_fd;
        const volatile int *stop;
        int64_t margin_ns;
        int64_t nap_ns; /* at most */
        bool is_spinner;
        int64_t awake_since_ns;
        bool is_poller;
        int poll_score;
        bool is_waiting; /* for the reply to the latest packet */
        int64_t poll_until_ns;
        uint8_t packet[PROBE_SIZE_MAX];
};

static int check_config(const struct probe_config *config, struct err *err)
{
        if (config->size_bytes < STAMP_LEN || config->size_bytes > PROBE_SIZE_MAX)
                return err_set(err, ERR_USAGE, EINVAL, "a STAMP packet has %d to %d octets, not %u", STAMP_LEN,
                               PROBE_SIZE_MAX, config->size_bytes);
        if (config->rate_hz == 0 || config->rate_hz > NSEC_PER_SEC)
                return err_set(err, ERR_USAGE, EINVAL, "a probe's rate is from 1/s to 1000000000/s");
        if (config->n_slots == 0 || config->n_slots > PROBE_SLOTS_MAX)
                return err_set(err, ERR_USAGE, EINVAL, "a probe has 1 to %u slots, not %llu", PROBE_SLOTS_MAX,
                               (unsigned long long)config->n_slots);
        if (!address_is_unicast(&config->peer) || address_port(&config->peer) == 0)
                return err_set(err, ERR_USAGE, EINVAL, "a probe goes to the unicast address and port of one reflector");
        return 0;
}

int probe_new(const struct probe_config *config, struct probe **ret, struct err *err)
{
        _cleanup_probe_ struct probe *p = NULL;
        int r;

        r = check_config(config, err);
        if (r < 0)
                return r;
        p = calloc(1, sizeof(*p));
        if (!p)
                return err_set_nomem(err);
        p->config = *config;
        p->fd = p->watch_fd = -1;
        p->shared_bytes = sizeof(*p->shared) + slots_size(config->n_slots);
        p->shared = mmap(NULL, p->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (p->shared == MAP_FAILED) {
                p->shared = NULL;
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "no memory for %llu probe slots (%zu bytes)",
                                     (unsigned long long)config->n_slots, p->shared_bytes);
        }
        slots_init(&p->shared->slots, p->shared + 1, config->n_slots, config->first_sequence);
        *ret = TAKE_PTR(p);
        return 0;
}

void probe_free(struct probe *p)
{
        if (!p)
                return;
        if (p->fd >= 0)
                close(p->fd);
        if (p->watch_fd >= 0)
                close(p->watch_fd);
        if (p->shared)
                munmap(p->shared, p->shared_bytes);
        free(p);
}

const struct slots *probe_slots(const struct probe *p)
{
        return &p->shared->slots;
}

const struct probe_notes *probe_notes(const struct probe *p)
{
        return &p->shared->notes;
}

int probe_open(struct probe *p, struct err *err)
{
        const struct udp_options options = {
                .local = p->config.local,
                .peer = p->config.peer,
                .ttl = STAMP_TTL,
                .dscp = p->config.dscp,
                .stamps = p->config.no_send_stamps ? UDP_STAMPS_RECEIVE : UDP_STAMPS_BOTH,
                .want_ttl = true,
                .want_overflow = true,
        };

        p->fd = udp_open(&options, &p->shared->notes.buffers, err);
        if (p->fd < 0)
                return p->fd;
        p->watch_fd = clocksync_watch();
        if (p->watch_fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -p->watch_fd, "cannot watch the clock for steps");
        if (madvise(p->shared, p->shared_bytes, MADV_POPULATE_WRITE) < 0 && errno != EINVAL)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "no memory for the probe's slots");
        sched_apply(&p->config.sched, &p->shared->notes.sched);
        return 0;
}

/* The wait for the reply to the latest packet is over. */
static void end_wait(struct probe *p, bool was_in_time)
{
        p->is_waiting = false;
        p->poll_score = was_in_time ? MAX(p->poll_score - 1, 0) : p->poll_score + 1;
        if (p->poll_score >= POLL_SCORE_GIVE_UP)
                p->is_poller = p->is_spinner = false;
}

/* Takes one reply, or whatever arrived. Return: 1 if something did; 0 if nothing is there; a negative errno. */
static int receive_one(struct probe *p)
{
        _Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_BYTES];
        uint8_t buf[STAMP_LEN]; /* padding is cut off */
        struct iovec iov = {.iov_base = buf, .iov_len = sizeof(buf)};
        struct msghdr message = {.msg_iov = &iov,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof(control)};
        struct slots_reply reply = {0};
        struct udp_arrival arrival;
        enum stamp_fault fault;
        ssize_t len;

        len = recvmsg(p->fd, &message, MSG_DONTWAIT);
        reply.received_ns = clock_now_ns(CLOCK_MONOTONIC);
        if (len < 0 && (errno == ECONNREFUSED || errno == EHOSTUNREACH || errno == ENETUNREACH)) {
                p->shared->notes.n_unreachable++;
                return 1;
        }
        if (len < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;

        udp_arrival_parse(&message, &arrival);
        if (arrival.has_dropped)
                p->shared->notes.receive_overflow = arrival.dropped;
        fault = stamp_reply_parse(span_of(buf, (size_t)len), &reply.packet);
        if (fault != STAMP_FAULT_NONE) {
                slots_fault(&p->shared->slots, fault);
                return 1;
        }
        reply.kernel_received_ns = arrival.kernel_ns;
        reply.ttl = arrival.ttl;
        slots_receive(&p->shared->slots, &reply);
        if (reply.packet.sender_sequence == (uint32_t)(p->shared->slots.first_sequence + p->shared->slots.n_sent - 1))
                end_wait(p, reply.received_ns <= p->poll_until_ns);
        return 1;
}

static int receive_all(struct probe *p)
{
        int r;

        do
                r = receive_one(p);
        while (r > 0);
        return r;
}

static int take_stamps(struct probe *p)
{
        for (;;) {
                uint32_t id;
                int64_t ns;
                int r = udp_stamp_receive(p->fd, &id, &ns);

                if (r == -EAGAIN)
                        return 0;
                if (r < 0)
                        return r;
                if (r == 0)
                        slots_stamp(&p->shared->slots, id, ns);
        }
}

/* How long to sleep now, with nothing to do before @until_ns but perhaps to wait for a reply.
 * @may_nap: false once the question was asked in this slot: a spinner naps early in a slot or not at all
 */
static int64_t sleep_length(const struct probe *p, int64_t now_ns, int64_t until_ns, bool may_nap)
{
        int64_t free_ns = until_ns - p->margin_ns - now_ns, nap_ns = MIN(free_ns, p->nap_ns);

        if (free_ns <= 0)
                return 0;
        if (!p->is_spinner || p->is_waiting)
                return free_ns;
        return may_nap && now_ns - p->awake_since_ns >= nap_ns * NAP_SHARE ? nap_ns : 0;
}

static int sleep_for(struct probe *p, int64_t ns)
{
        const struct timespec timeout = timespec_of_nsec(ns);
        struct pollfd pfd = {.fd = p->fd, .events = POLLIN};

        if (ppoll(&pfd, 1, &timeout, NULL) < 0 && errno != EINTR)
                return -errno;
        p->awake_since_ns = clock_now_ns(CLOCK_MONOTONIC);
        return 0;
}

/* Receives until the clock reads @until_ns. Return: the time; -EINTR where the run is to stop; another negative errno.
 */
static int64_t wait_until(struct probe *p, int64_t until_ns)
{
        bool may_nap = true;

        while (!(p->stop && *p->stop)) {
                int64_t now_ns, sleep_ns = 0;
                int r;

                r = receive_all(p);
                if (r < 0)
                        return r;
                now_ns = clock_now_ns(CLOCK_MONOTONIC);
                if (until_ns - now_ns <= AIM_NS) {
                        while (now_ns < until_ns)
                                now_ns = clock_now_ns(CLOCK_MONOTONIC);
                        return now_ns;
                }
                if (!p->is_waiting || now_ns >= p->poll_until_ns) {
                        r = take_stamps(p);
                        sleep_ns = sleep_length(p, now_ns, until_ns, may_nap);
                        may_nap = false;
                }
                if (r == 0 && sleep_ns > 0)
                        r = sleep_for(p, sleep_ns);
                else
                        sched_yield();
                if (r < 0)
                        return r;
        }
        return -EINTR;
}

/* An error that was waiting on the socket (an ICMP message) is reported by the next send, which then sends nothing. */
static ssize_t send_packet(struct probe *p)
{
        ssize_t n = send(p->fd, p->packet, p->config.size_bytes, MSG_DONTWAIT);

        if (n >= 0 || (errno != ECONNREFUSED && errno != EHOSTUNREACH && errno != ENETUNREACH))
                return n;
        p->shared->notes.n_unreachable++;
        return send(p->fd, p->packet, p->config.size_bytes, MSG_DONTWAIT);
}

static int send_slot(struct probe *p, size_t i, struct stamp_request *request)
{
        int64_t sent_ns;

        if (p->is_waiting)
                end_wait(p, false);
        sent_ns = clock_now_ns(CLOCK_MONOTONIC);
        slots_request(&p->shared->slots, sent_ns, request);
        stamp_request_put(request, p->packet);
        if (send_packet(p) >= 0) {
                slots_sent(&p->shared->slots, i, sent_ns);
                p->is_waiting = true;
                p->poll_until_ns = sent_ns + (p->is_poller ? REPLY_POLL_NS : 0);
                return 0;
        }

        /* Whether the kernel had numbered the packet before it dropped it cannot be known: count anew. */
        p->shared->notes.last_refusal = errno;
        slots_refuse(&p->shared->slots, i, sent_ns);
        if (p->config.no_send_stamps)
                return 0;
        slots_restart_stamps(&p->shared->slots);
        return udp_stamps_restart(p->fd);
}

static int send_slots(struct probe *p)
{
        const struct schedule *schedule = &p->shared->slots.schedule;
        struct stamp_request request = {.error = p->shared->notes.own_error};

        for (size_t i = 0; i < p->config.n_slots; i++) {
                int64_t now_ns = wait_until(p, schedule_due_ns(schedule, i));
                int r;

                if (now_ns < 0)
                        return now_ns == -EINTR ? 0 : (int)now_ns;
                if (now_ns > schedule_due_ns(schedule, i + 1)) {
                        slots_miss(&p->shared->slots, i);
                        continue;
                }
                r = send_slot(p, i, &request);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Waits for replies that are still out, at most until the linger is over. */
static int linger(struct probe *p)
{
        const struct slots *slots = &p->shared->slots;
        int64_t until_ns = clock_now_ns(CLOCK_MONOTONIC) + p->config.linger_ns, left_ns;

        for (;;) {
                struct pollfd pfd = {.fd = p->fd, .events = POLLIN};
                struct timespec timeout;
                int r;

                r = receive_all(p);
                if (r == 0)
                        r = take_stamps(p);
                if (r < 0)
                        return r;
                left_ns = until_ns - clock_now_ns(CLOCK_MONOTONIC);
                if (left_ns <= 0 || slots->n_answered == slots->n_sent)
                        return 0;
                timeout = timespec_of_nsec(left_ns);
                if (ppoll(&pfd, 1, &timeout, NULL) < 0 && errno != EINTR)
                        return -errno;
        }
}

static int note_clock(struct probe *p)
{
        struct probe_notes *notes = &p->shared->notes;
        struct clocksync_anchor now = clocksync_anchor_read();
        int r;

        r = clocksync_was_set(p->watch_fd);
        if (r < 0)
                return r;
        notes->is_realtime_stepped = r > 0;
        notes->realtime_step_ns = now.realtime_ns - clocksync_realtime(&p->shared->slots.anchor, now.monotonic_ns);
        return 0;
}

int probe_run(struct probe *p, int64_t start_ns, const volatile int *stop, struct err *err)
{
        const struct schedule schedule = schedule_at_rate(start_ns, p->config.rate_hz);
        const struct clocksync_anchor anchor = clocksync_anchor_read();
        int64_t period_ns = schedule_due_ns(&schedule, 1) - start_ns;
        int r;

        p->stop = stop;
        p->shared->notes.own_error = clocksync_estimate();
        p->margin_ns = MIN(MARGIN_NS, period_ns / 2);
        p->nap_ns = period_ns * NAP_TENTHS / 10;
        p->is_spinner = period_ns <= SPIN_PERIOD_MAX_NS && p->config.sched.fifo_priority > 0 &&
                        p->shared->notes.sched.fifo_errno == 0;
        p->is_poller = true;
        p->awake_since_ns = clock_now_ns(CLOCK_MONOTONIC);
        slots_begin(&p->shared->slots, &schedule, &anchor);
        r = send_slots(p);
        if (r == 0)
                r = linger(p);
        if (r == 0)
                r = note_clock(p);
        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "the probe's socket failed");
        p->shared->notes.is_spinning = p->is_spinner;
        p->shared->notes.is_complete = true;
        return 0;
}

static json_t *error_json(const struct stamp_error *e)
{
        return json_pack("{s:b,s:s,s:I}", "is_synchronised", (int)e->is_synchronised, "format",
                         e->format == STAMP_FORMAT_PTP ? "ptp" : "ntp", "error_ns",
                         (json_int_t)MIN(stamp_error_ns(e), (uint64_t)INT64_MAX));
}

json_t *probe_notes_json(const struct probe *p)
{
        const struct probe_notes *n = &p->shared->notes;
        const struct slots *s = &p->shared->slots;

        return json_pack("{s:o,s:o,s:o,s:o,s:o,s:I,s:b,s:b,s:I,s:I,s:I,s:I,s:I}", "scheduling",
                         sched_grant_json(&n->sched), "buffers", udp_buffers_json(&n->buffers), "own_clock",
                         error_json(&n->own_error), "peer_clock", error_json(&s->peer_error), "faults",
                         stamp_faults_json(s->n_faults), "realtime_step_ns", (json_int_t)n->realtime_step_ns,
                         "is_realtime_stepped", (int)n->is_realtime_stepped, "is_spinning", (int)n->is_spinning,
                         "receive_overflow", (json_int_t)n->receive_overflow, "unreachable",
                         (json_int_t)n->n_unreachable, "unmatched", (json_int_t)s->n_unmatched, "stray_stamps",
                         (json_int_t)s->n_stray_stamps, "peer_offset_ns", (json_int_t)s->peer_offset_ns);
}
