/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/ip.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/addr.h>
#include <netlink/attr.h>
#include <netlink/route/addr.h>
#include <netlink/route/neighbour.h>
#include <netlink/route/route.h>
#include <netlink/route/rule.h>
#include <stdio.h>

#include "base/number.h"
#include "sys/netlink-internal.h"

#define WHAT_MAX 192

DEFINE_CLEANUP(struct nl_addr *, nl_addr_put)
#define _cleanup_nl_addr_ _cleanup_(nl_addr_put_cleanup)

DEFINE_CLEANUP(struct rtnl_addr *, rtnl_addr_put)
#define _cleanup_rtnl_addr_ _cleanup_(rtnl_addr_put_cleanup)

DEFINE_CLEANUP(struct rtnl_route *, rtnl_route_put)
#define _cleanup_rtnl_route_ _cleanup_(rtnl_route_put_cleanup)

DEFINE_CLEANUP(struct rtnl_neigh *, rtnl_neigh_put)
#define _cleanup_rtnl_neigh_ _cleanup_(rtnl_neigh_put_cleanup)

DEFINE_CLEANUP(struct rtnl_rule *, rtnl_rule_put)
#define _cleanup_rtnl_rule_ _cleanup_(rtnl_rule_put_cleanup)

static unsigned width_bits(int family)
{
        return family == AF_INET ? 32 : 128;
}

int ip_prefix_parse(const char *text, struct ip_prefix *ret)
{
        const char *slash = strchr(text, '/');
        size_t len = slash ? (size_t)(slash - text) : strlen(text);
        char address[INET6_ADDRSTRLEN];
        struct ip_prefix prefix = {0};
        uint64_t length;

        if (len >= sizeof(address))
                return -EINVAL;
        memcpy(address, text, len);
        address[len] = '\0';
        prefix.family = strchr(address, ':') ? AF_INET6 : AF_INET;
        if (inet_pton(prefix.family, address, prefix.bytes) != 1)
                return -EINVAL;
        length = width_bits(prefix.family);
        if (slash && (number_parse_u64(span_of_text(slash + 1), &length) < 0 || length > width_bits(prefix.family)))
                return -EINVAL;
        prefix.length_bits = (unsigned)length;
        *ret = prefix;
        return 0;
}

char *ip_prefix_format(const struct ip_prefix *prefix, char buf[static IP_TEXT_MAX])
{
        char address[INET6_ADDRSTRLEN] = "?";

        inet_ntop(prefix->family, prefix->bytes, address, sizeof(address));
        snprintf(buf, IP_TEXT_MAX, "%s/%u", address, prefix->length_bits);
        return buf;
}

bool ip_prefix_contains(const struct ip_prefix *prefix, const struct ip_prefix *address)
{
        unsigned whole = prefix->length_bits / 8, rest = prefix->length_bits % 8;

        if (prefix->family != address->family || memcmp(prefix->bytes, address->bytes, whole) != 0)
                return false;
        return rest == 0 || (prefix->bytes[whole] ^ address->bytes[whole]) >> (8 - rest) == 0;
}

bool ip_prefix_mask(struct ip_prefix *prefix)
{
        unsigned whole = prefix->length_bits / 8, rest = prefix->length_bits % 8;
        bool was_set = false;

        for (unsigned i = whole; i < width_bits(prefix->family) / 8; i++) {
                uint8_t keep = i == whole ? (uint8_t)(0xff00 >> rest) : 0;

                was_set |= (prefix->bytes[i] & ~keep) != 0;
                prefix->bytes[i] &= keep;
        }
        return was_set;
}

socklen_t ip_prefix_sockaddr(const struct ip_prefix *prefix, uint16_t port, struct sockaddr_storage *ret)
{
        struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

        *ret = (struct sockaddr_storage){.ss_family = (sa_family_t)prefix->family};
        if (prefix->family == AF_INET) {
                v4->sin_port = htons(port);
                memcpy(&v4->sin_addr, prefix->bytes, sizeof(v4->sin_addr));
                return sizeof(*v4);
        }
        v6->sin6_port = htons(port);
        memcpy(&v6->sin6_addr, prefix->bytes, sizeof(v6->sin6_addr));
        return sizeof(*v6);
}

static struct nl_addr *build_addr(const struct ip_prefix *prefix)
{
        struct nl_addr *addr = nl_addr_build(prefix->family, prefix->bytes, width_bits(prefix->family) / 8);

        if (addr)
                nl_addr_set_prefixlen(addr, (int)prefix->length_bits);
        return addr;
}

int ip_address_add(struct netlink *nl, int index, const struct ip_prefix *address, struct err *err)
{
        _cleanup_rtnl_addr_ struct rtnl_addr *addr = rtnl_addr_alloc();
        _cleanup_nl_addr_ struct nl_addr *local = build_addr(address);
        _cleanup_nlmsg_ struct nl_msg *msg = NULL;
        char what[WHAT_MAX], text[IP_TEXT_MAX];
        int r;

        if (!addr || !local)
                return err_set_nomem(err);
        snprintf(what, sizeof(what), "cannot add the address %s to link %d", ip_prefix_format(address, text), index);
        rtnl_addr_set_ifindex(addr, index);
        r = rtnl_addr_set_local(addr, local);
        if (r == 0 && address->family == AF_INET6)
                rtnl_addr_set_flags(addr, IFA_F_NODAD);
        if (r == 0)
                r = rtnl_addr_build_add_request(addr, NLM_F_CREATE | NLM_F_EXCL, &msg);
        if (r < 0)
                return netlink_build_failed(r, what, err);
        return netlink_request(nl, msg, what, err);
}

static int find_local(struct nlmsghdr *hdr, void *userdata)
{
        const struct rtmsg *route = nlmsg_data(hdr);
        bool *is_local = userdata;

        if (hdr->nlmsg_type != RTM_NEWROUTE || nlmsg_datalen(hdr) < (int)sizeof(*route))
                return -EBADMSG;
        *is_local = route->rtm_type == RTN_LOCAL;
        return 0;
}

static int is_local(struct netlink *nl, void *userdata, struct err *err)
{
        const struct ip_prefix *address = userdata;
        struct rtmsg header = {.rtm_family = (unsigned char)address->family,
                               .rtm_dst_len = (unsigned char)width_bits(address->family)};
        _cleanup_nlmsg_ struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETROUTE, 0);
        struct err reason = {0};
        bool found = false;
        int r;

        if (!msg || nlmsg_append(msg, &header, sizeof(header), NLMSG_ALIGNTO) < 0 ||
            nla_put(msg, RTA_DST, (int)width_bits(address->family) / 8, address->bytes) < 0)
                return err_set_nomem(err);
        r = netlink_query(nl, msg, find_local, &found, "cannot look up a route", &reason);
        if (r == 0 || r == -ENETUNREACH || r == -EHOSTUNREACH)
                return found;
        if (err)
                *err = reason;
        return r;
}

int ip_address_wait(struct netlink *nl, const struct ip_prefix *address, int64_t timeout_ns, struct err *err)
{
        struct ip_prefix copy = *address;
        char text[IP_TEXT_MAX];
        int r;

        r = netlink_wait(nl, address->family == AF_INET ? RTMGRP_IPV4_ROUTE : RTMGRP_IPV6_ROUTE, timeout_ns, is_local,
                         &copy, err);
        if (r == -ETIMEDOUT)
                return err_set(err, ERR_ENVIRONMENT, ETIMEDOUT, "the address %s is not reachable: is its link down?",
                               ip_prefix_format(address, text));
        return r;
}

/* The next hop becomes the route's own. */
static int add_nexthop(struct rtnl_route *route, int index, const struct ip_prefix *gateway)
{
        _cleanup_nl_addr_ struct nl_addr *via = NULL;
        struct rtnl_nexthop *nexthop;

        if (gateway) {
                via = build_addr(gateway);
                if (!via)
                        return -ENOMEM;
        }
        nexthop = rtnl_route_nh_alloc();
        if (!nexthop)
                return -ENOMEM;
        rtnl_route_nh_set_ifindex(nexthop, index);
        if (via)
                rtnl_route_nh_set_gateway(nexthop, via);
        rtnl_route_add_nexthop(route, nexthop);
        return 0;
}

/* What kinds of route differ in. */
struct route_kind {
        uint8_t type, scope;
        uint32_t table;
};

static int add_route(struct netlink *nl, int index, const struct ip_prefix *destination,
                     const struct ip_prefix *gateway, const struct ip_prefix *source, const struct route_kind *kind,
                     struct err *err)
{
        _cleanup_rtnl_route_ struct rtnl_route *route = rtnl_route_alloc();
        _cleanup_nl_addr_ struct nl_addr *dst = build_addr(destination), *src = source ? build_addr(source) : NULL;
        _cleanup_nlmsg_ struct nl_msg *msg = NULL;
        char what[WHAT_MAX], text[IP_TEXT_MAX];
        int r;

        if (!route || !dst || (source && !src))
                return err_set_nomem(err);
        snprintf(what, sizeof(what), "cannot add the route to %s over link %d", ip_prefix_format(destination, text),
                 index);
        r = rtnl_route_set_dst(route, dst);
        if (r == 0 && src)
                r = rtnl_route_set_pref_src(route, src);
        if (r == 0)
                r = rtnl_route_set_type(route, kind->type);
        if (r < 0)
                return netlink_build_failed(r, what, err);
        rtnl_route_set_table(route, kind->table);
        rtnl_route_set_protocol(route, RTPROT_STATIC);
        rtnl_route_set_scope(route, kind->scope);
        if (add_nexthop(route, index, gateway) < 0)
                return err_set_nomem(err);
        r = rtnl_route_build_add_request(route, NLM_F_CREATE | NLM_F_EXCL, &msg);
        if (r < 0)
                return netlink_build_failed(r, what, err);
        return netlink_request(nl, msg, what, err);
}

int ip_route_add(struct netlink *nl, int index, const struct ip_prefix *destination, const struct ip_prefix *gateway,
                 const struct ip_prefix *source, struct err *err)
{
        const struct route_kind kind = {
                .type = RTN_UNICAST,
                .scope = gateway || destination->family == AF_INET6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
                .table = RT_TABLE_MAIN,
        };

        return add_route(nl, index, destination, gateway, source, &kind, err);
}

static int add_local(struct netlink *nl, int index, const struct ip_prefix *destination, const struct ip_prefix *source,
                     uint32_t table, struct err *err)
{
        const struct route_kind kind = {
                .type = RTN_LOCAL,
                .scope = destination->family == AF_INET6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_HOST,
                .table = table,
        };

        return add_route(nl, index, destination, NULL, source, &kind, err);
}

int ip_route_add_local(struct netlink *nl, int index, const struct ip_prefix *destination,
                       const struct ip_prefix *source, struct err *err)
{
        return add_local(nl, index, destination, source, RT_TABLE_LOCAL, err);
}

int ip_port_add_local(struct netlink *nl, int index, uint16_t port, const struct ip_prefix *source, struct err *err)
{
        const struct ip_prefix everything = {.family = source->family};
        _cleanup_rtnl_rule_ struct rtnl_rule *rule = rtnl_rule_alloc();
        _cleanup_nlmsg_ struct nl_msg *msg = NULL;
        char what[WHAT_MAX];
        int r;

        if (!rule)
                return err_set_nomem(err);
        r = add_local(nl, index, &everything, source, port, err);
        if (r < 0)
                return r;
        snprintf(what, sizeof(what), "cannot add the rule of routing for port %u", port);
        rtnl_rule_set_family(rule, source->family);
        rtnl_rule_set_action(rule, FR_ACT_TO_TBL);
        rtnl_rule_set_table(rule, port);
        r = rtnl_rule_set_dport(rule, port);
        if (r == 0)
                r = rtnl_rule_build_add_request(rule, NLM_F_CREATE | NLM_F_EXCL, &msg);
        return r < 0 ? netlink_build_failed(r, what, err) : netlink_request(nl, msg, what, err);
}

int ip_neighbour_add(struct netlink *nl, int index, const struct ip_prefix *address, const uint8_t mac[LINK_ALEN],
                     struct err *err)
{
        _cleanup_rtnl_neigh_ struct rtnl_neigh *neigh = rtnl_neigh_alloc();
        _cleanup_nl_addr_ struct nl_addr *dst = build_addr(address), *lladdr = nl_addr_build(AF_LLC, mac, LINK_ALEN);
        _cleanup_nlmsg_ struct nl_msg *msg = NULL;
        char what[WHAT_MAX], text[IP_TEXT_MAX];
        int r;

        if (!neigh || !dst || !lladdr)
                return err_set_nomem(err);
        snprintf(what, sizeof(what), "cannot add the neighbour %s on link %d", ip_prefix_format(address, text), index);
        rtnl_neigh_set_ifindex(neigh, index);
        rtnl_neigh_set_state(neigh, NUD_PERMANENT);
        rtnl_neigh_set_lladdr(neigh, lladdr);
        r = rtnl_neigh_set_dst(neigh, dst);
        if (r == 0)
                r = rtnl_neigh_build_add_request(neigh, NLM_F_CREATE | NLM_F_REPLACE, &msg);
        if (r < 0)
                return netlink_build_failed(r, what, err);
        return netlink_request(nl, msg, what, err);
}

/* What is asked for, and what the answers say of it. */
struct hop_search {
        struct ip_hop hop;
        struct ip_prefix next; /* whose MAC it takes: the gateway, or the destination itself */
};

static int read_route(struct nlmsghdr *hdr, void *userdata)
{
        const struct rtmsg *route = nlmsg_data(hdr);
        struct hop_search *search = userdata;
        size_t width = width_bits(search->next.family) / 8;
        struct nlattr *attrs[RTA_MAX + 1];

        if (hdr->nlmsg_type != RTM_NEWROUTE || nlmsg_parse(hdr, sizeof(*route), attrs, RTA_MAX, NULL) < 0)
                return -EBADMSG;
        search->hop.is_local = route->rtm_type == RTN_LOCAL;
        if (attrs[RTA_OIF] && nla_len(attrs[RTA_OIF]) == sizeof(uint32_t))
                search->hop.index = (int)nla_get_u32(attrs[RTA_OIF]);
        if (attrs[RTA_GATEWAY] && nla_len(attrs[RTA_GATEWAY]) == (int)width)
                memcpy(search->next.bytes, nla_data(attrs[RTA_GATEWAY]), width);
        return 0;
}

static int read_neighbour(struct nlmsghdr *hdr, void *userdata)
{
        const uint16_t known = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE;
        const struct ndmsg *neighbour = nlmsg_data(hdr);
        struct nlattr *attrs[NDA_MAX + 1];
        struct ip_hop *hop = userdata;

        if (hdr->nlmsg_type != RTM_NEWNEIGH || nlmsg_parse(hdr, sizeof(*neighbour), attrs, NDA_MAX, NULL) < 0)
                return -EBADMSG;
        hop->has_mac = neighbour->ndm_state & known && attrs[NDA_LLADDR] && nla_len(attrs[NDA_LLADDR]) == LINK_ALEN;
        if (hop->has_mac)
                memcpy(hop->mac, nla_data(attrs[NDA_LLADDR]), LINK_ALEN);
        return 0;
}

static int find_route(struct netlink *nl, const struct ip_prefix *destination, const struct ip_prefix *source,
                      struct hop_search *search, struct err *err)
{
        unsigned width = width_bits(destination->family);
        struct rtmsg header = {.rtm_family = (unsigned char)destination->family,
                               .rtm_dst_len = (unsigned char)width,
                               .rtm_src_len = (unsigned char)width};
        _cleanup_nlmsg_ struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETROUTE, 0);

        if (!msg || nlmsg_append(msg, &header, sizeof(header), NLMSG_ALIGNTO) < 0 ||
            nla_put(msg, RTA_DST, (int)width / 8, destination->bytes) < 0 ||
            nla_put(msg, RTA_SRC, (int)width / 8, source->bytes) < 0)
                return err_set_nomem(err);
        return netlink_query(nl, msg, read_route, search, "cannot look up a route", err);
}

static int find_neighbour(struct netlink *nl, struct hop_search *search, struct err *err)
{
        struct ndmsg header = {.ndm_family = (unsigned char)search->next.family, .ndm_ifindex = search->hop.index};
        _cleanup_nlmsg_ struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETNEIGH, 0);
        struct err reason = {0};
        int r;

        if (!msg || nlmsg_append(msg, &header, sizeof(header), NLMSG_ALIGNTO) < 0 ||
            nla_put(msg, NDA_DST, (int)width_bits(search->next.family) / 8, search->next.bytes) < 0)
                return err_set_nomem(err);
        r = netlink_query(nl, msg, read_neighbour, &search->hop, "cannot look up a neighbour", &reason);
        if (r == -ENOENT) /* nobody has asked for it yet */
                return 0;
        if (r < 0 && err)
                *err = reason;
        return r;
}

int ip_hop_find(struct netlink *nl, const struct ip_prefix *destination, const struct ip_prefix *source,
                struct ip_hop *ret, struct err *err)
{
        struct hop_search search = {.next = *destination};
        int r;

        r = find_route(nl, destination, source, &search, err);
        if (r == 0 && !search.hop.is_local)
                r = find_neighbour(nl, &search, err);
        if (r < 0)
                return r;
        *ret = search.hop;
        return 0;
}
