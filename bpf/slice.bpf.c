/* SPDX-License-Identifier: Apache-2.0 */

/* Slices kept apart on a link by their 802.1Q tags: `push` is attached to what leaves, `pop` to what enters.
 *
 * Inside a namespace a packet that entered carries its slice as mark (the VLAN's number), which survives forwarding and
 * is wiped when the packet leaves the namespace. `push` goes by the mark where there is one, else by the addresses. */

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bpf/slice.h"

#define TAG_BYTES 4
#define VLAN_MASK 0x0fff
#define IPV4      4
#define IPV6      6

const volatile struct slice_config config = {};

struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, SLICE_COUNTS);
        __type(key, __u32);
        __type(value, struct slice_count);
} slices SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, SLICE_DROP_MAX);
        __type(key, __u32);
        __type(value, struct slice_count);
} drops SEC(".maps");

struct addresses {
        __u32 version; /* 0: no IP packet */
        __be32 source[4], destination[4];
};

static __always_inline void count(void *map, __u32 key, __u64 packets, __u64 bytes)
{
        struct slice_count *c = bpf_map_lookup_elem(map, &key);

        if (!c)
                return;
        c->packets += packets;
        c->bytes += bytes;
}

static __always_inline int drop(struct __sk_buff *skb, enum slice_drop reason, __u64 bytes)
{
        count(&drops, reason, 1, bytes);
        return TC_ACT_SHOT;
}

/* The headers are in the packet's linear part nearly always; where they are not, they are brought there. */
static __always_inline void read_addresses(struct __sk_buff *skb, __u32 header_bytes, void **data, void **end)
{
        *data = (void *)(long)skb->data;
        *end = (void *)(long)skb->data_end;
        if (*data + header_bytes <= *end)
                return;
        bpf_skb_pull_data(skb, header_bytes);
        *data = (void *)(long)skb->data;
        *end = (void *)(long)skb->data_end;
}

static __always_inline void parse(struct __sk_buff *skb, struct addresses *a)
{
        void *data, *end;

        a->version = 0;
        if (skb->protocol == bpf_htons(ETH_P_IP)) {
                struct iphdr *ip;

                read_addresses(skb, ETH_HLEN + sizeof(*ip), &data, &end);
                ip = data + ETH_HLEN;
                if ((void *)(ip + 1) > end || ip->version != IPV4)
                        return;
                a->version = IPV4;
                a->source[0] = ip->saddr;
                a->destination[0] = ip->daddr;
        } else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
                struct ipv6hdr *ip;

                read_addresses(skb, ETH_HLEN + sizeof(*ip), &data, &end);
                ip = data + ETH_HLEN;
                if ((void *)(ip + 1) > end || ip->version != IPV6)
                        return;
                a->version = IPV6;
                __builtin_memcpy(a->source, &ip->saddr, sizeof(a->source));
                __builtin_memcpy(a->destination, &ip->daddr, sizeof(a->destination));
        }
}

static __always_inline int in4(const volatile struct slice_prefix4 *p, __be32 address)
{
        return (address & p->mask) == p->address;
}

static __always_inline int in6(const volatile struct slice_prefix6 *p, const __be32 *address)
{
        return (address[0] & p->mask[0]) == p->address[0] && (address[1] & p->mask[1]) == p->address[1] &&
               (address[2] & p->mask[2]) == p->address[2] && (address[3] & p->mask[3]) == p->address[3];
}

static __always_inline int belongs(const volatile struct slice_rule *rule, const struct addresses *a)
{
        if (a->version == IPV4)
                return rule->has_v4 && in4(&rule->source4, a->source[0]) && in4(&rule->destination4, a->destination[0]);
        return rule->has_v6 && in6(&rule->source6, a->source) && in6(&rule->destination6, a->destination);
}

/* Leaving frames get their tag here, or have it already. */
static __always_inline int has_tag(struct __sk_buff *skb, __u16 vlan)
{
        if (config.keeps_tags)
                return skb->vlan_present && skb->vlan_proto == bpf_htons(ETH_P_8021Q) &&
                       (skb->vlan_tci & VLAN_MASK) == vlan;
        return bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), vlan) == 0;
}

SEC("tc")
int push(struct __sk_buff *skb)
{
        __u32 packets = skb->gso_segs ? skb->gso_segs : 1;
        __u64 bytes = skb->wire_len + packets * TAG_BYTES; /* every segment gets headers and a tag of its own */
        const volatile struct slice_rule *rule;
        struct addresses a = {};
        __u32 i;

        parse(skb, &a);
        if (!a.version)
                return drop(skb, SLICE_DROP_NOT_IP, skb->len);
        for (i = 0; i < SLICE_MAX; i++) {
                if (i >= config.n_leaving)
                        return drop(skb, SLICE_DROP_NO_SLICE, skb->len);
                rule = &config.leaving[i];
                if (skb->mark ? rule->vlan == skb->mark : belongs(rule, &a))
                        break;
        }
        if (i >= SLICE_MAX)
                return drop(skb, SLICE_DROP_NO_SLICE, skb->len);

        rule = &config.leaving[i];
        if (rule->classid)
                skb->priority = rule->classid;
        if (rule->queue)
                skb->queue_mapping = rule->queue;
        if (!has_tag(skb, rule->vlan))
                return drop(skb, config.keeps_tags ? SLICE_DROP_NO_SLICE : SLICE_DROP_PUSH, bytes);
        count(&slices, i, packets, bytes);
        return TC_ACT_UNSPEC; /* a program attached after this one sees it, too */
}

SEC("tc")
int pop(struct __sk_buff *skb)
{
        __u64 bytes = skb->len + (skb->vlan_present ? TAG_BYTES : 0);
        __u32 vlan = skb->vlan_tci & VLAN_MASK, i;
        const volatile struct slice_rule *rule;
        struct addresses a = {};

        if (!skb->vlan_present || (vlan == 0 && skb->vlan_proto == bpf_htons(ETH_P_8021Q)))
                return drop(skb, SLICE_DROP_UNTAGGED, bytes);
        if (skb->vlan_proto != bpf_htons(ETH_P_8021Q))
                return drop(skb, SLICE_DROP_UNKNOWN_TAG, bytes);
        for (i = 0; i < SLICE_MAX; i++) {
                if (i >= config.n_entering)
                        return drop(skb, SLICE_DROP_UNKNOWN_TAG, bytes);
                if (config.entering[i].vlan == vlan)
                        break;
        }
        if (i >= SLICE_MAX)
                return drop(skb, SLICE_DROP_UNKNOWN_TAG, bytes);

        if (skb->protocol == bpf_htons(ETH_P_8021Q) || skb->protocol == bpf_htons(ETH_P_8021AD))
                return drop(skb, SLICE_DROP_DOUBLE_TAG, bytes);
        parse(skb, &a);
        if (!a.version)
                return drop(skb, SLICE_DROP_NOT_IP, bytes);
        rule = &config.entering[i];
        if (!belongs(rule, &a))
                return drop(skb, SLICE_DROP_ADDRESS, bytes);
        if (!config.keeps_tags && bpf_skb_vlan_pop(skb))
                return drop(skb, SLICE_DROP_POP, bytes);
        skb->mark = vlan;
        count(&slices, SLICE_MAX + i, 1, bytes);
        return TC_ACT_UNSPEC;
}
