/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/link.h"

#include <linux/if.h>
#include <linux/if_link.h>
#include <netlink/addr.h>
#include <netlink/attr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/veth.h>
#include <netlink/route/link/vlan.h>
#include <stdio.h>

#include "sys/netlink-internal.h"

#define WHAT_MAX 128

DEFINE_CLEANUP(struct rtnl_link *, rtnl_link_put)
#define _cleanup_rtnl_link_ _cleanup_(rtnl_link_put_cleanup)

DEFINE_CLEANUP(struct nl_addr *, nl_addr_put)
#define _cleanup_nl_addr_ _cleanup_(nl_addr_put_cleanup)

static int describe_end(struct rtnl_link *link, const struct link_end *end, struct err *err)
{
        _cleanup_nl_addr_ struct nl_addr *mac = NULL;

        rtnl_link_set_name(link, end->name);
        rtnl_link_set_ifindex(link, end->index);
        if (end->is_quiet) {
                rtnl_link_set_flags(link, IFF_NOARP);
                rtnl_link_unset_flags(link, IFF_MULTICAST);
        }
        if (end->has_mac) {
                mac = nl_addr_build(AF_LLC, end->mac, sizeof(end->mac));
                if (!mac)
                        return err_set_nomem(err);
                rtnl_link_set_addr(link, mac);
        }
        if (end->mtu)
                rtnl_link_set_mtu(link, end->mtu);
        if (end->n_tx_queues)
                rtnl_link_set_num_tx_queues(link, end->n_tx_queues);
        if (end->n_rx_queues)
                rtnl_link_set_num_rx_queues(link, end->n_rx_queues);
        return 0;
}

static int check_name(const char *name, struct err *err)
{
        size_t len = strlen(name);

        if (len == 0 || len >= IFNAMSIZ || strpbrk(name, "/: \t\n") || streq(name, ".") || streq(name, ".."))
                return err_set(err, ERR_USAGE, EINVAL,
                               "\"%s\" cannot name a link: 1 to %d characters without \"/\", \":\" and spaces", name,
                               IFNAMSIZ - 1);
        return 0;
}

static int send_add(struct netlink *nl, struct rtnl_link *link, const char *what, struct err *err)
{
        _cleanup_nlmsg_ struct nl_msg *msg = NULL;
        int r;

        r = rtnl_link_build_add_request(link, NLM_F_CREATE | NLM_F_EXCL, &msg);
        if (r < 0)
                return netlink_build_failed(r, what, err);
        return netlink_request(nl, msg, what, err);
}

int link_add_veth(struct netlink *nl, const struct link_end *end, const struct link_end *peer,
                  const struct netns *peer_netns, struct err *err)
{
        _cleanup_rtnl_link_ struct rtnl_link *link = NULL;
        struct rtnl_link *other;
        char what[WHAT_MAX];
        int r;

        r = check_name(end->name, err);
        if (r == 0)
                r = check_name(peer->name, err);
        if (r < 0)
                return r;
        link = rtnl_link_veth_alloc();
        if (!link)
                return err_set_nomem(err);
        other = rtnl_link_veth_get_peer(link); /* a reference of its own, to be released before @link */
        r = describe_end(link, end, err);
        if (r == 0)
                r = describe_end(other, peer, err);
        if (r == 0 && peer_netns)
                rtnl_link_set_ns_fd(other, peer_netns->fd);
        if (r == 0) {
                snprintf(what, sizeof(what), "cannot create the links %s and %s", end->name, peer->name);
                r = send_add(nl, link, what, err);
        }
        rtnl_link_put(other);
        return r;
}

int link_add_vlan(struct netlink *nl, int parent, const char *name, uint16_t vlan, struct err *err)
{
        _cleanup_rtnl_link_ struct rtnl_link *link = NULL;
        char what[WHAT_MAX];
        int r;

        r = check_name(name, err);
        if (r < 0)
                return r;
        link = rtnl_link_vlan_alloc();
        if (!link)
                return err_set_nomem(err);
        rtnl_link_set_name(link, name);
        rtnl_link_set_link(link, parent);
        rtnl_link_vlan_set_id(link, vlan);
        snprintf(what, sizeof(what), "cannot create the 802.1Q link %s", name);
        return send_add(nl, link, what, err);
}

static int parse_link(struct nlmsghdr *hdr, void *userdata)
{
        struct link_info *info = userdata;
        const struct ifinfomsg *header;
        struct nlattr *attrs[IFLA_MAX + 1];
        struct rtnl_link_stats64 stats = {0};

        if (hdr->nlmsg_type != RTM_NEWLINK || nlmsg_parse(hdr, sizeof(*header), attrs, IFLA_MAX, NULL) < 0)
                return -EBADMSG;
        header = nlmsg_data(hdr);
        *info = (struct link_info){
                .index = header->ifi_index,
                .is_up = header->ifi_flags & IFF_UP,
        };
        if (attrs[IFLA_IFNAME])
                nla_strlcpy(info->name, attrs[IFLA_IFNAME], sizeof(info->name));
        if (attrs[IFLA_ADDRESS] && nla_len(attrs[IFLA_ADDRESS]) == LINK_ALEN)
                memcpy(info->mac, nla_data(attrs[IFLA_ADDRESS]), LINK_ALEN);
        if (attrs[IFLA_MTU])
                info->mtu = nla_get_u32(attrs[IFLA_MTU]);
        if (attrs[IFLA_NUM_TX_QUEUES])
                info->n_tx_queues = nla_get_u32(attrs[IFLA_NUM_TX_QUEUES]);
        if (attrs[IFLA_NUM_RX_QUEUES])
                info->n_rx_queues = nla_get_u32(attrs[IFLA_NUM_RX_QUEUES]);
        if (attrs[IFLA_OPERSTATE])
                info->is_running = nla_get_u8(attrs[IFLA_OPERSTATE]) == IF_OPER_UP;
        if (attrs[IFLA_STATS64])
                nla_memcpy(&stats, attrs[IFLA_STATS64], sizeof(stats));
        info->counters = (struct link_counters){
                .rx_packets = stats.rx_packets,
                .rx_bytes = stats.rx_bytes,
                .rx_dropped = stats.rx_dropped,
                .rx_errors = stats.rx_errors,
                .tx_packets = stats.tx_packets,
                .tx_bytes = stats.tx_bytes,
                .tx_dropped = stats.tx_dropped,
                .tx_errors = stats.tx_errors,
        };
        return 0;
}

static int read_link(struct netlink *nl, int index, const char *name, struct link_info *ret, const char *what,
                     struct err *err)
{
        _cleanup_nlmsg_ struct nl_msg *msg = NULL;
        struct link_info info = {0};
        int r;

        r = rtnl_link_build_get_request(index, name, &msg);
        if (r < 0)
                return netlink_build_failed(r, what, err);
        r = netlink_query(nl, msg, parse_link, &info, what, err);
        if (r < 0)
                return r;
        *ret = info;
        return 0;
}

int link_read(struct netlink *nl, int index, struct link_info *ret, struct err *err)
{
        char what[WHAT_MAX];

        snprintf(what, sizeof(what), "cannot read link %d", index);
        return read_link(nl, index, NULL, ret, what, err);
}

int link_find(struct netlink *nl, const char *name, int *ret_index, struct err *err)
{
        struct link_info info = {0};
        char what[WHAT_MAX];
        int r;

        r = check_name(name, err);
        if (r < 0)
                return r;
        snprintf(what, sizeof(what), "cannot find the link %s", name);
        r = read_link(nl, 0, name, &info, what, err);
        if (r < 0)
                return r;
        *ret_index = info.index;
        return 0;
}

/* A request that changes link @index; the caller adds what is to change. */
static struct nl_msg *change_request(int index, unsigned flags, unsigned flag_mask)
{
        struct ifinfomsg header = {.ifi_index = index, .ifi_flags = flags, .ifi_change = flag_mask};
        _cleanup_nlmsg_ struct nl_msg *msg = NULL;

        msg = nlmsg_alloc_simple(RTM_NEWLINK, 0);
        if (!msg || nlmsg_append(msg, &header, sizeof(header), NLMSG_ALIGNTO) < 0)
                return NULL;
        return TAKE_PTR(msg);
}

int link_set_up(struct netlink *nl, int index, bool up, struct err *err)
{
        _cleanup_nlmsg_ struct nl_msg *msg = NULL;
        char what[WHAT_MAX];

        msg = change_request(index, up ? IFF_UP : 0, IFF_UP);
        if (!msg)
                return err_set_nomem(err);
        snprintf(what, sizeof(what), "cannot set link %d %s", index, up ? "up" : "down");
        return netlink_request(nl, msg, what, err);
}

static int is_running(struct netlink *nl, void *userdata, struct err *err)
{
        struct link_info *info = userdata;
        int r = link_read(nl, info->index, info, err);

        return r < 0 ? r : info->is_running;
}

int link_wait_running(struct netlink *nl, int index, int64_t timeout_ns, struct err *err)
{
        struct link_info info = {.index = index};
        int r;

        r = netlink_wait(nl, RTMGRP_LINK, timeout_ns, is_running, &info, err);
        if (r == -ETIMEDOUT)
                return err_set(err, ERR_ENVIRONMENT, ETIMEDOUT, "the link %s does not carry packets: %s", info.name,
                               info.is_up ? "the other end is down" : "it is down");
        return r;
}

int link_set_up_loopback(struct netlink *nl, struct err *err)
{
        int index, r;

        r = link_find(nl, "lo", &index, err);
        return r < 0 ? r : link_set_up(nl, index, true, err);
}

static int set_number(struct netlink *nl, int index, int attribute, uint32_t value, const char *noun, struct err *err)
{
        _cleanup_nlmsg_ struct nl_msg *msg = NULL;
        char what[WHAT_MAX];

        msg = change_request(index, 0, 0);
        if (!msg || nla_put_u32(msg, attribute, value) < 0)
                return err_set_nomem(err);
        snprintf(what, sizeof(what), "cannot set the %s of link %d to %u", noun, index, value);
        return netlink_request(nl, msg, what, err);
}

int link_set_mtu(struct netlink *nl, int index, uint32_t mtu, struct err *err)
{
        return set_number(nl, index, IFLA_MTU, mtu, "MTU", err);
}

int link_set_gso_max_segs(struct netlink *nl, int index, uint32_t segments, struct err *err)
{
        return set_number(nl, index, IFLA_GSO_MAX_SEGS, segments, "segments per packet", err);
}

int link_delete(struct netlink *nl, int index, struct err *err)
{
        struct ifinfomsg header = {.ifi_index = index};
        _cleanup_nlmsg_ struct nl_msg *msg = NULL;
        char what[WHAT_MAX];

        msg = nlmsg_alloc_simple(RTM_DELLINK, 0);
        if (!msg || nlmsg_append(msg, &header, sizeof(header), NLMSG_ALIGNTO) < 0)
                return err_set_nomem(err);
        snprintf(what, sizeof(what), "cannot remove link %d", index);
        return netlink_request(nl, msg, what, err);
}
