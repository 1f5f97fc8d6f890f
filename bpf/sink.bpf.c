/* SPDX-License-Identifier: Apache-2.0 */

/* Datagrams to one UDP port are counted where they enter a zone and dropped there: no socket, no wake-up, so that what
 * the sink costs does not limit what can be offered. Everything else passes.
 *
 * Attached after `pop` (bpf/slice.bpf.c) it knows the slice by the mark, elsewhere by the tag. Fragments pass. */

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bpf/sink.h"

#define TAG_BYTES     4
#define VLAN_MASK     0x0fff
#define FRAGMENT_MASK 0x3fff /* offset, and the bit that more follow */

const volatile struct sink_config config = {};

struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, SINK_COUNTS);
        __type(key, __u32);
        __type(value, struct slice_count);
} counts SEC(".maps");

/* Where the UDP header starts; 0 where the packet is no whole UDP datagram. */
static __always_inline __u32 find_udp(struct __sk_buff *skb)
{
        if (skb->protocol == bpf_htons(ETH_P_IP)) {
                struct iphdr ip;

                if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) || ip.protocol != IPPROTO_UDP || ip.ihl < 5 ||
                    ip.frag_off & bpf_htons(FRAGMENT_MASK))
                        return 0;
                return ETH_HLEN + ip.ihl * 4;
        }
        if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
                struct ipv6hdr ip;

                if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) || ip.nexthdr != IPPROTO_UDP)
                        return 0;
                return ETH_HLEN + sizeof(ip);
        }
        return 0;
}

static __always_inline __u32 find_key(__u32 vlan)
{
        for (__u32 i = 0; i < SLICE_MAX; i++) {
                if (i >= config.n_vlans)
                        break;
                if (config.vlans[i] == vlan)
                        return i;
        }
        return SINK_OTHER;
}

SEC("tc")
int sink(struct __sk_buff *skb)
{
        __u32 vlan = skb->vlan_present ? skb->vlan_tci & VLAN_MASK : skb->mark, key;
        __u32 udp = find_udp(skb), packets = skb->gso_segs ? skb->gso_segs : 1, tag_bytes;
        struct slice_count *c;
        struct udphdr header;

        if (!udp || bpf_skb_load_bytes(skb, udp, &header, sizeof(header)) || header.dest != config.port)
                return TC_ACT_UNSPEC;
        tag_bytes = vlan ? TAG_BYTES : 0;
        key = find_key(vlan);
        c = bpf_map_lookup_elem(&counts, &key);
        if (c) {
                c->packets += packets;
                c->bytes += skb->len + tag_bytes + (packets - 1) * (udp + sizeof(header) + tag_bytes);
        }
        return TC_ACT_SHOT;
}
