/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "sandbox/askers.h"
#include "sandbox/bundle.h"
#include "sandbox/proxy-internal.h"
#include "sandbox/rules.h"
#include "sys/ip.h"
#include "sys/link.h"
#include "sys/netlink.h"

/* A network namespace without any link but lo, to which every address belongs. Its rules let out what the policy may
 * allow, and turn it to listeners of the supervisor, which looks again, asks where needed what the flow says of itself,
 * and moves the bytes. It needs no right on the host. */

#define ADDRESS_WAIT_NS (5 * NSEC_PER_SEC)

bool destination_read(enum transport transport, const struct sockaddr_storage *from, struct destination *ret)
{
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;

        *ret = (struct destination){.transport = transport, .address = {.family = from->ss_family}};
        if (from->ss_family == AF_INET) {
                memcpy(ret->address.bytes, &v4->sin_addr, 4);
                ret->address.length_bits = 32;
                ret->port = ntohs(v4->sin_port);
        } else if (from->ss_family == AF_INET6) {
                memcpy(ret->address.bytes, &v6->sin6_addr, 16);
                ret->address.length_bits = 128;
                ret->port = ntohs(v6->sin6_port);
        } else {
                return false;
        }
        target_address_normalise(&ret->address);
        return true;
}

static const struct ip_prefix loopback = {.family = AF_INET, .bytes = {127, 0, 0, 1}, .length_bits = 32};

/* What the proof has to see arrive, whatever the policy. */
static bool is_control(const struct proxy *proxy, const struct destination *to)
{
        return proxy->control_port != 0 && to->port == proxy->control_port && to->address.family == AF_INET &&
               memcmp(to->address.bytes, loopback.bytes, 4) == 0;
}

enum policy_outcome proxy_decide(const struct proxy *proxy, const struct destination *to, const char *sni,
                                 const char *http_host, bool *ret_by_name, struct decision *ret)
{
        struct target target = {.transport = to->transport,
                                .address = to->address,
                                .port = to->port,
                                .sni = sni,
                                .http_host = http_host};

        names_decide(proxy->names, proxy->sandbox->policy, &target, ret);
        if (is_control(proxy, to)) {
                ret->outcome = POLICY_ALLOWED;
                target.name = NULL;
        }
        if (ret_by_name)
                *ret_by_name = target.name != NULL;
        return ret->outcome;
}

/* With the name where the address was given for one. */
static char *format_destination(const struct proxy *proxy, const struct destination *to, char buf[static TARGET_TEXT])
{
        struct target target = {.transport = to->transport, .address = to->address, .port = to->port};

        if (names_pins(proxy->names))
                target.name = pins_next(names_pins(proxy->names), &to->address, clock_now_ns(CLOCK_MONOTONIC), NULL);
        return target_format(&target, buf);
}

void proxy_tell(const struct proxy *proxy, const struct destination *from, const struct destination *to,
                const struct decision *decision, bool allowed, const char *why)
{
        char text[TARGET_TEXT], rule[DECISION_TEXT];
        struct target target = {.transport = to->transport, .address = to->address, .port = to->port};
        struct bundle_attempt attempt = {.target = text, .rule = why ? why : rule, .is_allowed = allowed};
        struct flow_end end;
        const struct asker *who;

        if (is_control(proxy, to))
                return;
        format_destination(proxy, to, text);
        if (!why)
                decision_rule_format(decision, rule);
        if (from)
                end = (struct flow_end){.address = from->address, .port = from->port};
        who = askers_find(proxy->sandbox->askers, &target, from ? &end : NULL, !allowed);
        if (!allowed) {
                sandbox_denied(proxy->sandbox, text, attempt.rule, who);
                return;
        }
        if (who) {
                attempt.pid = who->pid;
                attempt.executable = who->executable[0] ? who->executable : NULL;
        }
        bundle_attempt(proxy->sandbox->bundle, &attempt, 1);
}

int proxy_open_flow(struct proxy *proxy, const struct destination *to, struct quota_flow *flow)
{
        char text[TARGET_TEXT];
        const char *why = NULL;
        int r;

        if (is_control(proxy, to))
                return 0;
        r = quota_open(proxy->quotas, format_destination(proxy, to, text), loop_now_ns(proxy->sandbox->loop), flow,
                       &why);
        if (why)
                proxy_tell(proxy, NULL, to, NULL, false, why);
        return r;
}

void proxy_count(const struct proxy *proxy, const struct destination *to, uint64_t sent, uint64_t received)
{
        char text[TARGET_TEXT];

        if (proxy->sandbox->bundle && !is_control(proxy, to))
                bundle_bytes(proxy->sandbox->bundle, format_destination(proxy, to, text), sent, received, 1);
}

int proxy_listen(int family, int type)
{
        struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(PROXY_PORT)};
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(PROXY_PORT)};
        const struct sockaddr *where = family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
        _cleanup_close_ int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, yes = 1;
        int option = family == AF_INET ? IP_TRANSPARENT : IPV6_TRANSPARENT;

        if (fd < 0 || setsockopt(fd, level, option, &yes, sizeof(yes)) < 0 ||
            (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) < 0) ||
            bind(fd, where, family == AF_INET ? sizeof(v4) : sizeof(v6)) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* ---- what it can do ---- */

/* It sees each flow, what it says, and every byte of it. */
static int proxy_able(const struct policy *policy, struct err *err)
{
        return 1;
}

/* ---- inside N ---- */

/* Every address belongs to N, and what has no address of its own says it is RULES_OWN_V4 or _V6. */
static int own_everything(const char *own_text, int family, struct err *err)
{
        const struct ip_prefix everything = {.family = family};
        _cleanup_netlink_ struct netlink *nl = NULL;
        struct ip_prefix own;
        int index, r;

        if (ip_prefix_parse(own_text, &own) < 0)
                return err_set(err, ERR_BUG, EINVAL, "%s is no address", own_text);
        r = netlink_open(NULL, &nl, err);
        if (r == 0)
                r = link_find(nl, "lo", &index, err);
        if (r == 0)
                r = ip_address_add(nl, index, &own, err);
        if (r == 0)
                r = ip_address_wait(nl, &own, ADDRESS_WAIT_NS, err);
        return r < 0 ? r : ip_route_add_local(nl, index, &everything, &own, err);
}

static int add_rules(struct proxy *proxy, struct err *err)
{
        const struct policy *policy = proxy->sandbox->policy;
        _cleanup_text_ struct text text = {0};
        struct rules rules;
        int r;

        if (policy_ranges(policy, &proxy->ranges, &proxy->n_ranges) < 0 ||
            policy_localhost(policy, &proxy->localhost) < 0)
                return err_set_nomem(err);
        rules = (struct rules){.ranges = proxy->ranges,
                               .n_ranges = proxy->n_ranges,
                               .has_names = rules_has_names(policy),
                               .has_resolver = rules_has_names(policy),
                               .proxy_port = PROXY_PORT,
                               .localhost = proxy->localhost,
                               .holds = askers_looks_up(proxy->sandbox->askers)};
        rules_inner(&rules, &text);
        if (text.failed)
                return err_set_nomem(err);
        r = nft_open(NULL, &proxy->nft, err);
        return r < 0 ? r : nft_run(proxy->nft, text.data, err);
}

static int proxy_inside(struct sandbox *sandbox, struct err *err)
{
        struct proxy *proxy = sandbox->state = calloc(1, sizeof(*proxy));
        struct err no_v6 = {0};
        int r;

        if (!proxy)
                return err_set_nomem(err);
        proxy->sandbox = sandbox;
        proxy->spare_fd = -1;
        for (size_t i = 0; i < 2; i++) {
                proxy->listeners[i] = proxy->datagrams[i] = (struct proxy_entry){.proxy = proxy, .fd = -1};
                proxy->raws[i] = -1;
        }
        if (quotas_new(sandbox->policy, &proxy->quotas) < 0)
                return err_set_nomem(err);
        r = own_everything(RULES_OWN_V4, AF_INET, err);
        if (r == 0)
                own_everything(RULES_OWN_V6, AF_INET6, &no_v6); /* without it nothing goes out over IPv6 */
        if (r == 0)
                r = names_open(sandbox, &proxy->names, err);
        if (r == 0)
                r = askers_open(sandbox, proxy->names, false, err);
        if (r == 0)
                r = add_rules(proxy, err);
        if (r == 0)
                r = refusals_open(sandbox, RULES_LOG_GROUP, RULES_LOG_BYTES, &proxy->refusals, err);
        if (r == 0)
                r = proxy_tcp_open(proxy, err);
        return r < 0 ? r : proxy_udp_open(proxy, err);
}

/* ---- in the supervisor ---- */

/* As many descriptors as this user may have, and as many flows as those are for. */
static void share_descriptors(struct proxy *proxy)
{
        struct rlimit limit = {.rlim_cur = 1024};
        size_t eighth, kept;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
                struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};

                if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
                        limit = raised;
        }
        eighth = (size_t)limit.rlim_cur / 8;
        proxy->descriptors_max = (size_t)limit.rlim_cur - MIN(eighth, PROXY_OTHER_MAX);
        kept = MIN(eighth / 2, PROXY_UDP_KEPT);
        proxy->tcp_flows_max = MIN((proxy->descriptors_max - kept) / 2, PROXY_TCP_MAX);
        proxy->udp_flows_max = MIN(eighth, PROXY_UDP_MAX);
        proxy->pipes_max = MIN(eighth / 8, PROXY_PIPES_MAX);
}

static int proxy_up(struct sandbox *sandbox, struct err *err)
{
        struct proxy *proxy = sandbox->state;
        int r;

        share_descriptors(proxy);
        sandbox->control = loopback;
        bundle_observes(sandbox->bundle, BUNDLE_ALLOWED);
        bundle_observes(sandbox->bundle, BUNDLE_DENIED);
        bundle_observes(sandbox->bundle, BUNDLE_BYTES);
        r = rules_open_ways(proxy->nft, true, err);
        if (r == 0)
                r = names_serve(proxy->names, err);
        if (r == 0)
                r = refusals_watch(proxy->refusals, err);
        if (r == 0)
                r = askers_watch(sandbox->askers, err);
        if (r == 0)
                r = proxy_tcp_serve(proxy, err);
        return r < 0 ? r : proxy_udp_serve(proxy, err);
}

static int proxy_expose(struct sandbox *sandbox, const struct ip_prefix *address, uint16_t port, bool is_open,
                        struct err *err)
{
        struct proxy *proxy = sandbox->state;

        if (!is_open) /* while they are known as the proof's, which the record of the command does not count */
                proxy_udp_end(proxy);
        proxy->control_port = is_open ? port : 0;
        return rules_expose_localhost(proxy->nft, port, is_open, err);
}

static int proxy_admit(struct sandbox *sandbox, const struct pin *pins, size_t n, struct err *err)
{
        struct proxy *proxy = sandbox->state;

        return rules_admit(proxy->nft, "inet assay", sandbox->policy, true, pins, n, err);
}

static int proxy_down(struct sandbox *sandbox, struct err *err)
{
        struct proxy *proxy = sandbox->state;

        if (!proxy)
                return 0;
        if (proxy->refusals)
                refusals_drain(proxy->refusals);
        proxy_tcp_close(proxy);
        proxy_udp_close(proxy);
        askers_end(sandbox->askers);
        askers_free(sandbox->askers);
        sandbox->askers = NULL;
        refusals_free(proxy->refusals);
        names_free(proxy->names);
        nft_free(proxy->nft);
        free(proxy->ranges);
        free(proxy->localhost.ranges);
        quotas_free(proxy->quotas);
        free(proxy);
        sandbox->state = NULL;
        return 0;
}

const struct enforcer_ops enforcer_proxy = {
        .name = "proxy",
        .strength = STRENGTH_ENFORCED,
        .able = proxy_able,
        .inside = proxy_inside,
        .up = proxy_up,
        .admit = proxy_admit,
        .expose = proxy_expose,
        .down = proxy_down,
};
