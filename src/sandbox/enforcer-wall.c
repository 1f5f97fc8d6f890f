/* SPDX-License-Identifier: Apache-2.0 */
#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/macro.h"
#include "sandbox/askers.h"
#include "sandbox/bundle.h"
#include "sandbox/enforcer.h"
#include "sandbox/names.h"
#include "sandbox/outer.h"
#include "sandbox/policy.h"
#include "sandbox/refusals.h"
#include "sandbox/rules.h"
#include "sys/link.h"
#include "sys/nft.h"

/* A network namespace whose only way out is a pair of links, with the same rules at both ends (rules.h): packets
 * take the kernel's own way at its own speed. */

#define LINK_MTU     65535 /* as loopback's: smaller ones make large transfers several times slower */
#define LINK_WAIT_NS (5 * NSEC_PER_SEC)
#define RUNS_MAX     16384 /* at once on a host: so many networks of four addresses are in 198.19.0.0/16 (RFC 2544) */
#define INNER_NAME   "eth0"

struct wall {
        struct nft *inner, *forward; /* forward: NULL where nothing lies beyond this host */
        struct outer *outer;
        struct refusals *refusals;
        struct names *names;
        struct policy_range *ranges;
        size_t n_ranges;
        bool masquerades;
        bool hands_over_v4, hands_over_v6;                      /* see rules.h */
        char link[IFNAMSIZ];                                    /* on the host; empty: there is none */
        char own_v4[INET_ADDRSTRLEN], own_v6[INET6_ADDRSTRLEN]; /* of the end in N; set with the link */
        struct netlink *host;
        int index;
};

static void wall_free(struct wall *wall)
{
        if (!wall)
                return;
        refusals_free(wall->refusals);
        names_free(wall->names);
        nft_free(wall->inner);
        nft_free(wall->forward);
        outer_free(wall->outer);
        netlink_free(wall->host);
        free(wall->ranges);
        free(wall);
}

/* ---- what it can do ---- */

static bool has_right(unsigned capability)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {0};

        if (syscall(SYS_capget, &header, data) < 0)
                return false;
        return (data[capability / 32].effective & (1u << (capability % 32))) != 0;
}

static int cannot(struct err *err, const char *what)
{
        err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP, "wall: %s", what);
        return 0;
}

static bool has_other_limits(const struct policy_limits *total, const struct policy_limits *per_target)
{
        return per_target->rate_bps || per_target->bytes || per_target->connections || per_target->new_connections_hz ||
               total->connections || total->new_connections_hz;
}

/* What needs one that knows connections. Return: as wall_able(). */
static int check_limits(const struct policy *policy, struct err *err)
{
        for (size_t i = 0; i < policy->n_layers; i++)
                if (has_other_limits(&policy->layers[i]->total, &policy->layers[i]->per_target)) {
                        err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP,
                                "wall: %s: of `limits` it enforces rate and bytes of the total; it knows no "
                                "connections, and no single target",
                                policy->layers[i]->path);
                        return 0;
                }
        return 1;
}

/* Return: as wall_able(). */
static int check_localhost(const struct policy *policy, struct err *err)
{
        struct port_set localhost = {0};

        if (policy_localhost(policy, &localhost) < 0)
                return err_set_nomem(err);
        free(localhost.ranges);
        if (localhost.n == 0)
                return 1;
        err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP,
                "wall: %s:%u: it has no way to the host's own loopback, which `localhost` opens",
                policy->layers[0]->path, policy->layers[0]->localhost_at.line);
        return 0;
}

/* What only who reads the bytes of a connection, or holds its two ends, can enforce. */
static int check_policy(const struct policy *policy, struct err *err)
{
        const struct policy_layer *layer;
        const struct policy_rule *rule = policy_conditional_rule(policy, &layer);
        int r;

        if (rule) {
                err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP,
                        "wall: %s:%u asks what a connection says of itself (%s), and packets are told by address and "
                        "port",
                        layer->path, rule->at.line, rule->sni ? "sni" : "http-host");
                return 0;
        }
        r = check_limits(policy, err);
        return r == 1 ? check_localhost(policy, err) : r;
}

/* Whether @address is one of this host's own. */
static bool is_own(const struct ifaddrs *own, int family, const uint8_t *address)
{
        for (; own; own = own->ifa_next) {
                struct sockaddr_storage there;

                if (!own->ifa_addr || own->ifa_addr->sa_family != family)
                        continue;
                memcpy(&there, own->ifa_addr,
                       family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
                if (family == AF_INET && memcmp(&((struct sockaddr_in *)&there)->sin_addr, address, 4) == 0)
                        return true;
                if (family == AF_INET6 && memcmp(&((struct sockaddr_in6 *)&there)->sin6_addr, address, 16) == 0)
                        return true;
        }
        return false;
}

/* Whether something that is allowed lies beyond this host. Return: 1, 0, or a negative errno. */
static int leads_beyond(const struct policy *policy, const struct policy_range *ranges, size_t n, struct err *err)
{
        struct ifaddrs *own = NULL;
        bool beyond = rules_has_names(policy);

        if (getifaddrs(&own) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot read this host's addresses");
        for (size_t i = 0; i < n && !beyond; i++) {
                const struct policy_range *range = &ranges[i];
                size_t len = range->family == AF_INET ? 4 : 16;

                beyond = memcmp(range->first, range->last, len) != 0 || !is_own(own, range->family, range->first);
        }
        freeifaddrs(own);
        return beyond;
}

/* Whether a setting of this host is there, and, where @value is not NULL, is that. */
static bool is_set(const char *name, const char *value)
{
        _cleanup_netns_ struct netns self = NETNS_INIT;
        char there[8];

        return netns_open_self(&self, NULL) == 0 && netns_sysctl_read(&self, name, there, sizeof(there), NULL) == 0 &&
               (!value || streq(there, value));
}

#define FORWARDS_V4 "ipv4/ip_forward"
#define FORWARDS_V6 "ipv6/conf/all/forwarding"

static int wall_able(const struct policy *policy, struct err *err)
{
        _cleanup_free_ struct policy_range *ranges = NULL;
        size_t n;
        int r;

        if (!has_right(CAP_NET_ADMIN) || !has_right(CAP_SYS_ADMIN))
                return cannot(err, "needs CAP_NET_ADMIN and CAP_SYS_ADMIN (run as root)");
        r = check_policy(policy, err);
        if (r <= 0)
                return r;
        if (policy_ranges(policy, &ranges, &n) < 0)
                return err_set_nomem(err);
        r = leads_beyond(policy, ranges, n, err);
        if (r < 0)
                return r;
        if (r > 0 && !is_set(FORWARDS_V4, "1") && !rules_can_hand_over(AF_INET))
                return cannot(err, "what the policy allows lies beyond this host, which does not forward: set "
                                   "net.ipv4.ip_forward to 1, or have nftables' dup (nft_dup_ipv4)");
        return 1;
}

/* ---- the inner side ---- */

static void describe(const struct sandbox *sandbox, const struct wall *wall, struct rules *ret)
{
        *ret = (struct rules){
                .ranges = wall->ranges,
                .n_ranges = wall->n_ranges,
                .has_names = rules_has_names(sandbox->policy),
                .has_resolver = rules_has_names(sandbox->policy),
                .total = sandbox->policy->total,
                .link = wall->link,
                .own_v4 = wall->own_v4,
                .own_v6 = wall->own_v6,
                .hands_over_v4 = wall->hands_over_v4,
                .hands_over_v6 = wall->hands_over_v6,
                .holds = askers_looks_up(sandbox->askers),
        };
}

static int run_rules(struct nft *nft, struct text *text, struct err *err)
{
        return text->failed ? err_set_nomem(err) : nft_run(nft, text->data, err);
}

static int wall_inside(struct sandbox *sandbox, struct err *err)
{
        _cleanup_text_ struct text text = {0};
        struct rules rules;
        struct wall *wall;
        int r;

        sandbox->state = wall = calloc(1, sizeof(*wall));
        if (!wall || policy_ranges(sandbox->policy, &wall->ranges, &wall->n_ranges) < 0)
                return err_set_nomem(err);
        r = names_open(sandbox, &wall->names, err);
        if (r == 0 && rules_has_names(sandbox->policy))
                r = names_route(err);
        if (r == 0)
                r = askers_open(sandbox, wall->names, true, err);
        describe(sandbox, wall, &rules);
        rules_inner(&rules, &text);
        if (r == 0)
                r = nft_open(NULL, &wall->inner, err);
        if (r == 0)
                r = run_rules(wall->inner, &text, err);
        if (r == 0)
                r = refusals_open(sandbox, RULES_LOG_GROUP, RULES_LOG_BYTES, &wall->refusals, err);
        return r;
}

/* ---- the link ---- */

/* The two ends of a run's network; its number is the link's on the host. */
static void address_ends(unsigned number, struct ip_prefix v4[2], struct ip_prefix v6[2])
{
        for (unsigned i = 0; i < 2; i++) {
                v4[i] = (struct ip_prefix){.family = AF_INET,
                                           .bytes = {198, 19, (uint8_t)(number >> 6),
                                                     (uint8_t)((number & 63) * 4 + i + 1)},
                                           .length_bits = 30};
                v6[i] = (struct ip_prefix){
                        .family = AF_INET6,
                        .bytes = {0xfd, 0x5a, 0xa5,
                                  0x7a, [6] = (uint8_t)(number >> 8), [7] = (uint8_t)number, [15] = (uint8_t)(i + 1)},
                        .length_bits = 126};
        }
}

static struct ip_prefix host_end(unsigned number)
{
        struct ip_prefix v4[2], v6[2];

        address_ends(number, v4, v6);
        v4[0].length_bits = 32;
        return v4[0];
}

/* The first number that no other run has: that the name is free is what the kernel decides. */
static int add_link(struct sandbox *sandbox, struct wall *wall, unsigned *ret_number, struct err *err)
{
        struct link_end host = {.name = wall->link, .is_quiet = true, .mtu = LINK_MTU};
        struct link_end inner = {.name = INNER_NAME, .is_quiet = true, .mtu = LINK_MTU};
        struct ip_prefix v4[2], v6[2];
        struct err why;
        int r = -EEXIST;

        for (unsigned number = 0; number < RUNS_MAX && r == -EEXIST; number++) {
                snprintf(wall->link, sizeof(wall->link), RULES_LINK "%u", number);
                why = (struct err){0};
                r = link_add_veth(wall->host, &host, &inner, &sandbox->netns, &why);
                *ret_number = number;
        }
        if (r < 0) {
                wall->link[0] = 0;
                *err = why;
                return r;
        }
        address_ends(*ret_number, v4, v6);
        inet_ntop(AF_INET, v4[1].bytes, wall->own_v4, sizeof(wall->own_v4));
        inet_ntop(AF_INET6, v6[1].bytes, wall->own_v6, sizeof(wall->own_v6));
        return link_find(wall->host, wall->link, &wall->index, err);
}

static int add_end(struct netlink *nl, int index, const struct ip_prefix *mine, const struct ip_prefix *other,
                   const uint8_t other_mac[LINK_ALEN], struct err *err)
{
        int r = ip_address_add(nl, index, mine, err);

        return r < 0 ? r : ip_neighbour_add(nl, index, other, other_mac, err);
}

static int add_addresses(struct netlink *const nl[2], const int index[2], unsigned number, bool *ret_has_v6,
                         struct err *err)
{
        struct ip_prefix v4[2], v6[2], v4_default = {.family = AF_INET}, v6_default = {.family = AF_INET6};
        struct link_info info[2];
        struct err no_v6 = {0};
        int r;

        *ret_has_v6 = true;
        address_ends(number, v4, v6);
        for (size_t i = 0; i < 2; i++) {
                r = link_read(nl[i], index[i], &info[i], err);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < 2; i++) {
                r = add_end(nl[i], index[i], &v4[i], &v4[1 - i], info[1 - i].mac, err);
                if (r < 0)
                        return r;
                /* A host without IPv6 has none to share. */
                if (*ret_has_v6 && add_end(nl[i], index[i], &v6[i], &v6[1 - i], info[1 - i].mac, &no_v6) < 0)
                        *ret_has_v6 = false;
        }
        r = ip_route_add(nl[1], index[1], &v4_default, &v4[0], NULL, err);
        if (r == 0 && *ret_has_v6)
                r = ip_route_add(nl[1], index[1], &v6_default, &v6[0], NULL, err);
        if (r == 0 && *ret_has_v6)
                r = ip_address_wait(nl[1], &v6[1], LINK_WAIT_NS, err);
        return r;
}

static int raise_link(struct sandbox *sandbox, struct wall *wall, unsigned number, struct err *err)
{
        _cleanup_netlink_ struct netlink *inner = NULL;
        struct netlink *nl[2] = {wall->host, NULL};
        int index[2] = {wall->index}, r;
        bool has_v6;

        r = netlink_open(&sandbox->netns, &inner, err);
        if (r == 0)
                r = link_find(inner, INNER_NAME, &index[1], err);
        if (r < 0)
                return r;
        nl[1] = inner;
        for (size_t i = 0; i < 2; i++) {
                r = link_set_up(nl[i], index[i], true, err);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < 2; i++) {
                r = link_wait_running(nl[i], index[i], LINK_WAIT_NS, err);
                if (r < 0)
                        return r;
        }
        return add_addresses(nl, index, number, &has_v6, err);
}

/* @setting: of the link on the host */
static int set_own(const struct wall *wall, const char *family, const char *setting, const char *value, struct err *err)
{
        _cleanup_netns_ struct netns self = NETNS_INIT;
        char name[64];
        int r;

        r = netns_open_self(&self, err);
        if (r < 0)
                return r;
        snprintf(name, sizeof(name), "%s/conf/%s/%s", family, wall->link, setting);
        return netns_sysctl_write(&self, name, value, err);
}

/* What enters by the link may go on to other links: a setting of that link alone. IPv6 has one from Linux 6.17 on, and
 * before that only one of the whole host, which is left as it is. */
static int let_forward(struct wall *wall, struct err *err)
{
        int r = set_own(wall, "ipv4", "forwarding", wall->masquerades ? "1" : "0", err);

        if (r < 0 || !wall->masquerades)
                return r;
        wall->hands_over_v4 = !is_set(FORWARDS_V4, "1");
        wall->hands_over_v6 = !is_set(FORWARDS_V6, "1") && is_set("ipv6/conf/all/force_forwarding", NULL) &&
                              rules_can_hand_over(AF_INET6);
        return wall->hands_over_v6 ? set_own(wall, "ipv6", "force_forwarding", "1", err) : 0;
}

static int add_forwarding(struct wall *wall, const struct rules *rules, struct err *err)
{
        _cleanup_text_ struct text text = {0};
        int r;

        rules_forward(rules, &text);
        r = nft_open(NULL, &wall->forward, err);
        return r < 0 ? r : run_rules(wall->forward, &text, err);
}

/* Whether the policy may lead somewhere over IPv6. */
static bool wants_v6(const struct sandbox *sandbox, const struct wall *wall)
{
        bool wants = rules_has_names(sandbox->policy);

        for (size_t i = 0; i < wall->n_ranges && !wants; i++)
                wants = wall->ranges[i].family == AF_INET6;
        return wants;
}

static int open_ways(const struct sandbox *sandbox, const struct wall *wall, struct err *err)
{
        int r = rules_open_ways(wall->inner, wall->hands_over_v6 || is_set(FORWARDS_V6, "1"), err);

        if (r > 0 && wall->masquerades && wants_v6(sandbox, wall))
                log_warning(
                        "no IPv6 beyond this host: it does not forward (net.ipv6.conf.all.forwarding is not 1), and "
                        "its kernel cannot for one link alone (Linux 6.17 can, with nftables' dup)");
        return MIN(r, 0);
}

static int wall_up(struct sandbox *sandbox, struct err *err)
{
        struct wall *wall = sandbox->state;
        struct rules rules;
        unsigned number = 0;
        int r;

        r = leads_beyond(sandbox->policy, wall->ranges, wall->n_ranges, err);
        if (r < 0)
                return r;
        wall->masquerades = r;
        r = netlink_open(NULL, &wall->host, err);
        if (r == 0)
                r = add_link(sandbox, wall, &number, err);
        if (r == 0)
                r = let_forward(wall, err);
        if (r < 0)
                return r;
        describe(sandbox, wall, &rules);
        r = outer_new(wall->host, wall->index, &rules, sandbox->policy, &wall->outer, err);
        if (r == 0 && outer_weaker(wall->outer))
                bundle_weaker(sandbox->bundle, outer_weaker(wall->outer));
        if (r == 0 && wall->masquerades)
                r = add_forwarding(wall, &rules, err);
        if (r == 0)
                r = raise_link(sandbox, wall, number, err);
        if (r == 0)
                sandbox->control = host_end(number);
        if (r == 0)
                r = open_ways(sandbox, wall, err);
        if (r == 0)
                r = names_serve(wall->names, err);
        if (r == 0)
                r = askers_watch(sandbox->askers, err);
        bundle_observes(sandbox->bundle, BUNDLE_DENIED);
        return r < 0 ? r : refusals_watch(wall->refusals, err);
}

/* The host's end of the link, as the proof's control. */
static int wall_expose(struct sandbox *sandbox, const struct ip_prefix *address, uint16_t port, bool is_open,
                       struct err *err)
{
        struct wall *wall = sandbox->state;
        int r = outer_expose(wall->outer, address, port, is_open, err);

        return r < 0 ? r : rules_expose(wall->inner, "inet assay", address, port, is_open, err);
}

static int wall_admit(struct sandbox *sandbox, const struct pin *pins, size_t n, struct err *err)
{
        struct wall *wall = sandbox->state;
        int r = outer_admit(wall->outer, sandbox->policy, pins, n, err);

        return r < 0 ? r : rules_admit(wall->inner, "inet assay", sandbox->policy, false, pins, n, err);
}

/* What the inner side let through and the outer one did not shows that one of them is wrong. */
static void tell_stopped(const struct wall *wall)
{
        struct gate_count counts[GATE_COUNTERS];

        if (wall->outer && outer_read(wall->outer, counts, NULL) == 0 && counts[GATE_STOPPED].packets > 0)
                log_warning("%" PRIu64 " packets passed the first check of the wall and were stopped by the second: "
                            "fragments of IPv6 that the command had made of datagrams (IPV6_MTU), or the first check "
                            "has a fault",
                            (uint64_t)counts[GATE_STOPPED].packets);
}

/* The link goes with N, in the background, which is sooner than a wait for the kernel to have removed it; tables of the
 * host's namespace go with their connection. */
static int wall_down(struct sandbox *sandbox, struct err *err)
{
        struct wall *wall = sandbox->state;

        if (!wall)
                return 0;
        if (wall->refusals)
                refusals_drain(wall->refusals);
        tell_stopped(wall);
        askers_end(sandbox->askers);
        askers_free(sandbox->askers);
        sandbox->askers = NULL;
        wall_free(wall);
        sandbox->state = NULL;
        return 0;
}

const struct enforcer_ops enforcer_wall = {
        .name = "wall",
        .strength = STRENGTH_ENFORCED,
        .able = wall_able,
        .inside = wall_inside,
        .up = wall_up,
        .admit = wall_admit,
        .expose = wall_expose,
        .down = wall_down,
};
