/* SPDX-License-Identifier: Apache-2.0 */

/* The second, independent check of what leaves a sandbox and what comes back, at the host's end of its link: what
 * leaves by protocol, far address and far port, packet by packet, without any memory of earlier ones; what comes back
 * the same way, but TCP by its flags alone. IPv4 with options, extension headers of IPv6 and fragments but for the
 * first (whose rest never comes) are stopped. */

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bpf/gate.h"

#define FRAGMENT_OFFSET 0x1fff
#define DNS_TLS_PORT    853
#define PORTS_BYTES     4
#define TCP_FLAGS_AT    13
#define TCP_SYN         0x02
#define TCP_ACK         0x10

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, GATE_ENTRIES_MAX);
        __uint(map_flags, BPF_F_NO_PREALLOC);
        __type(key, struct gate_key);
        __type(value, struct gate_entry);
} open SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, GATE_COUNTERS);
        __type(key, __u32);
        __type(value, struct gate_count);
} counts SEC(".maps");

const volatile struct gate_own own = {};

/* What of a packet is decided by. */
struct packet {
        struct gate_key key; /* its port is that of the far end */
        __u8 tcp_flags;
};

static __always_inline int count(struct __sk_buff *skb, __u32 counter, int verdict)
{
        struct gate_count *c = bpf_map_lookup_elem(&counts, &counter);

        if (c) {
                c->packets++;
                c->bytes += skb->len;
        }
        return verdict;
}

static __always_inline int is_own(const struct in6_addr *address)
{
        for (int i = 0; i < 4; i++)
                if (address->in6_u.u6_addr32[i] != own.v6[i])
                        return 0;
        return 1;
}

/* The first @bytes of the packet. They are in its linear part nearly always; where they are not, they are brought
 * there, and what was read by an earlier pointer has to have been copied. Return: NULL where the packet is shorter.
 */
static __always_inline const void *headers(struct __sk_buff *skb, __u32 bytes)
{
        const void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;

        if (data + bytes <= end)
                return data;
        if (bpf_skb_pull_data(skb, bytes))
                return 0;
        data = (void *)(long)skb->data;
        end = (void *)(long)skb->data_end;
        return data + bytes <= end ? data : 0;
}

/* Ports, and the flags of TCP, behind @at bytes. */
static __always_inline int parse_transport(struct __sk_buff *skb, int leaves, __u32 at, struct packet *ret)
{
        const __be16 *ports;
        const __u8 *tcp;

        if (ret->key.protocol == IPPROTO_TCP) {
                tcp = headers(skb, at + TCP_FLAGS_AT + 1);
                if (!tcp)
                        return -1;
                ret->tcp_flags = tcp[at + TCP_FLAGS_AT];
                ports = (const void *)tcp + at;
        } else if (ret->key.protocol == IPPROTO_UDP) {
                tcp = headers(skb, at + PORTS_BYTES);
                if (!tcp)
                        return -1;
                ports = (const void *)tcp + at;
        } else {
                return -1;
        }
        ret->key.port = leaves ? ports[1] : ports[0];
        return 0;
}

static __always_inline int parse_v4(struct __sk_buff *skb, int leaves, struct packet *ret)
{
        const struct iphdr *ip;
        const void *data = headers(skb, ETH_HLEN + sizeof(*ip));

        if (!data)
                return -1;
        ip = data + ETH_HLEN;
        if (ip->version != 4 || ip->ihl != 5 || ip->frag_off & bpf_htons(FRAGMENT_OFFSET) ||
            (leaves && ip->saddr != own.v4))
                return -1;
        if (ip->protocol == IPPROTO_ICMP)
                return 1;
        ret->key.version = 4;
        ret->key.protocol = ip->protocol;
        ret->key.address[0] = leaves ? ip->daddr : ip->saddr;
        return parse_transport(skb, leaves, ETH_HLEN + sizeof(*ip), ret);
}

static __always_inline int parse_v6(struct __sk_buff *skb, int leaves, struct packet *ret)
{
        const struct ipv6hdr *ip;
        const void *data = headers(skb, ETH_HLEN + sizeof(*ip));

        if (!data)
                return -1;
        ip = data + ETH_HLEN;
        if (ip->version != 6 || (leaves && !is_own(&ip->saddr)))
                return -1;
        if (ip->nexthdr == IPPROTO_ICMPV6)
                return 1;
        ret->key.version = 6;
        ret->key.protocol = ip->nexthdr;
        __builtin_memcpy(ret->key.address, leaves ? &ip->daddr : &ip->saddr, sizeof(ret->key.address));
        return parse_transport(skb, leaves, ETH_HLEN + sizeof(*ip), ret);
}

/* Return: 0 with @ret; 1 where the packet is ICMP; -1 where it is nothing that may pass. */
static __always_inline int parse(struct __sk_buff *skb, int leaves, struct packet *ret)
{
        if (skb->protocol == bpf_htons(ETH_P_IP))
                return parse_v4(skb, leaves, ret);
        if (skb->protocol == bpf_htons(ETH_P_IPV6))
                return parse_v6(skb, leaves, ret);
        return -1;
}

static __always_inline int is_good(const struct gate_key *key)
{
        const struct gate_entry *entry = bpf_map_lookup_elem(&open, key);

        return entry && (entry->expires_ns == 0 || entry->expires_ns > bpf_ktime_get_ns());
}

static __always_inline int is_open(struct gate_key *key)
{
        if (is_good(key))
                return 1;
        if (key->port == bpf_htons(DNS_TLS_PORT))
                return 0;
        key->port = 0;
        return is_good(key);
}

/* Nothing but TCP and UDP leaves: the command has no socket for ICMP, and what the kernel says stays in its namespace.
 */
SEC("tc/out")
int gate_out(struct __sk_buff *skb)
{
        struct packet packet = {};

        if (parse(skb, 1, &packet) == 0 && is_open(&packet.key))
                return count(skb, GATE_LEFT, TC_ACT_UNSPEC);
        return count(skb, GATE_STOPPED, TC_ACT_SHOT);
}

/* A segment that opens no connection is taken by the kernel only where it belongs to one, and each of these was opened
 * by a segment that was looked up where it left. Errors of the path belong to a socket, too. */
SEC("tc/in")
int gate_in(struct __sk_buff *skb)
{
        struct packet packet = {};
        int what = parse(skb, 0, &packet);

        if (what == 1)
                return TC_ACT_UNSPEC;
        if (what == 0 && (packet.key.protocol == IPPROTO_TCP ? (packet.tcp_flags & (TCP_SYN | TCP_ACK)) != TCP_SYN
                                                             : is_open(&packet.key)))
                return count(skb, GATE_ENTERED, TC_ACT_UNSPEC);
        return count(skb, GATE_STRANGER, TC_ACT_SHOT);
}
