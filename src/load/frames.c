/* SPDX-License-Identifier: Apache-2.0 */
#include "load/frames.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if_arp.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/macro.h"
#include "load/address.h"
#include "sys/ip.h"

struct frames {
        struct netlink *nl;
        int fd;
        int index; /* of the link that it is bound to; 0: none */
        union address local, peer;
        int hop_limit, traffic_class;
        uint32_t payload_bytes;
        uint8_t header[FRAMES_HEADER_MAX];
        size_t header_len;
        uint64_t sum; /* of the 16-bit words that the UDP checksum covers, without the mark */
};

/* The sum of RFC 1071, of words as they lie in memory: it is the same in either order of octets. */
static uint64_t sum_words(const void *data, size_t len)
{
        const uint8_t *p = data;
        uint64_t sum = 0;

        for (size_t i = 0; i + 2 <= len; i += 2) {
                uint16_t word;

                memcpy(&word, p + i, sizeof(word));
                sum += word;
        }
        return sum;
}

static uint16_t fold(uint64_t sum)
{
        while (sum >> 16)
                sum = (sum & 0xffff) + (sum >> 16);
        return (uint16_t)~sum;
}

static bool is_v6(const struct frames *f)
{
        return f->peer.any.sa_family == AF_INET6;
}

static uint16_t udp_length(const struct frames *f)
{
        return htons((uint16_t)(f->payload_bytes + sizeof(struct udphdr)));
}

static size_t put_ipv4(struct frames *f, uint8_t *at)
{
        struct iphdr ip = {
                .version = 4,
                .ihl = sizeof(ip) / 4,
                .tos = (uint8_t)f->traffic_class,
                .tot_len = htons((uint16_t)(f->payload_bytes + sizeof(ip) + sizeof(struct udphdr))),
                .frag_off = htons(IP_DF),
                .ttl = (uint8_t)f->hop_limit,
                .protocol = IPPROTO_UDP,
                .saddr = f->local.v4.sin_addr.s_addr,
                .daddr = f->peer.v4.sin_addr.s_addr,
        };

        ip.check = fold(sum_words(&ip, sizeof(ip)));
        memcpy(at, &ip, sizeof(ip));
        f->sum = sum_words(&ip.saddr, 2 * sizeof(ip.saddr));
        return sizeof(ip);
}

static size_t put_ipv6(struct frames *f, uint8_t *at)
{
        struct ip6_hdr ip = {
                .ip6_flow = htonl(UINT32_C(6) << 28 | (uint32_t)f->traffic_class << 20),
                .ip6_plen = udp_length(f),
                .ip6_nxt = IPPROTO_UDP,
                .ip6_hlim = (uint8_t)f->hop_limit,
                .ip6_src = f->local.v6.sin6_addr,
                .ip6_dst = f->peer.v6.sin6_addr,
        };

        memcpy(at, &ip, sizeof(ip));
        f->sum = sum_words(&ip.ip6_src, 2 * sizeof(ip.ip6_src));
        return sizeof(ip);
}

static void build_header(struct frames *f, const uint8_t from[static LINK_ALEN], const uint8_t to[static LINK_ALEN])
{
        struct udphdr udp = {.source = htons(address_port(&f->local)),
                             .dest = htons(address_port(&f->peer)),
                             .len = udp_length(f)};
        struct ether_header ethernet = {.ether_type = htons(is_v6(f) ? ETHERTYPE_IPV6 : ETHERTYPE_IP)};
        uint8_t *p = f->header;

        memcpy(ethernet.ether_shost, from, LINK_ALEN);
        memcpy(ethernet.ether_dhost, to, LINK_ALEN);
        memcpy(p, &ethernet, sizeof(ethernet));
        p += sizeof(ethernet);
        p += is_v6(f) ? put_ipv6(f, p) : put_ipv4(f, p);
        memcpy(p, &udp, sizeof(udp));
        p += sizeof(udp);
        f->header_len = (size_t)(p - f->header);
        f->sum += sum_words(&udp, sizeof(udp)) + udp_length(f) + htons(IPPROTO_UDP);
}

static int get_option(int fd, int level, int name, int *ret)
{
        socklen_t len = sizeof(*ret);

        return getsockopt(fd, level, name, ret, &len) < 0 ? -errno : 0;
}

static int get_addresses(struct frames *f, int fd)
{
        socklen_t local_len = sizeof(f->local), peer_len = sizeof(f->peer);
        int r;

        if (getsockname(fd, &f->local.any, &local_len) < 0 || getpeername(fd, &f->peer.any, &peer_len) < 0)
                return -errno;
        if (is_v6(f)) {
                r = get_option(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &f->hop_limit);
                return r < 0 ? r : get_option(fd, IPPROTO_IPV6, IPV6_TCLASS, &f->traffic_class);
        }
        r = get_option(fd, IPPROTO_IP, IP_TTL, &f->hop_limit);
        return r < 0 ? r : get_option(fd, IPPROTO_IP, IP_TOS, &f->traffic_class);
}

/* What the kernel's queues look at beside the octets is as of the UDP socket. */
static int set_up_socket(struct frames *f, int udp_fd, int send_buffer_bytes)
{
        const size_t len = sizeof(send_buffer_bytes);
        int priority, r;

        r = get_option(udp_fd, SOL_SOCKET, SO_PRIORITY, &priority);
        if (r < 0)
                return r;
        if (setsockopt(f->fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)) < 0)
                return -errno;
        if (setsockopt(f->fd, SOL_SOCKET, SO_SNDBUFFORCE, &send_buffer_bytes, len) < 0 &&
            setsockopt(f->fd, SOL_SOCKET, SO_SNDBUF, &send_buffer_bytes, len) < 0)
                return -errno;
        return 0;
}

int frames_new(int udp_fd, uint32_t payload_bytes, int send_buffer_bytes, struct frames **ret, struct err *err)
{
        _cleanup_frames_ struct frames *f = calloc(1, sizeof(*f));
        int r;

        if (!f)
                return err_set_nomem(err);
        f->payload_bytes = payload_bytes;
        f->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); /* of protocol 0 it receives nothing */
        if (f->fd < 0 && errno == EPERM)
                return err_set(err, ERR_UNSUPPORTED, EPERM, "sending whole frames (a packet socket) needs CAP_NET_RAW");
        if (f->fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot open a packet socket");
        r = get_addresses(f, udp_fd);
        if (r == 0)
                r = set_up_socket(f, udp_fd, send_buffer_bytes);
        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot set up a packet socket");
        r = netlink_open(NULL, &f->nl, err);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(f);
        return 0;
}

void frames_free(struct frames *f)
{
        if (!f)
                return;
        if (f->fd >= 0)
                close(f->fd);
        netlink_free(f->nl);
        free(f);
}

static int bind_link(struct frames *f, int index, struct sockaddr_ll *ret, struct err *err)
{
        struct sockaddr_ll link = {.sll_family = AF_PACKET, .sll_ifindex = index};
        socklen_t len = sizeof(link);

        if ((f->index != index && bind(f->fd, (struct sockaddr *)&link, len) < 0) ||
            getsockname(f->fd, (struct sockaddr *)&link, &len) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot send frames on link %d", index);
        f->index = index;
        *ret = link;
        return 0;
}

int frames_aim(struct frames *f, struct err *err)
{
        struct ip_prefix peer, local;
        struct sockaddr_ll link;
        struct ip_hop hop;
        int r;

        address_prefix(&f->peer, &peer);
        address_prefix(&f->local, &local);
        r = ip_hop_find(f->nl, &peer, &local, &hop, err);
        if (r < 0)
                return r;
        r = bind_link(f, hop.index, &link, err);
        if (r < 0)
                return r;
        if (hop.is_local || link.sll_hatype != ARPHRD_ETHER)
                return err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP,
                               "frames go by Ethernet only, and the way there does not begin with an Ethernet link");
        if (!hop.has_mac)
                return -ENOENT;
        build_header(f, link.sll_addr, hop.mac);
        return 0;
}

int frames_descriptor(const struct frames *f)
{
        return f->fd;
}

size_t frames_put_header(const struct frames *f, uint8_t *payload)
{
        memcpy(payload - f->header_len, f->header, f->header_len);
        return f->header_len;
}

void frames_seal(const struct frames *f, uint8_t *payload)
{
        uint16_t check = fold(f->sum + sum_words(payload, MARKER_LEN));

        /* 0 would say that there is none. */
        if (check == 0)
                check = UINT16_MAX;
        memcpy(payload - sizeof(struct udphdr) + offsetof(struct udphdr, check), &check, sizeof(check));
}
