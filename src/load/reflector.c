/* SPDX-License-Identifier: Apache-2.0 */
#include "load/reflector.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/sample.h"
#include "load/clocksync.h"
#include "load/peers.h"

/* So many packets are taken in one call where so many wait. A single packet does not wait for others. */
#define BATCH 32

/* Packets that come closer together than this, or wait together, are taken in batches. Else one is asked for, by the
 * call that hands it out without looking for a second one first. */
#define BUSY_NS (50 * NSEC_PER_USEC)

/* After so many full batches in a row from one peer it gets a socket of its own: the kernel then does not look up the
 * way to it for each reply, which is a tenth of all the work. It is given up as soon as the reflector keeps up. */
#define BATCHES_TO_SESSION 16

#define PACKET_MAX 65536

/* How often the stop flag is looked at while nothing arrives. */
#define STOP_CHECK_NS (100 * NSEC_PER_MSEC)

/* How often the kernel is asked what the clock is worth, and what a session's buffer has cost. */
#define ESTIMATE_NS NSEC_PER_SEC

struct shared {
        struct reflector_counts counts;
        struct sched_grant sched;
        struct udp_buffers buffers;
        union address address; /* where it listens */
};

struct message {
        union address from;
        struct iovec iov;
        _Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_BYTES];
        uint8_t packet[PACKET_MAX];
        uint8_t spread[320]; /* else all packets would begin in the same set of the CPU's cache */
};

struct reflector {
        struct reflector_config config;
        struct shared *shared;

        /* of the process that runs it */
        int fd;
        bool is_wildcard;
        int session_fd; /* of the peer below; -1: none has a socket of its own */
        union address session_peer;
        unsigned n_full;                   /* batches from that peer, in a row */
        uint32_t dropped, session_dropped; /* by the full buffers of the two */
        uint32_t dropped_before;           /* by those of earlier sessions */
        struct peers peers;
        struct stamp_error estimate;
        int64_t estimate_until_ns;
        struct mmsghdr in[BATCH];
        struct message messages[BATCH];
};

int reflector_new(const struct reflector_config *config, struct reflector **ret, struct err *err)
{
        _cleanup_reflector_ struct reflector *r = NULL;

        if (!address_is_unicast(&config->local) && !address_is_unspecified(&config->local))
                return err_set(err, ERR_USAGE, EINVAL, "a reflector listens on a unicast address, or on all");
        r = calloc(1, sizeof(*r));
        if (!r)
                return err_set_nomem(err);
        r->config = *config;
        r->fd = r->session_fd = -1;
        r->is_wildcard = address_is_unspecified(&config->local);
        r->shared = mmap(NULL, sizeof(*r->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (r->shared == MAP_FAILED) {
                r->shared = NULL;
                return err_set_nomem(err);
        }
        *ret = TAKE_PTR(r);
        return 0;
}

void reflector_free(struct reflector *r)
{
        if (!r)
                return;
        if (r->fd >= 0)
                close(r->fd);
        if (r->session_fd >= 0)
                close(r->session_fd);
        if (r->shared)
                munmap(r->shared, sizeof(*r->shared));
        free(r);
}

const struct reflector_counts *reflector_counts(const struct reflector *r)
{
        return &r->shared->counts;
}

void reflector_address(const struct reflector *r, union address *ret)
{
        *ret = r->shared->address;
}

/* @peer: NULL for the socket that takes from all; else one for this peer, beside that */
static int open_socket(struct reflector *r, const union address *local, const union address *peer,
                       struct udp_buffers *ret_buffers, struct err *err)
{
        struct udp_options options = {
                .local = *local,
                .ttl = STAMP_TTL,
                .stamps = UDP_STAMPS_RECEIVE,
                .want_ttl = true,
                .want_overflow = !peer,
                .want_dscp = true,
                .want_local = r->is_wildcard,
        };

        if (peer) {
                options.peer = *peer;
                options.beside = r->fd;
        }
        return udp_open(&options, ret_buffers, err);
}

int reflector_open(struct reflector *r, struct err *err)
{
        uint64_t key;
        socklen_t len = sizeof(r->shared->address);
        int q;

        if (getrandom(&key, sizeof(key), 0) != sizeof(key))
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot get random bytes");
        peers_init(&r->peers, key);
        r->fd = open_socket(r, &r->config.local, NULL, &r->shared->buffers, err);
        if (r->fd < 0)
                return r->fd;
        q = udp_timeout(r->fd, STOP_CHECK_NS);
        if (q == 0 && getsockname(r->fd, &r->shared->address.any, &len) < 0)
                q = -errno;
        if (q < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -q, "cannot set up the reflector's socket");
        sched_apply(&r->config.sched, &r->shared->sched);
        return 0;
}

static void prepare_batch(struct reflector *r)
{
        for (size_t i = 0; i < BATCH; i++) {
                struct message *m = &r->messages[i];

                m->iov = (struct iovec){.iov_base = m->packet, .iov_len = sizeof(m->packet)};
                r->in[i].msg_hdr = (struct msghdr){
                        .msg_name = &m->from,
                        .msg_namelen = sizeof(m->from),
                        .msg_iov = &m->iov,
                        .msg_iovlen = 1,
                        .msg_control = m->control,
                        .msg_controllen = sizeof(m->control),
                };
        }
}

/* Undoes what receiving and sending changed. */
static void reset_message(struct msghdr *header, struct message *m)
{
        m->iov.iov_len = sizeof(m->packet);
        header->msg_namelen = sizeof(m->from);
        header->msg_controllen = sizeof(m->control);
}

static int64_t fallback_stamp(struct reflector *r)
{
        r->shared->counts.unstamped++;
        return clock_now_ns(CLOCK_REALTIME);
}

/* Turns a request into its reply, in place; the padding after it stays. Return: whether it is to be answered. */
static bool make_reply(struct reflector *r, struct message *m, uint32_t len, const struct udp_arrival *arrival,
                       int64_t now_ns, struct stamp_reply *reply)
{
        struct reflector_counts *counts = &r->shared->counts;
        struct stamp_request request;
        enum stamp_fault fault;
        int64_t received_ns;

        if (!arrival->is_unicast || !address_is_unicast(&m->from) || address_port(&m->from) == 0) {
                counts->not_unicast++;
                return false;
        }
        fault = stamp_request_parse(span_of(m->packet, len), &request);
        if (fault != STAMP_FAULT_NONE) {
                counts->faults[fault]++;
                return false;
        }
        received_ns = arrival->kernel_ns != SAMPLE_MISSING ? arrival->kernel_ns : fallback_stamp(r);
        *reply = (struct stamp_reply){
                .sequence = r->config.is_stateless ? request.sequence
                                                   : peers_count(&r->peers, &m->from, request.session, now_ns),
                .error = r->estimate,
                .session = request.session,
                .receive_timestamp = stamp_time_encode(STAMP_FORMAT_NTP, received_ns),
                .sender_sequence = request.sequence,
                .sender_timestamp = request.timestamp,
                .sender_error = request.error,
                .sender_ttl = arrival->ttl,
        };
        return true;
}

/* A reply that needs no ancillary data goes by the call that has less to copy and to check. */
static ssize_t send_to_any(struct reflector *r, const struct msghdr *header)
{
        const struct iovec *iov = header->msg_iov;

        if (header->msg_controllen > 0)
                return sendmsg(r->fd, header, MSG_DONTWAIT);
        return sendto(r->fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT, header->msg_name, header->msg_namelen);
}

/* A socket of the peer's own also reports what an earlier reply met on its way (ICMP) instead of sending: then, and for
 * ancillary data, the other one is as good. */
static ssize_t send_reply(struct reflector *r, const struct msghdr *header, const union address *to, int fd)
{
        const struct iovec *iov = header->msg_iov;

        if (fd == r->session_fd && header->msg_controllen == 0 && address_equal(to, &r->session_peer) &&
            send(fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT) >= 0) {
                r->shared->counts.by_session++;
                return 0;
        }
        return send_to_any(r, header);
}

/* The session's socket is asked now and then, since it is full as long as there is one. */
static void note_dropped(struct reflector *r)
{
        if (r->session_fd >= 0)
                (void)udp_dropped(r->session_fd, &r->session_dropped);
        r->shared->counts.receive_overflow = r->dropped + r->session_dropped + r->dropped_before;
}

/* @fd: the socket that it came by */
static void answer(struct reflector *r, struct msghdr *header, struct message *m, uint32_t len, int64_t now_ns, int fd)
{
        struct reflector_counts *counts = &r->shared->counts;
        struct udp_arrival arrival;
        struct stamp_reply reply;

        udp_arrival_parse(header, &arrival);
        if (arrival.has_dropped) {
                r->dropped = arrival.dropped;
                note_dropped(r);
        }
        if (!make_reply(r, m, len, &arrival, now_ns, &reply))
                return;

        m->iov.iov_len = len;
        udp_answer_put(header, r->config.local.any.sa_family, &arrival);
        reply.timestamp = stamp_time_encode(STAMP_FORMAT_NTP, clock_now_ns(CLOCK_REALTIME));
        stamp_reply_put(&reply, m->packet);
        if (send_reply(r, header, &m->from, fd) < 0) {
                counts->refused++;
                counts->last_refusal = errno;
                return;
        }
        counts->reflected++;
}

static void answer_all(struct reflector *r, int n, int64_t now_ns, int fd)
{
        r->shared->counts.received += (uint64_t)n;
        for (int i = 0; i < n; i++) {
                answer(r, &r->in[i].msg_hdr, &r->messages[i], r->in[i].msg_len, now_ns, fd);
                reset_message(&r->in[i].msg_hdr, &r->messages[i]);
        }
}

/* Whether a session is worth it after a batch of @n, which has been answered. */
static void consider_session(struct reflector *r, int n)
{
        const union address *from = &r->messages[0].from;

        for (int i = 0; i < n && n == BATCH; i++)
                if (!address_equal(&r->messages[i].from, &r->session_peer))
                        n = 0;
        if (n < BATCH) {
                r->session_peer = *from;
                r->n_full = 0;
        } else if (++r->n_full == BATCHES_TO_SESSION) {
                /* Where it cannot be had, all goes on as before. */
                r->session_fd = open_socket(r, &r->shared->address, &r->session_peer, NULL, NULL);
                r->n_full = 0;
        }
}

/* After its packets go to the other socket again, what is left in its own is still answered. */
static void end_session(struct reflector *r, int64_t now_ns)
{
        bool is_parted = udp_part(r->session_fd, &r->shared->address) == 0;

        /* An error that waited on the socket comes first; only the second failure says that nothing is left. */
        for (int failures = 0; is_parted && failures < 2;) {
                int n = recvmmsg(r->session_fd, r->in, BATCH, MSG_DONTWAIT, NULL);

                if (n > 0)
                        answer_all(r, n, now_ns, r->fd); /* its own leads nowhere now */
                else
                        failures++;
        }
        note_dropped(r);
        close(r->session_fd);
        r->session_fd = -1;
        r->dropped_before += r->session_dropped;
        r->session_dropped = 0;
}

/* Packets that wait, from either socket: first from that of all, since there the older ones of the peer are. */
static int receive_waiting(struct reflector *r, int *ret_fd)
{
        int fds[] = {r->fd, r->session_fd}, n = -1;

        for (size_t i = 0; i < ARRAY_SIZE(fds) && n < 0; i++) {
                n = recvmmsg(fds[i], r->in, BATCH, MSG_DONTWAIT, NULL);
                *ret_fd = fds[i];
        }
        return n;
}

/* Return: how many packets came; -1 with errno. */
static int receive(struct reflector *r, bool is_busy, int *ret_fd)
{
        ssize_t len;

        if (r->session_fd >= 0)
                return receive_waiting(r, ret_fd);
        *ret_fd = r->fd;
        if (is_busy)
                return recvmmsg(r->fd, r->in, BATCH, MSG_WAITFORONE, NULL);
        len = recvmsg(r->fd, &r->in[0].msg_hdr, 0);
        r->in[0].msg_len = (unsigned)len;
        return len < 0 ? -1 : 1;
}

int reflector_run(struct reflector *r, const volatile int *stop, struct err *err)
{
        int64_t now_ns = 0, before_ns = 0;
        bool is_busy = false;

        prepare_batch(r);
        while (!(stop && *stop)) {
                int fd, n = receive(r, is_busy, &fd);

                if (n < 0 && r->session_fd >= 0) { /* what it has to report is the peer's affair */
                        end_session(r, now_ns);
                        continue;
                }
                if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNREFUSED))
                        continue;
                if (n < 0)
                        return err_set_errno(err, ERR_ENVIRONMENT, errno, "the reflector's socket failed");
                before_ns = now_ns;
                now_ns = clock_now_ns(CLOCK_MONOTONIC);
                is_busy = n > 1 || now_ns - before_ns < BUSY_NS;
                if (now_ns >= r->estimate_until_ns) {
                        r->estimate = clocksync_estimate();
                        r->estimate_until_ns = now_ns + ESTIMATE_NS;
                        note_dropped(r);
                }
                answer_all(r, n, now_ns, fd);
                if (r->session_fd < 0 && !r->is_wildcard)
                        consider_session(r, n);
        }
        note_dropped(r);
        return 0;
}

json_t *reflector_notes_json(const struct reflector *r)
{
        const struct reflector_counts *c = &r->shared->counts;

        return json_pack("{s:I,s:I,s:I,s:o,s:I,s:I,s:I,s:I,s:I,s:o,s:o}", "by_session", (json_int_t)c->by_session,
                         "received", (json_int_t)c->received, "reflected", (json_int_t)c->reflected, "faults",
                         stamp_faults_json(c->faults), "not_unicast", (json_int_t)c->not_unicast, "refused",
                         (json_int_t)c->refused, "unstamped", (json_int_t)c->unstamped, "evicted",
                         (json_int_t)c->evicted, "receive_overflow", (json_int_t)c->receive_overflow, "scheduling",
                         sched_grant_json(&r->shared->sched), "buffers", udp_buffers_json(&r->shared->buffers));
}
