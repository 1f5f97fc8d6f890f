/* SPDX-License-Identifier: Apache-2.0 */
#include "load/generator.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/macro.h"
#include "load/frames.h"
#include "load/schedule.h"
#include "wire/marker.h"

/* So many packets go to the kernel in one call where so many are due. */
#define BATCH GENERATOR_BURST_MAX

#define SEND_BUFFER_BYTES (32 << 20)

/* How often the counts that others read are brought up to date while nothing is sent. */
#define PUBLISH_NS (10 * NSEC_PER_MSEC)

/* How often the way of frames is looked up again, and while it is not known. */
#define AIM_NS       (100 * NSEC_PER_MSEC)
#define AIM_AGAIN_NS (2 * NSEC_PER_MSEC)

struct shared {
        struct generator_counts counts;
        struct sched_grant sched;
        struct udp_buffers buffers;
};

struct generator {
        struct generator_config config;
        struct shared *shared;

        /* of the process that runs it */
        int fd;
        uint32_t stream, payload_bytes;
        uint64_t tried;
        struct schedule schedule; /* of bursts */
        struct mmsghdr messages[BATCH];
        struct iovec iovs[BATCH];
        size_t stride;
        uint8_t *packets; /* BATCH of them, one after another, each with room for the headers of a frame before it */
        struct frames *frames; /* NULL: by the UDP socket only */
        bool is_aimed;         /* frames know where to */
        bool is_asking;        /* the next packet goes by the UDP socket all the same */
        int64_t aim_ns;        /* when to look it up again */
};

static int check_config(const struct generator_config *c, struct err *err)
{
        uint32_t least = udp_ip_overhead(c->peer.any.sa_family) + MARKER_LEN;

        if (!address_is_unicast(&c->peer) || address_port(&c->peer) == 0)
                return err_set(err, ERR_USAGE, EINVAL, "load goes to the unicast address and port of one sink");
        if (c->packet_bytes < least || c->packet_bytes > UINT16_MAX)
                return err_set(err, ERR_USAGE, EINVAL, "a packet of load has %u to %u octets of IP, not %u", least,
                               UINT16_MAX, c->packet_bytes);
        if (c->burst == 0 || c->burst > GENERATOR_BURST_MAX)
                return err_set(err, ERR_USAGE, EINVAL, "a burst has 1 to %d packets, not %u", GENERATOR_BURST_MAX,
                               c->burst);
        return 0;
}

int generator_new(const struct generator_config *config, struct generator **ret, struct err *err)
{
        _cleanup_generator_ struct generator *g = NULL;
        int r;

        r = check_config(config, err);
        if (r < 0)
                return r;
        g = calloc(1, sizeof(*g));
        if (!g)
                return err_set_nomem(err);
        g->config = *config;
        g->fd = -1;
        g->payload_bytes = config->packet_bytes - udp_ip_overhead(config->peer.any.sa_family);
        g->stride = FRAMES_HEADER_MAX + g->payload_bytes;
        g->packets = calloc(BATCH, g->stride);
        if (!g->packets)
                return err_set_nomem(err);
        g->shared = mmap(NULL, sizeof(*g->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (g->shared == MAP_FAILED) {
                g->shared = NULL;
                return err_set_nomem(err);
        }
        *ret = TAKE_PTR(g);
        return 0;
}

void generator_free(struct generator *g)
{
        if (!g)
                return;
        if (g->fd >= 0)
                close(g->fd);
        if (g->shared)
                munmap(g->shared, sizeof(*g->shared));
        frames_free(g->frames);
        free(g->packets);
        free(g);
}

static uint8_t *payload(const struct generator *g, size_t i)
{
        return g->packets + i * g->stride + FRAMES_HEADER_MAX;
}

/* For the socket that they are to go by. */
static void prepare_packets(struct generator *g)
{
        for (size_t i = 0; i < BATCH; i++) {
                size_t header = g->is_aimed ? frames_put_header(g->frames, payload(g, i)) : 0;

                g->iovs[i] = (struct iovec){.iov_base = payload(g, i) - header, .iov_len = g->payload_bytes + header};
                g->messages[i].msg_hdr = (struct msghdr){.msg_iov = &g->iovs[i], .msg_iovlen = 1};
        }
}

/* Looks up where frames go. While that is not known packets go by the UDP socket, for which the kernel finds it out;
 * and once after each look, so that what the kernel knows of the neighbour stays fresh, and what the path has to say
 * against such packets (ICMP) is counted as a refusal. Return: as frames_aim(). */
static int aim(struct generator *g, int64_t now_ns, struct err *err)
{
        int r = frames_aim(g->frames, err);

        g->is_aimed = r == 0;
        g->is_asking = g->is_aimed;
        g->aim_ns = now_ns + (g->is_aimed ? AIM_NS : AIM_AGAIN_NS);
        prepare_packets(g);
        return r;
}

static int open_frames(struct generator *g, struct err *err)
{
        int r;

        r = frames_new(g->fd, g->payload_bytes, SEND_BUFFER_BYTES, &g->frames, err);
        if (r < 0)
                return r;
        r = aim(g, 0, err);
        return r == -ENOENT ? 0 : r;
}

int generator_open(struct generator *g, struct err *err)
{
        const struct udp_options options = {
                .local = g->config.local,
                .peer = g->config.peer,
                .dscp = g->config.dscp,
                .send_buffer_bytes = SEND_BUFFER_BYTES,
        };

        if (getrandom(&g->stream, sizeof(g->stream), 0) != sizeof(g->stream))
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot get random bytes");
        g->fd = udp_open(&options, &g->shared->buffers, err);
        if (g->fd < 0)
                return g->fd;
        prepare_packets(g);
        if (g->config.is_framed) {
                int r = open_frames(g, err);

                if (r < 0)
                        return r;
        }
        sched_apply(&g->config.sched, &g->shared->sched);
        return 0;
}

static void note_refusal(struct generator_counts *counts, int errnum)
{
        size_t i = 0;

        while (i < GENERATOR_REFUSALS - 1 && counts->refusals[i].n > 0 && counts->refusals[i].errnum != errnum)
                i++;
        counts->refusals[i].errnum = errnum;
        counts->refusals[i].n++;
        counts->refused_packets++;
}

/* One call, for the packets from @i to @n. Return: how many the kernel took, 1 or more; -1 with errno. */
static int send_some(struct generator *g, uint64_t i, uint64_t n)
{
        int sent;

        if (!g->is_aimed)
                return sendmmsg(g->fd, g->messages + i, (unsigned)(n - i), MSG_DONTWAIT);
        if (g->is_asking) {
                g->is_asking = false;
                return send(g->fd, payload(g, i), g->payload_bytes, MSG_DONTWAIT) < 0 ? -1 : 1;
        }
        sent = sendmmsg(frames_descriptor(g->frames), g->messages + i, (unsigned)(n - i), MSG_DONTWAIT);
        if (sent > 0)
                g->shared->counts.framed_packets += (uint64_t)sent;
        return sent;
}

/* Sends up to BATCH packets. The kernel tells an error only for the first packet of a call: it is counted, and the rest
 * tried again. */
static void send_packets(struct generator *g, uint64_t n)
{
        struct generator_counts *counts = &g->shared->counts;

        for (uint64_t i = 0; i < n; i++) {
                struct marker marker = {.stream = g->stream, .sequence = g->tried + i};

                marker_put(&marker, payload(g, i));
                if (g->is_aimed)
                        frames_seal(g->frames, payload(g, i));
        }
        g->tried += n;
        for (uint64_t i = 0; i < n;) {
                int sent = send_some(g, i, n);

                if (sent < 0) {
                        note_refusal(counts, errno);
                        i++;
                } else {
                        counts->sent_packets += (uint64_t)sent;
                        i += (uint64_t)sent;
                }
        }
}

/* What is due at @now_ns, and when the next burst is. */
static uint64_t packets_due(const struct generator *g, int64_t now_ns, int64_t *ret_next_ns)
{
        uint64_t bursts;

        if (g->config.rate_bps == GENERATOR_UNLIMITED) {
                *ret_next_ns = now_ns;
                return g->tried + BATCH;
        }
        if (g->config.rate_bps == 0) {
                *ret_next_ns = INT64_MAX;
                return 0;
        }
        /* A burst is due from its nanosecond on, so also at the very moment. */
        bursts = schedule_count(&g->schedule, now_ns - g->schedule.start_ns + 1);
        *ret_next_ns = schedule_due_ns(&g->schedule, bursts);
        return bursts * g->config.burst;
}

static void publish(struct generator *g, uint64_t offered, int64_t now_ns)
{
        struct generator_counts *counts = &g->shared->counts;

        counts->offered_packets = offered;
        counts->duration_ns = now_ns - g->schedule.start_ns;
}

int generator_run(struct generator *g, int64_t start_ns, const volatile int *stop, struct err *err)
{
        const struct generator_config *c = &g->config;
        uint64_t bits = (uint64_t)(c->packet_bytes + c->layer2_bytes) * 8 * c->burst;
        int64_t end_ns = c->duration_ns > 0 ? start_ns + c->duration_ns : INT64_MAX;
        int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC), next_ns = start_ns, publish_ns = start_ns;
        uint64_t due = 0;

        g->schedule = schedule_of_bits(start_ns, bits, MAX(c->rate_bps, UINT64_C(1)));
        while (now_ns < end_ns && !(stop && *stop)) {
                if (now_ns >= next_ns)
                        due = packets_due(g, now_ns, &next_ns);
                if (due > g->tried)
                        send_packets(g, MIN(due - g->tried, (uint64_t)BATCH));
                if (now_ns >= publish_ns) {
                        publish(g, due, now_ns);
                        publish_ns = now_ns + PUBLISH_NS;
                }
                if (g->frames && now_ns >= g->aim_ns)
                        (void)aim(g, now_ns, NULL);
                now_ns = clock_now_ns(CLOCK_MONOTONIC);
        }
        /* At the end all counts are of one moment. What fell due since the last look is still sent, a backlog is not.
         */
        now_ns = MIN(now_ns, end_ns);
        if (c->rate_bps == GENERATOR_UNLIMITED)
                due = g->tried;
        else if (c->rate_bps > 0)
                due = schedule_count(&g->schedule, now_ns - start_ns) * c->burst;
        if (due > g->tried)
                send_packets(g, MIN(due - g->tried, (uint64_t)BATCH));
        publish(g, due, now_ns);
        return 0;
}

void generator_counts(const struct generator *g, struct generator_counts *ret)
{
        uint64_t bytes = g->config.packet_bytes + g->config.layer2_bytes;

        *ret = g->shared->counts;
        ret->offered_packets = MAX(ret->offered_packets, ret->sent_packets + ret->refused_packets);
        ret->offered_bytes = ret->offered_packets * bytes;
        ret->sent_bytes = ret->sent_packets * bytes;
}

static json_t *refusals_json(const struct generator_counts *c)
{
        _cleanup_json_ json_t *object = json_object();

        for (size_t i = 0; i < GENERATOR_REFUSALS && c->refusals[i].n > 0; i++) {
                const char *name = strerrorname_np(c->refusals[i].errnum);

                if (json_object_set_new(object, name ? name : "other", json_integer((json_int_t)c->refusals[i].n)) < 0)
                        return NULL;
        }
        return TAKE_PTR(object);
}

json_t *generator_counts_json(const struct generator_counts *c)
{
        return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "offered_packets", (json_int_t)c->offered_packets,
                         "offered_bytes", (json_int_t)c->offered_bytes, "sent_packets", (json_int_t)c->sent_packets,
                         "sent_bytes", (json_int_t)c->sent_bytes, "refused_packets", (json_int_t)c->refused_packets,
                         "duration_ns", (json_int_t)c->duration_ns, "refusals", refusals_json(c));
}

json_t *generator_notes_json(const struct generator *g)
{
        return json_pack("{s:o,s:o,s:I}", "scheduling", sched_grant_json(&g->shared->sched), "buffers",
                         udp_buffers_json(&g->shared->buffers), "framed_packets",
                         (json_int_t)g->shared->counts.framed_packets);
}
