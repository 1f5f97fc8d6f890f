/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/macro.h"
#include "sandbox/proxy-internal.h"
#include "wire/packet.h"

#define READS_MAX 64 /* at one wake-up */
#define IDLE_NS                                                                                                        \
        (60 * NSEC_PER_SEC) /* without a datagram either way; RFC 4787 wants two minutes, and allows less for          \
                             * what is asked and answered */
#define SWEEP_NS (5 * NSEC_PER_SEC)
#define TTL      64

/* From one port of the command to one destination. */
struct udp_flow {
        struct proxy *proxy;
        struct udp_flow *chain;         /* of its bucket */
        struct udp_flow *older, *newer; /* by when it was last used */
        struct destination client, to;
        int fd; /* connected to @to, in the host's network namespace */
        struct loop_io io;
        int64_t used_ns;
        struct quota_flow quota;
        int64_t resumes_ns; /* until then a limit of rate drops its datagrams */
        uint64_t sent, received;
};

static size_t bucket_of(const struct destination *client, const struct destination *to)
{
        const struct destination *both[] = {client, to};
        uint64_t hash = HASH_START;

        for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
                hash = hash_bytes(hash, both[i]->address.bytes, sizeof(both[i]->address.bytes));
                hash = hash_bytes(hash, &both[i]->port, sizeof(both[i]->port));
        }
        return (hash ^ hash >> 32) % UDP_BUCKETS;
}

static bool same_end(const struct destination *a, const struct destination *b)
{
        return a->port == b->port && a->address.family == b->address.family &&
               memcmp(a->address.bytes, b->address.bytes, sizeof(a->address.bytes)) == 0;
}

static struct udp_flow *find(const struct proxy *proxy, const struct destination *client, const struct destination *to)
{
        struct udp_flow *flow = proxy->udp_buckets[bucket_of(client, to)];

        while (flow && !(same_end(&flow->client, client) && same_end(&flow->to, to)))
                flow = flow->chain;
        return flow;
}

static void unlink_used(struct udp_flow *flow)
{
        struct proxy *proxy = flow->proxy;

        *(flow->newer ? &flow->newer->older : &proxy->udp_newest) = flow->older;
        *(flow->older ? &flow->older->newer : &proxy->udp_oldest) = flow->newer;
}

static void link_used(struct udp_flow *flow)
{
        struct proxy *proxy = flow->proxy;

        flow->used_ns = loop_now_ns(proxy->sandbox->loop);
        flow->newer = NULL;
        flow->older = proxy->udp_newest;
        *(flow->older ? &flow->older->newer : &proxy->udp_oldest) = flow;
        proxy->udp_newest = flow;
}

static void touch(struct udp_flow *flow)
{
        unlink_used(flow);
        link_used(flow);
}

static void flow_end(struct udp_flow *flow)
{
        struct proxy *proxy = flow->proxy;
        struct udp_flow **place = &proxy->udp_buckets[bucket_of(&flow->client, &flow->to)];

        while (*place != flow)
                place = &(*place)->chain;
        *place = flow->chain;
        unlink_used(flow);
        proxy->n_udp_flows--;
        proxy_count(proxy, &flow->to, flow->sent, flow->received);
        quota_close(proxy->quotas, &flow->quota);
        loop_io_remove(&flow->io);
        close(flow->fd);
        free(flow);
}

/* Whether a datagram of @len bytes may pass: one that is over a limit is dropped, as a link does it. */
static bool may_pass(struct udp_flow *flow, size_t len)
{
        int64_t now_ns = loop_now_ns(flow->proxy->sandbox->loop), wait_ns;

        if (now_ns < flow->resumes_ns)
                return false;
        if (quota_chunk(flow->proxy->quotas, &flow->quota, len) == 0 && len > 0) {
                proxy_tell(flow->proxy, &flow->client, &flow->to, NULL, false, "limits: bytes");
                return false;
        }
        if (quota_move(flow->proxy->quotas, &flow->quota, len, now_ns, &wait_ns) < 0)
                return false;
        flow->resumes_ns = wait_ns > 0 ? now_ns + wait_ns : 0;
        return true;
}

void proxy_udp_end_oldest(struct proxy *proxy)
{
        flow_end(proxy->udp_oldest);
}

/* ---- what comes back ---- */

/* The headers of a datagram from the flow's destination to the command. Return: their length. */
static size_t put_headers(const struct udp_flow *flow, uint8_t *packet, size_t payload_bytes)
{
        size_t udp_bytes = sizeof(struct udphdr) + payload_bytes, ip_bytes;
        uint16_t checksum;
        uint8_t *udp;

        if (flow->to.address.family == AF_INET) {
                struct iphdr ip = {.version = 4, .ihl = 5, .ttl = TTL, .protocol = IPPROTO_UDP};

                ip_bytes = sizeof(ip);
                memcpy(&ip.saddr, flow->to.address.bytes, 4);
                memcpy(&ip.daddr, flow->client.address.bytes, 4);
                ip.tot_len = htons((uint16_t)(ip_bytes + udp_bytes)); /* the checksum is the kernel's */
                memcpy(packet, &ip, ip_bytes);
        } else {
                struct ip6_hdr ip = {0};

                ip_bytes = sizeof(ip);
                ip.ip6_vfc = 6 << 4;
                ip.ip6_nxt = IPPROTO_UDP;
                ip.ip6_hlim = TTL;
                ip.ip6_plen = htons((uint16_t)udp_bytes);
                memcpy(&ip.ip6_src, flow->to.address.bytes, 16);
                memcpy(&ip.ip6_dst, flow->client.address.bytes, 16);
                memcpy(packet, &ip, ip_bytes);
        }
        udp = packet + ip_bytes;
        put_be16(udp, flow->to.port);
        put_be16(udp + 2, flow->client.port);
        put_be16(udp + 4, (uint16_t)udp_bytes);
        put_be16(udp + 6, 0);
        checksum = packet_checksum(flow->to.address.family, flow->to.address.bytes, flow->client.address.bytes,
                                   IPPROTO_UDP, udp, udp_bytes);
        put_be16(udp + 6, checksum ? checksum : UINT16_MAX); /* 0 would mean that there is none */
        return ip_bytes + sizeof(struct udphdr);
}

static int on_answer(struct loop_io *io, uint32_t events)
{
        struct udp_flow *flow = CONTAINER_OF(io, struct udp_flow, io);
        struct proxy *proxy = flow->proxy;
        bool is_v6 = flow->to.address.family == AF_INET6;
        size_t room = (is_v6 ? sizeof(struct ip6_hdr) : sizeof(struct iphdr)) + sizeof(struct udphdr);

        for (unsigned i = 0; i < READS_MAX; i++) {
                size_t most = sizeof(proxy->buffer) - room;
                ssize_t n = recv(flow->fd, proxy->buffer + room, most, MSG_TRUNC);
                struct sockaddr_storage where;
                socklen_t len;

                if (n < 0)
                        break; /* nothing more; or the far end says that nobody is there, which ends nothing */
                if ((size_t)n > most)
                        continue; /* loopback takes no packet that large */
                if (!may_pass(flow, (size_t)n))
                        continue;
                len = ip_prefix_sockaddr(&flow->client.address, 0, &where);
                put_headers(flow, proxy->buffer, (size_t)n);
                if (sendto(proxy->raws[is_v6], proxy->buffer, room + (size_t)n, 0, (struct sockaddr *)&where, len) > 0)
                        flow->received += (uint64_t)n;
        }
        touch(flow);
        return 0;
}

/* ---- what goes out ---- */

static struct udp_flow *flow_new(struct proxy *proxy, const struct destination *client, const struct destination *to)
{
        struct udp_flow *flow = calloc(1, sizeof(*flow)), **place;
        struct sockaddr_storage where;
        socklen_t len = ip_prefix_sockaddr(&to->address, to->port, &where);

        if (!flow)
                return NULL;
        if (proxy->udp_oldest && (proxy->n_udp_flows >= proxy->udp_flows_max ||
                                  2 * proxy->n_tcp_flows + proxy->n_udp_flows >= proxy->descriptors_max))
                flow_end(proxy->udp_oldest);
        *flow = (struct udp_flow){.proxy = proxy, .client = *client, .to = *to};
        if (proxy_open_flow(proxy, to, &flow->quota) < 0) {
                free(flow);
                return NULL;
        }
        flow->fd = socket(where.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (flow->fd < 0 || connect(flow->fd, (struct sockaddr *)&where, len) < 0 ||
            loop_io_add(proxy->sandbox->loop, &flow->io, flow->fd, EPOLLIN, on_answer) < 0) {
                if (flow->fd >= 0)
                        close(flow->fd);
                quota_close(proxy->quotas, &flow->quota);
                free(flow);
                return NULL;
        }
        place = &proxy->udp_buckets[bucket_of(client, to)];
        flow->chain = *place;
        *place = flow;
        proxy->n_udp_flows++;
        link_used(flow);
        return flow;
}

/* A flow is decided once, and again where it has rested. What a flow says of itself is not read from datagrams. */
static struct udp_flow *flow_for(struct proxy *proxy, const struct destination *client, const struct destination *to)
{
        struct udp_flow *flow = find(proxy, client, to);
        struct decision decision;
        enum policy_outcome outcome;

        if (flow)
                return flow;
        outcome = proxy_decide(proxy, to, NULL, NULL, NULL, &decision);
        proxy_tell(proxy, client, to, &decision, outcome == POLICY_ALLOWED,
                   outcome == POLICY_PENDING ? "a server name and a host are read from TCP only" : NULL);
        return outcome == POLICY_ALLOWED ? flow_new(proxy, client, to) : NULL;
}

/* Where a datagram was sent to, as its control data says. */
static bool read_destination(struct msghdr *m, struct destination *ret)
{
        struct sockaddr_storage where = {0};

        for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
                bool is_v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR;
                bool is_v6 = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR;

                if (!is_v4 && !is_v6)
                        continue;
                memcpy(&where, CMSG_DATA(c), is_v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
                return destination_read(TRANSPORT_UDP, &where, ret);
        }
        return false;
}

static int on_datagram(struct loop_io *io, uint32_t events)
{
        struct proxy *proxy = CONTAINER_OF(io, struct proxy_entry, io)->proxy;

        for (unsigned i = 0; i < READS_MAX; i++) {
                char control[CMSG_SPACE(sizeof(struct sockaddr_in6))] __attribute__((aligned(8)));
                struct iovec iov = {.iov_base = proxy->buffer, .iov_len = sizeof(proxy->buffer)};
                struct sockaddr_storage from = {0};
                struct msghdr m = {.msg_name = &from,
                                   .msg_namelen = sizeof(from),
                                   .msg_iov = &iov,
                                   .msg_iovlen = 1,
                                   .msg_control = control,
                                   .msg_controllen = sizeof(control)};
                struct destination client, to;
                struct udp_flow *flow;
                ssize_t n;

                n = recvmsg(io->fd, &m, 0);
                if (n < 0)
                        return 0;
                if (!destination_read(TRANSPORT_UDP, &from, &client) || !read_destination(&m, &to))
                        continue;
                flow = flow_for(proxy, &client, &to);
                if (!flow)
                        continue;
                touch(flow);
                if (may_pass(flow, (size_t)n) && send(flow->fd, proxy->buffer, (size_t)n, 0) >= 0)
                        flow->sent += (uint64_t)n;
        }
        return 0;
}

static int on_sweep(struct loop_timer *timer)
{
        struct proxy *proxy = CONTAINER_OF(timer, struct proxy, udp_timer);
        int64_t now_ns = loop_now_ns(proxy->sandbox->loop);

        while (proxy->udp_oldest && now_ns - proxy->udp_oldest->used_ns > IDLE_NS)
                flow_end(proxy->udp_oldest);
        return loop_timer_set(proxy->sandbox->loop, timer, now_ns + SWEEP_NS, on_sweep);
}

/* ---- life ---- */

static int open_family(struct proxy *proxy, size_t i, int family)
{
        int level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, yes = 1;
        int option = family == AF_INET ? IP_RECVORIGDSTADDR : IPV6_RECVORIGDSTADDR;
        struct proxy_entry *entry = &proxy->datagrams[i];

        entry->fd = proxy_listen(family, SOCK_DGRAM);
        if (entry->fd < 0)
                return entry->fd;
        if (setsockopt(entry->fd, level, option, &yes, sizeof(yes)) < 0)
                return -errno;
        proxy->raws[i] = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_RAW);
        return proxy->raws[i] < 0 ? -errno : 0;
}

int proxy_udp_open(struct proxy *proxy, struct err *err)
{
        int r = open_family(proxy, 0, AF_INET);

        if (r < 0)
                return err_set_errno(err, ERR_UNSUPPORTED, -r, "cannot listen for datagrams");
        open_family(proxy, 1, AF_INET6);
        return 0;
}

int proxy_udp_serve(struct proxy *proxy, struct err *err)
{
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(proxy->datagrams) && r == 0; i++)
                if (proxy->datagrams[i].fd >= 0 && proxy->raws[i] >= 0)
                        r = loop_io_add(proxy->sandbox->loop, &proxy->datagrams[i].io, proxy->datagrams[i].fd, EPOLLIN,
                                        on_datagram);
        if (r == 0)
                r = loop_timer_set(proxy->sandbox->loop, &proxy->udp_timer, clock_now_ns(CLOCK_MONOTONIC) + SWEEP_NS,
                                   on_sweep);
        return r < 0 ? err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot wait for datagrams") : 0;
}

void proxy_udp_end(struct proxy *proxy)
{
        while (proxy->udp_oldest)
                flow_end(proxy->udp_oldest);
}

void proxy_udp_close(struct proxy *proxy)
{
        proxy_udp_end(proxy);
        loop_timer_remove(&proxy->udp_timer);
        for (size_t i = 0; i < ARRAY_SIZE(proxy->datagrams); i++) {
                loop_io_remove(&proxy->datagrams[i].io);
                close_cleanup(&proxy->datagrams[i].fd);
                close_cleanup(&proxy->raws[i]);
        }
}
