/* SPDX-License-Identifier: Apache-2.0 */
#include "load/udp.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <linux/sock_diag.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/sample.h"

#define STAMP_FLAGS_RECEIVE (SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE)
#define STAMP_FLAGS_SEND    (STAMP_FLAGS_RECEIVE | SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY)

static int set_option(int fd, int level, int name, int value)
{
        return setsockopt(fd, level, name, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* Asks for more than the system's limit, and takes what that allows where the right is missing. */
static int set_buffer(int fd, int forced, int ordinary, int bytes, int *ret_bytes, bool *ret_is_forced)
{
        socklen_t len = sizeof(*ret_bytes);
        int r;

        *ret_is_forced = set_option(fd, SOL_SOCKET, forced, bytes) == 0;
        if (!*ret_is_forced) {
                r = set_option(fd, SOL_SOCKET, ordinary, bytes);
                if (r < 0)
                        return r;
        }
        return getsockopt(fd, SOL_SOCKET, ordinary, ret_bytes, &len) < 0 ? -errno : 0;
}

static int set_buffers(int fd, int send_bytes, struct udp_buffers *ret)
{
        int r;

        r = set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, send_bytes, &ret->send_bytes, &ret->is_send_forced);
        if (r < 0)
                return r;
        return set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, UDP_BUFFER_BYTES, &ret->receive_bytes,
                          &ret->is_receive_forced);
}

struct socket_option {
        int level, name, value;
        bool is_wanted;
};

static int set_options(int fd, int family, const struct udp_options *o)
{
        int stamps = o->stamps == UDP_STAMPS_BOTH ? STAMP_FLAGS_SEND | SOF_TIMESTAMPING_OPT_ID : STAMP_FLAGS_RECEIVE;
        bool is_v6 = family == AF_INET6;
        const struct socket_option options[] = {
                {SOL_SOCKET, SO_TIMESTAMPING, stamps, o->stamps != UDP_STAMPS_NONE},
                {SOL_SOCKET, SO_RXQ_OVFL, 1, o->want_overflow},
                {IPPROTO_IPV6, IPV6_V6ONLY, 1, is_v6},
                {IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, is_v6},
                {IPPROTO_IPV6, IPV6_UNICAST_HOPS, o->ttl, is_v6 && o->ttl != 0},
                {IPPROTO_IPV6, IPV6_TCLASS, o->dscp << 2, is_v6 && o->dscp != 0},
                {IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1, is_v6 && o->want_ttl},
                {IPPROTO_IPV6, IPV6_RECVTCLASS, 1, is_v6 && o->want_dscp},
                {IPPROTO_IPV6, IPV6_RECVPKTINFO, 1, is_v6 && o->want_local},
                {IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, !is_v6},
                {IPPROTO_IP, IP_TTL, o->ttl, !is_v6 && o->ttl != 0},
                {IPPROTO_IP, IP_TOS, o->dscp << 2, !is_v6 && o->dscp != 0},
                {IPPROTO_IP, IP_RECVTTL, 1, !is_v6 && o->want_ttl},
                {IPPROTO_IP, IP_RECVTOS, 1, !is_v6 && o->want_dscp},
                {IPPROTO_IP, IP_PKTINFO, 1, !is_v6 && o->want_local},
        };

        for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
                int r = options[i].is_wanted ? set_option(fd, options[i].level, options[i].name, options[i].value) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

static int set_no_way(struct err *err, int errnum, const union address *peer)
{
        bool lacks_link = peer->any.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&peer->v6.sin6_addr) &&
                          peer->v6.sin6_scope_id == 0;
        char text[ADDRESS_TEXT];

        return err_set_errno(err, ERR_ENVIRONMENT, errnum, "no way to %s%s", address_format(peer, text),
                             lacks_link ? ", which is link-local and needs the name of its link (%eth0) behind it"
                                        : "");
}

static int bind_alone(int fd, const union address *local)
{
        return local->any.sa_family != AF_UNSPEC && bind(fd, &local->any, address_len(local)) < 0 ? -errno : 0;
}

/* Two sockets may have one address while both say so, and they say so only meanwhile: nobody else gets in. */
static int bind_beside(int fd, const struct udp_options *options)
{
        int r;

        r = set_option(options->beside, SOL_SOCKET, SO_REUSEADDR, 1);
        if (r < 0)
                return r;
        r = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
        if (r == 0)
                r = bind_alone(fd, &options->local);
        if (r == 0)
                r = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 0);
        set_option(options->beside, SOL_SOCKET, SO_REUSEADDR, 0);
        return r;
}

int udp_open(const struct udp_options *options, struct udp_buffers *ret_buffers, struct err *err)
{
        const union address *local = &options->local, *peer = &options->peer;
        int family = local->any.sa_family != AF_UNSPEC ? local->any.sa_family : peer->any.sa_family;
        char text[ADDRESS_TEXT];
        _cleanup_close_ int fd = -1;
        struct udp_buffers buffers;
        int r;

        fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
        if (fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot open an %s socket",
                                     family == AF_INET6 ? "IPv6" : "IPv4");
        r = set_buffers(fd, options->send_buffer_bytes > 0 ? options->send_buffer_bytes : UDP_BUFFER_BYTES, &buffers);
        if (r == 0)
                r = set_options(fd, family, options);
        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot set the options of a UDP socket");
        r = options->beside ? bind_beside(fd, options) : bind_alone(fd, local);
        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot bind to %s", address_format(local, text));
        if (peer->any.sa_family != AF_UNSPEC && connect(fd, &peer->any, address_len(peer)) < 0)
                return set_no_way(err, errno, peer);

        if (ret_buffers)
                *ret_buffers = buffers;
        return TAKE_FD(fd);
}

int udp_part(int fd, const union address *local)
{
        /* Nobody sends from there but the two sockets themselves. */
        return connect(fd, &local->any, address_len(local)) < 0 ? -errno : 0;
}

int udp_dropped(int fd, uint32_t *ret)
{
        uint32_t values[SK_MEMINFO_VARS] = {0};
        socklen_t len = sizeof(values);

        if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, values, &len) < 0)
                return -errno;
        *ret = values[SK_MEMINFO_DROPS];
        return 0;
}

int udp_stamps_restart(int fd)
{
        int r;

        /* The kernel starts its count where the option goes on; the other flags stay as they are. */
        r = set_option(fd, SOL_SOCKET, SO_TIMESTAMPING, STAMP_FLAGS_SEND);
        if (r < 0)
                return r;
        return set_option(fd, SOL_SOCKET, SO_TIMESTAMPING, STAMP_FLAGS_SEND | SOF_TIMESTAMPING_OPT_ID);
}

int udp_timeout(int fd, int64_t timeout_ns)
{
        struct timeval tv = {.tv_sec = timeout_ns / NSEC_PER_SEC, .tv_usec = timeout_ns % NSEC_PER_SEC / NSEC_PER_USEC};

        return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) < 0 ? -errno : 0;
}

/* The software stamp is the first of three; a zero one was not taken. */
static int64_t stamp_of(const struct cmsghdr *c)
{
        struct scm_timestamping stamps;

        if (c->cmsg_len < CMSG_LEN(sizeof(stamps)))
                return SAMPLE_MISSING;
        memcpy(&stamps, CMSG_DATA(c), sizeof(stamps));
        if (stamps.ts[0].tv_sec == 0 && stamps.ts[0].tv_nsec == 0)
                return SAMPLE_MISSING;
        return nsec_of_timespec(stamps.ts[0]);
}

static int cmsg_int(const struct cmsghdr *c)
{
        int value = 0;

        memcpy(&value, CMSG_DATA(c), MIN(sizeof(value), c->cmsg_len - CMSG_LEN(0)));
        return value;
}

static void parse_socket_level(const struct cmsghdr *c, struct udp_arrival *a)
{
        if (c->cmsg_type == SCM_TIMESTAMPING) {
                a->kernel_ns = stamp_of(c);
        } else if (c->cmsg_type == SO_RXQ_OVFL) {
                a->dropped = (uint32_t)cmsg_int(c);
                a->has_dropped = true;
        }
}

static void parse_ip_level(const struct cmsghdr *c, struct udp_arrival *a)
{
        struct in_pktinfo info;

        switch (c->cmsg_type) {
        case IP_TTL:
                a->ttl = (uint8_t)cmsg_int(c);
                break;
        case IP_TOS: /* one octet */
                a->dscp = (uint8_t)cmsg_int(c) >> 2;
                break;
        case IP_PKTINFO:
                memcpy(&info, CMSG_DATA(c), sizeof(info));
                /* Of a broadcast or multicast packet the address in its header is none of this host's. */
                a->is_unicast = info.ipi_addr.s_addr == info.ipi_spec_dst.s_addr;
                a->local.v4 = info.ipi_spec_dst;
                a->has_local = true;
                break;
        default:
                break;
        }
}

static void parse_ipv6_level(const struct cmsghdr *c, struct udp_arrival *a)
{
        switch (c->cmsg_type) {
        case IPV6_HOPLIMIT:
                a->ttl = (uint8_t)cmsg_int(c);
                break;
        case IPV6_TCLASS:
                a->dscp = (uint8_t)cmsg_int(c) >> 2;
                break;
        case IPV6_PKTINFO:
                memcpy(&a->local.v6, CMSG_DATA(c), sizeof(a->local.v6));
                a->is_unicast = !IN6_IS_ADDR_MULTICAST(&a->local.v6.ipi6_addr);
                a->has_local = true;
                break;
        default:
                break;
        }
}

void udp_arrival_parse(struct msghdr *message, struct udp_arrival *ret)
{
        struct udp_arrival a = {.kernel_ns = SAMPLE_MISSING, .is_unicast = true};

        for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
                if (c->cmsg_level == SOL_SOCKET)
                        parse_socket_level(c, &a);
                else if (c->cmsg_level == IPPROTO_IP)
                        parse_ip_level(c, &a);
                else if (c->cmsg_level == IPPROTO_IPV6)
                        parse_ipv6_level(c, &a);
        }
        *ret = a;
}

static void put_cmsg(struct msghdr *message, int level, int type, const void *data, size_t len)
{
        struct cmsghdr *c = (struct cmsghdr *)((uint8_t *)message->msg_control + message->msg_controllen);

        c->cmsg_level = level;
        c->cmsg_type = type;
        c->cmsg_len = CMSG_LEN(len);
        memcpy(CMSG_DATA(c), data, len);
        message->msg_controllen += CMSG_SPACE(len);
}

void udp_answer_put(struct msghdr *message, int family, const struct udp_arrival *arrival)
{
        bool is_v6 = family == AF_INET6;
        const int traffic_class = arrival->dscp << 2;
        const struct in_pktinfo source = {.ipi_spec_dst = arrival->local.v4};

        message->msg_controllen = 0;
        if (arrival->has_local && is_v6)
                put_cmsg(message, IPPROTO_IPV6, IPV6_PKTINFO, &arrival->local.v6, sizeof(arrival->local.v6));
        else if (arrival->has_local)
                put_cmsg(message, IPPROTO_IP, IP_PKTINFO, &source, sizeof(source));
        if (arrival->dscp != 0)
                put_cmsg(message, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP, is_v6 ? IPV6_TCLASS : IP_TOS, &traffic_class,
                         sizeof(traffic_class));
}

int udp_stamp_receive(int fd, uint32_t *ret_id, int64_t *ret_ns)
{
        _Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_BYTES];
        struct msghdr message = {.msg_control = control, .msg_controllen = sizeof(control)};
        struct sock_extended_err fault = {0};
        int64_t ns = SAMPLE_MISSING;

        if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
                return -errno;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
                if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPING)
                        ns = stamp_of(c);
                else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
                         (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
                        memcpy(&fault, CMSG_DATA(c), sizeof(fault));
        }
        if (fault.ee_origin != SO_EE_ORIGIN_TIMESTAMPING || ns == SAMPLE_MISSING)
                return 1;
        *ret_id = fault.ee_data;
        *ret_ns = ns;
        return 0;
}

json_t *udp_buffers_json(const struct udp_buffers *buffers)
{
        return json_pack("{s:i,s:i,s:b,s:b}", "send_bytes", buffers->send_bytes, "receive_bytes",
                         buffers->receive_bytes, "is_send_forced", (int)buffers->is_send_forced, "is_receive_forced",
                         (int)buffers->is_receive_forced);
}
