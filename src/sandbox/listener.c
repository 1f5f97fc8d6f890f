/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/listener.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "sandbox/way.h"

#define BACKLOG 64

/* On IPv6 and by it on IPv4; on a kernel without IPv6 on IPv4 alone. */
static int open_at(int family, int type, uint16_t port, struct err *err)
{
        const struct ip_prefix any = {.family = family};
        const int no = 0, yes = 1;
        _cleanup_close_ int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_storage where;
        socklen_t len = ip_prefix_sockaddr(&any, port, &where);

        if (fd < 0)
                return -errno;
        if (family == AF_INET6)
                setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
        if (type == SOCK_STREAM)
                setsockopt(fd, IPPROTO_TCP, 23 /* TCP_FASTOPEN */, &yes, sizeof(yes));
        if (bind(fd, (struct sockaddr *)&where, len) < 0 || (type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
                return -errno;
        return TAKE_FD(fd);
}

static int open_pair(int family, struct listener *l, struct err *err)
{
        struct sockaddr_storage where;
        socklen_t len = sizeof(where);

        l->tcp_fd = open_at(family, SOCK_STREAM, 0, err);
        if (l->tcp_fd < 0)
                return l->tcp_fd;
        if (getsockname(l->tcp_fd, (struct sockaddr *)&where, &len) < 0)
                return -errno;
        l->port = ntohs(((struct sockaddr_in *)&where)->sin_port); /* at the same place in either family */
        l->udp_fd = open_at(family, SOCK_DGRAM, l->port, err);
        return l->udp_fd < 0 ? l->udp_fd : 0;
}

static int open_sockets(struct listener *l, struct err *err)
{
        int r = -EADDRINUSE;

        /* the port may be taken for UDP */
        for (int i = 0; i < 8 && r == -EADDRINUSE; i++) {
                listener_done(l);
                r = open_pair(AF_INET6, l, err);
        }
        if (r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL) {
                listener_done(l);
                r = open_pair(AF_INET, l, err);
        }
        return r < 0 ? err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot listen for what gets out of the sandbox") : 0;
}

/* Whether what is sent to the address from here, where nothing is forbidden, is noticed: the positive control. */
static bool is_noticed(struct listener *l, const struct ip_prefix *address)
{
        for (size_t i = 0; i < n_network_ways; i++) {
                const struct way *way = &network_ways[i];

                if (!streq(way->name, "tcp") && !streq(way->name, "udp"))
                        continue;
                if (way->try(address, l->port) < 0 || listener_drain(l) == 0)
                        return false;
        }
        return true;
}

static void add_address(struct listener *l, const struct sockaddr *address)
{
        struct ip_prefix one = {.family = address->sa_family};

        if (address->sa_family == AF_INET) {
                memcpy(one.bytes, &((const struct sockaddr_in *)address)->sin_addr, 4);
                one.length_bits = 32;
        } else if (address->sa_family == AF_INET6 &&
                   !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)address)->sin6_addr)) {
                memcpy(one.bytes, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
                one.length_bits = 128;
        } else {
                return;
        }
        if (l->n < LISTENER_ADDRESSES && is_noticed(l, &one))
                l->at[l->n++] = one;
}

int listener_open(struct listener *ret, struct err *err)
{
        struct listener l = LISTENER_INIT;
        struct ifaddrs *all;
        int r;

        r = open_sockets(&l, err);
        if (r == 0 && getifaddrs(&all) < 0)
                r = err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot list the addresses of this host");
        if (r < 0) {
                listener_done(&l);
                return r;
        }
        for (const struct ifaddrs *a = all; a; a = a->ifa_next)
                if (a->ifa_addr && (a->ifa_flags & IFF_UP))
                        add_address(&l, a->ifa_addr);
        freeifaddrs(all);
        if (l.n == 0) {
                listener_done(&l);
                return err_set(err, ERR_ENVIRONMENT, EIO,
                               "a listener on this host does not notice what is sent to it: that nothing gets out of "
                               "the sandbox cannot be proven");
        }
        *ret = l;
        return 0;
}

unsigned listener_drain(struct listener *listener)
{
        unsigned n = 0;
        char byte;
        int fd;

        while ((fd = accept4(listener->tcp_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
                close(fd);
                n++;
        }
        while (recv(listener->udp_fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_TRUNC) >= 0)
                n++;
        return n;
}

void listener_done(struct listener *listener)
{
        close_cleanup(&listener->tcp_fd);
        close_cleanup(&listener->udp_fd);
        listener->tcp_fd = listener->udp_fd = -1;
}
