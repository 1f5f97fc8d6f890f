/* SPDX-License-Identifier: Apache-2.0 */
#include "load/datagram-origin.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "load/udp.h"

#define LOOK_NS (100 * NSEC_PER_MSEC)

struct shared {
        union address local;
        struct sched_grant sched;
        atomic_ullong answered, ignored;
};

struct datagram_origin {
        struct datagram_origin_config config;
        struct shared *shared;
        int fd;
        uint8_t question[DATAGRAM_BYTES_MAX], answer[DATAGRAM_BYTES_MAX];
};

int datagram_origin_new(const struct datagram_origin_config *config, struct datagram_origin **ret, struct err *err)
{
        _cleanup_datagram_origin_ struct datagram_origin *o = calloc(1, sizeof(*o));
        void *shared;

        if (!o)
                return err_set_nomem(err);
        o->fd = -1;
        o->config = *config;
        shared = mmap(NULL, sizeof(*o->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
                return err_set_nomem(err);
        o->shared = shared;
        *ret = TAKE_PTR(o);
        return 0;
}

void datagram_origin_free(struct datagram_origin *o)
{
        if (!o)
                return;
        close_cleanup(&o->fd);
        if (o->shared)
                munmap(o->shared, sizeof(*o->shared));
        free(o);
}

int datagram_origin_open(struct datagram_origin *o, struct err *err)
{
        const struct udp_options options = {.local = o->config.local, .want_local = true};
        socklen_t len = sizeof(o->shared->local);
        int r;

        sched_apply(&o->config.sched, &o->shared->sched);
        o->fd = udp_open(&options, NULL, err);
        if (o->fd < 0)
                return o->fd;
        r = getsockname(o->fd, &o->shared->local.any, &len) < 0 ? -errno : udp_timeout(o->fd, LOOK_NS);
        return r < 0 ? err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot prepare a socket") : 0;
}

/* From the address that it was sent to, which a client that is connected waits for. */
static void answer(struct datagram_origin *o, struct msghdr *message, size_t len)
{
        const union address *peer = message->msg_name;
        struct iovec part = {.iov_base = o->answer};
        struct udp_arrival arrival;

        udp_arrival_parse(message, &arrival);
        part.iov_len = datagram_reply(&o->config.question, span_of(o->question, len), o->answer);
        message->msg_iov = &part;
        message->msg_flags = 0;
        message->msg_controllen = UDP_CONTROL_BYTES;
        udp_answer_put(message, peer->any.sa_family, &arrival);
        if (part.iov_len > 0 && sendmsg(o->fd, message, 0) >= 0)
                atomic_fetch_add(&o->shared->answered, 1);
        else
                atomic_fetch_add(&o->shared->ignored, 1);
}

int datagram_origin_run(struct datagram_origin *o, const volatile int *stop, struct err *err)
{
        while (!(stop && *stop)) {
                _Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_BYTES];
                struct iovec part = {.iov_base = o->question, .iov_len = sizeof(o->question)};
                union address peer;
                struct msghdr message = {.msg_name = &peer,
                                         .msg_namelen = sizeof(peer),
                                         .msg_iov = &part,
                                         .msg_iovlen = 1,
                                         .msg_control = control,
                                         .msg_controllen = sizeof(control)};
                ssize_t n = recvmsg(o->fd, &message, 0);

                if (n >= 0)
                        answer(o, &message, (size_t)n);
                else if (errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED)
                        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot receive");
        }
        return 0;
}

const union address *datagram_origin_address(const struct datagram_origin *o)
{
        return &o->shared->local;
}

void datagram_origin_count(const struct datagram_origin *o, struct datagram_origin_counts *ret)
{
        *ret = (struct datagram_origin_counts){.answered = atomic_load(&o->shared->answered),
                                               .ignored = atomic_load(&o->shared->ignored)};
}
