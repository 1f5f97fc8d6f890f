/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/macro.h"
#include "sandbox/way.h"

/* Each sends something that whoever listens at the address would see. */

#define FRAGMENTED_BYTES 60000
#define SMALLEST_MTU     1280 /* of IPv6 (RFC 8200, 5) */
#define DISCARD_PORT     9

static int open_socket(int family, int type)
{
        int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        return fd < 0 ? -errno : fd;
}

/* The address, for @family: one of IPv4 is mapped into IPv6 where that is asked for. */
static socklen_t place(const struct ip_prefix *to, uint16_t port, int family, struct sockaddr_storage *ret)
{
        struct ip_prefix mapped = {.family = AF_INET6, .length_bits = 128, .bytes = {[10] = 0xff, [11] = 0xff}};

        if (to->family == family)
                return ip_prefix_sockaddr(to, port, ret);
        memcpy(mapped.bytes + 12, to->bytes, 4);
        return ip_prefix_sockaddr(&mapped, port, ret);
}

static int connect_and_send(int fd, const struct ip_prefix *to, uint16_t port, int family)
{
        struct sockaddr_storage where;
        socklen_t len = place(to, port, family, &where);

        if (connect(fd, (struct sockaddr *)&where, len) < 0 && errno != EINPROGRESS)
                return -errno;
        return send(fd, "x", 1, MSG_NOSIGNAL) < 0 && errno != EAGAIN ? -errno : 0;
}

static int try_connect(const struct ip_prefix *to, uint16_t port, int family, int type)
{
        _cleanup_close_ int fd = open_socket(family, type);

        return fd < 0 ? fd : connect_and_send(fd, to, port, family);
}

static int try_tcp(const struct ip_prefix *to, uint16_t port)
{
        return try_connect(to, port, to->family, SOCK_STREAM);
}

static int try_tcp_mapped(const struct ip_prefix *to, uint16_t port)
{
        return try_connect(to, port, AF_INET6, SOCK_STREAM);
}

static int try_udp_connected(const struct ip_prefix *to, uint16_t port)
{
        return try_connect(to, port, to->family, SOCK_DGRAM);
}

static int try_udp_mapped(const struct ip_prefix *to, uint16_t port)
{
        return try_connect(to, port, AF_INET6, SOCK_DGRAM);
}

static int try_tcp_fast_open(const struct ip_prefix *to, uint16_t port)
{
        _cleanup_close_ int fd = open_socket(to->family, SOCK_STREAM);
        struct sockaddr_storage where;
        socklen_t len = ip_prefix_sockaddr(to, port, &where);

        if (fd < 0)
                return fd;
        if (sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&where, len) < 0 && errno != EINPROGRESS)
                return -errno;
        return 0;
}

/* A loose source route (RFC 791) by way of the loopback. */
static int try_tcp_options(const struct ip_prefix *to, uint16_t port)
{
        static const uint8_t route[] = {131, 7, 4, 127, 0, 0, 1, 1};
        _cleanup_close_ int fd = open_socket(AF_INET, SOCK_STREAM);

        if (fd < 0)
                return fd;
        if (setsockopt(fd, IPPROTO_IP, IP_OPTIONS, route, sizeof(route)) < 0)
                return -errno;
        return connect_and_send(fd, to, port, AF_INET);
}

/* Connected to where it may, then dissolved, then connected anew. */
static int reconnect(const struct ip_prefix *to, uint16_t port, int type)
{
        const struct ip_prefix loopback[] = {
                {.family = AF_INET, .length_bits = 32, .bytes = {127, 0, 0, 1}},
                {.family = AF_INET6, .length_bits = 128, .bytes = {[15] = 1}},
        };
        const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
        _cleanup_close_ int fd = open_socket(to->family, type);
        struct sockaddr_storage where;
        socklen_t len;

        if (fd < 0)
                return fd;
        len = ip_prefix_sockaddr(&loopback[to->family == AF_INET6], DISCARD_PORT, &where);
        (void)!connect(fd, (struct sockaddr *)&where, len);
        if (connect(fd, &nowhere, sizeof(nowhere)) < 0)
                return -errno;
        return connect_and_send(fd, to, port, to->family);
}

static int try_tcp_reconnect(const struct ip_prefix *to, uint16_t port)
{
        return reconnect(to, port, SOCK_STREAM);
}

static int try_udp_reconnect(const struct ip_prefix *to, uint16_t port)
{
        return reconnect(to, port, SOCK_DGRAM);
}

static int send_datagram(const struct ip_prefix *to, uint16_t port, size_t len)
{
        static const uint8_t zeros[FRAGMENTED_BYTES];
        const int room = 1 << 18, may_fragment = IP_PMTUDISC_DONT, yes = 1;
        _cleanup_close_ int fd = open_socket(to->family, SOCK_DGRAM);
        struct sockaddr_storage where;
        socklen_t where_len = ip_prefix_sockaddr(to, port, &where);

        if (fd < 0)
                return fd;
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
        setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &yes, sizeof(yes));
        setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &may_fragment, sizeof(may_fragment));
        return sendto(fd, zeros, len, MSG_NOSIGNAL, (struct sockaddr *)&where, where_len) < 0 ? -errno : 0;
}

static int try_udp(const struct ip_prefix *to, uint16_t port)
{
        return send_datagram(to, port, 1);
}

static int try_udp_large(const struct ip_prefix *to, uint16_t port)
{
        return send_datagram(to, port, FRAGMENTED_BYTES);
}

/* In fragments, which a program may ask for over IPv6, and whose extension header hides the ports. */
static int try_udp_fragments(const struct ip_prefix *to, uint16_t port)
{
        static const uint8_t zeros[2 * SMALLEST_MTU];
        const int mtu = SMALLEST_MTU;
        _cleanup_close_ int fd = open_socket(AF_INET6, SOCK_DGRAM);
        struct sockaddr_storage where;
        socklen_t len = ip_prefix_sockaddr(to, port, &where);

        if (fd < 0)
                return fd;
        if (setsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, sizeof(mtu)) < 0)
                return -errno;
        return sendto(fd, zeros, sizeof(zeros), MSG_NOSIGNAL, (struct sockaddr *)&where, len) < 0 ? -errno : 0;
}

/* The call that no filter of system calls can look into. */
static int try_udp_message(const struct ip_prefix *to, uint16_t port)
{
        _cleanup_close_ int fd = open_socket(to->family, SOCK_DGRAM);
        struct sockaddr_storage where;
        struct iovec iov = {.iov_base = (void *)"x", .iov_len = 1};
        struct msghdr message = {
                .msg_name = &where,
                .msg_namelen = ip_prefix_sockaddr(to, port, &where),
                .msg_iov = &iov,
                .msg_iovlen = 1,
        };

        if (fd < 0)
                return fd;
        return sendmsg(fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* To whoever listens on the port, anywhere on the links there are. */
static int try_udp_everybody(const struct ip_prefix *to, uint16_t port)
{
        const struct ip_prefix groups[] = {
                {.family = AF_INET, .length_bits = 32, .bytes = {255, 255, 255, 255}},
                {.family = AF_INET, .length_bits = 32, .bytes = {224, 0, 0, 1}},
                {.family = AF_INET6, .length_bits = 128, .bytes = {0xff, 0x0e, [15] = 1}},
        };
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
                if (groups[i].family == to->family)
                        r = send_datagram(&groups[i], port, 1);
        return r;
}

const struct way network_ways[] = {
        {"tcp", WAY_V4 | WAY_V6, .try = try_tcp},
        {"tcp-mapped", WAY_V4, .try = try_tcp_mapped},
        {"tcp-fast-open", WAY_V4 | WAY_V6, .try = try_tcp_fast_open},
        {"tcp-source-route", WAY_V4, .try = try_tcp_options},
        {"tcp-reconnect", WAY_V4 | WAY_V6, .try = try_tcp_reconnect},
        {"udp", WAY_V4 | WAY_V6, .try = try_udp},
        {"udp-connected", WAY_V4 | WAY_V6, .try = try_udp_connected},
        {"udp-mapped", WAY_V4, .try = try_udp_mapped},
        {"udp-message", WAY_V4 | WAY_V6, .try = try_udp_message},
        {"udp-reconnect", WAY_V4 | WAY_V6, .try = try_udp_reconnect},
        {"udp-large", WAY_V4 | WAY_V6, .try = try_udp_large},
        {"udp-fragments", WAY_V6, .try = try_udp_fragments},
        {"udp-everybody", WAY_V4 | WAY_V6, .try = try_udp_everybody},
};

const size_t n_network_ways = ARRAY_SIZE(network_ways);

const struct way *way_at(size_t i)
{
        if (i < n_network_ways)
                return &network_ways[i];
        i -= n_network_ways;
        return i < n_kernel_ways ? &kernel_ways[i] : NULL;
}
