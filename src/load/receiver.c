/* SPDX-License-Identifier: Apache-2.0 */
#include "load/receiver.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/macro.h"
#include "load/udp.h"
#include "load/window.h"
#include "sys/sink.h"
#include "wire/marker.h"

#define BATCH 64

#define STOP_CHECK_NS (100 * NSEC_PER_MSEC)

/* Waking a sleeping sink for each packet costs its sender more than sending does. So where packets come faster than
 * this the sink does not wait for the next one but for a while, in which nobody has to wake it. Only a large buffer
 * holds what comes meanwhile. */
#define BUSY_NS  (100 * NSEC_PER_USEC)
#define PAUSE_NS (500 * NSEC_PER_USEC)

/* So often it is looked for what is left at the end: enough for a full buffer, and an end under a flood. */
#define LAST_CALLS 256

struct stream {
        uint32_t id;
        struct window window;
};

struct receiver_ops {
        const char *name;
        int (*open)(struct receiver *r, struct err *err);
        int (*run)(struct receiver *r, const volatile int *stop, struct err *err);
};

struct receiver {
        const struct receiver_ops *ops;
        struct receiver_config config;
        struct receiver_counts *counts; /* shared */

        /* of the process that runs it: a socket */
        int fd;
        bool has_large_buffer;
        size_t n_streams;
        struct stream streams[RECEIVER_STREAMS];
        struct mmsghdr messages[BATCH];
        struct iovec iovs[BATCH];
        uint8_t markers[BATCH][MARKER_LEN];
        _Alignas(struct cmsghdr) uint8_t controls[BATCH][UDP_CONTROL_BYTES];

        /* or a program of the kernel */
        struct sink *sink;
};

static int socket_open(struct receiver *r, struct err *err)
{
        const struct udp_options options = {.local = r->config.local, .want_overflow = true};
        struct udp_buffers buffers;
        int q;

        r->fd = udp_open(&options, &buffers, err);
        if (r->fd < 0)
                return r->fd;
        r->has_large_buffer = buffers.receive_bytes >= UDP_BUFFER_BYTES;
        q = udp_timeout(r->fd, STOP_CHECK_NS);
        if (q < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -q, "cannot set a receive timeout");
        for (size_t i = 0; i < BATCH; i++) {
                r->iovs[i] = (struct iovec){.iov_base = r->markers[i], .iov_len = MARKER_LEN};
                r->messages[i].msg_hdr =
                        (struct msghdr){.msg_iov = &r->iovs[i], .msg_iovlen = 1, .msg_control = r->controls[i]};
        }
        return 0;
}

static struct stream *stream_find(struct receiver *r, uint32_t id)
{
        for (size_t i = 0; i < r->n_streams; i++)
                if (r->streams[i].id == id)
                        return &r->streams[i];
        if (r->n_streams == RECEIVER_STREAMS)
                return NULL;
        r->streams[r->n_streams].id = id;
        return &r->streams[r->n_streams++];
}

static void note_datagram(struct receiver *r, const uint8_t *data, uint32_t len)
{
        struct stream *stream = NULL;
        struct marker marker;

        r->counts->packets++;
        r->counts->bytes += len + udp_ip_overhead(r->config.local.any.sa_family);
        if (marker_parse(span_of(data, MIN(len, (uint32_t)MARKER_LEN)), &marker) == 0)
                stream = stream_find(r, marker.stream);
        if (stream)
                window_note(&stream->window, marker.sequence);
        else
                r->counts->unmarked++;
}

static void sum_streams(struct receiver *r)
{
        struct receiver_counts *c = r->counts;
        uint64_t lost = 0, duplicates = 0, reordered = 0;

        for (size_t i = 0; i < r->n_streams; i++) {
                const struct window *w = &r->streams[i].window;

                lost += window_lost(w);
                duplicates += w->duplicates;
                reordered += w->reordered;
        }
        c->streams = r->n_streams;
        c->lost = lost;
        c->duplicates = duplicates;
        c->reordered = reordered;
}

/* After @n packets in a call that has emptied the buffer. */
static void pause_where_busy(const struct receiver *r, int n, int64_t *before_ns)
{
        const struct timespec pause = timespec_of_nsec(PAUSE_NS);
        int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

        if (r->has_large_buffer && now_ns - *before_ns < n * BUSY_NS)
                ppoll(NULL, 0, &pause, NULL);
        *before_ns = now_ns;
}

/* One call. Return: how many packets came; a negative errno. */
static int take(struct receiver *r, int flags)
{
        struct udp_arrival arrival;
        int n;

        for (size_t i = 0; i < BATCH; i++)
                r->messages[i].msg_hdr.msg_controllen = UDP_CONTROL_BYTES;
        /* MSG_TRUNC: the length is the datagram's, and of its octets only the mark is copied. */
        n = recvmmsg(r->fd, r->messages, BATCH, flags | MSG_TRUNC, NULL);
        if (n < 0)
                return -errno;
        for (int i = 0; i < n; i++)
                note_datagram(r, r->markers[i], r->messages[i].msg_len);
        udp_arrival_parse(&r->messages[n - 1].msg_hdr, &arrival);
        if (arrival.has_dropped)
                r->counts->overflow = arrival.dropped;
        return n;
}

static int socket_run(struct receiver *r, const volatile int *stop, struct err *err)
{
        int64_t before_ns = 0;

        while (!(stop && *stop)) {
                int n = take(r, MSG_WAITFORONE);

                if (n == -EAGAIN || n == -EINTR)
                        sum_streams(r);
                else if (n < 0)
                        return err_set_errno(err, ERR_ENVIRONMENT, -n, "the sink's socket failed");
                else if (n < BATCH)
                        pause_where_busy(r, n, &before_ns);
        }
        /* What came before the end counts, also where nobody looked yet. */
        for (int i = 0; i < LAST_CALLS && take(r, MSG_DONTWAIT) == BATCH;)
                i++;
        sum_streams(r);
        return 0;
}

static int bpf_open(struct receiver *r, struct err *err)
{
        unsigned index = if_nametoindex(r->config.interface);

        if (index == 0)
                return err_set_errno(err, ERR_USAGE, errno, "no interface %s", r->config.interface);
        return sink_hold((int)index, address_port(&r->config.local), &r->sink, err);
}

static int bpf_run(struct receiver *r, const volatile int *stop, struct err *err)
{
        const struct timespec pause = timespec_of_nsec(STOP_CHECK_NS);
        struct sink_counters counters;
        bool is_last;
        int q;

        do {
                is_last = stop && *stop;
                q = sink_read(r->sink, &counters, err);
                if (q < 0)
                        return q;
                r->counts->packets = counters.other.packets;
                r->counts->bytes = counters.other.bytes;
                if (!is_last)
                        ppoll(NULL, 0, &pause, NULL);
        } while (!is_last);
        return 0;
}

static const struct receiver_ops receivers[] = {
        [RECEIVER_SOCKET] = {.name = "socket", .open = socket_open, .run = socket_run},
        [RECEIVER_BPF] = {.name = "bpf", .open = bpf_open, .run = bpf_run},
};

int receiver_new(const struct receiver_config *config, struct receiver **ret, struct err *err)
{
        _cleanup_receiver_ struct receiver *r = NULL;

        if ((!address_is_unicast(&config->local) && !address_is_unspecified(&config->local)) ||
            address_port(&config->local) == 0)
                return err_set(err, ERR_USAGE, EINVAL, "a sink has a port, and a unicast address or all of them");
        if (config->kind == RECEIVER_BPF && config->interface[0] == '\0')
                return err_set(err, ERR_USAGE, EINVAL,
                               "a sink in the kernel needs the interface that load comes in by");
        r = calloc(1, sizeof(*r));
        if (!r)
                return err_set_nomem(err);
        r->ops = &receivers[config->kind];
        r->config = *config;
        r->fd = -1;
        r->counts = mmap(NULL, sizeof(*r->counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (r->counts == MAP_FAILED) {
                r->counts = NULL;
                return err_set_nomem(err);
        }
        *ret = TAKE_PTR(r);
        return 0;
}

void receiver_free(struct receiver *r)
{
        if (!r)
                return;
        if (r->fd >= 0)
                close(r->fd);
        sink_free(r->sink);
        if (r->counts)
                munmap(r->counts, sizeof(*r->counts));
        free(r);
}

int receiver_open(struct receiver *r, struct err *err)
{
        struct sched_grant grant;
        int q;

        q = r->ops->open(r, err);
        if (q < 0)
                return q;
        sched_apply(&r->config.sched, &grant);
        return 0;
}

int receiver_run(struct receiver *r, const volatile int *stop, struct err *err)
{
        return r->ops->run(r, stop, err);
}

const union address *receiver_address(const struct receiver *r)
{
        return &r->config.local;
}

const struct receiver_counts *receiver_counts(const struct receiver *r)
{
        return r->counts;
}

json_t *receiver_counts_json(const struct receiver *r)
{
        const struct receiver_counts *c = r->counts;

        if (r->config.kind == RECEIVER_BPF)
                return json_pack("{s:s,s:I,s:I}", "by", r->ops->name, "packets", (json_int_t)c->packets, "layer2_bytes",
                                 (json_int_t)c->bytes);
        return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "by", r->ops->name, "packets", (json_int_t)c->packets,
                         "ip_bytes", (json_int_t)c->bytes, "streams", (json_int_t)c->streams, "lost",
                         (json_int_t)c->lost, "duplicates", (json_int_t)c->duplicates, "reordered",
                         (json_int_t)c->reordered, "unmarked", (json_int_t)c->unmarked, "receive_overflow",
                         (json_int_t)c->overflow);
}
