/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/refusals.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/macro.h"
#include "sandbox/askers.h"
#include "sandbox/policy.h"
#include "sys/ip.h"
#include "sys/loop.h"
#include "sys/nflog.h"
#include "wire/packet.h"

#define RULE_TEXT (DECISION_TEXT + 64)

struct refusals {
        struct sandbox *sandbox;
        struct nflog *log;
        struct loop_io io;
        int raws[2]; /* of IPv4 and IPv6, to answer with from any address; -1: none */
};

int refusals_open(struct sandbox *sandbox, uint16_t group, uint32_t copy_bytes, struct refusals **ret, struct err *err)
{
        _cleanup_refusals_ struct refusals *refusals = calloc(1, sizeof(*refusals));
        int r;

        if (!refusals)
                return err_set_nomem(err);
        refusals->sandbox = sandbox;
        for (size_t i = 0; i < ARRAY_SIZE(refusals->raws); i++)
                refusals->raws[i] = -1;
        if (askers_looks_up(sandbox->askers))
                for (size_t i = 0; i < ARRAY_SIZE(refusals->raws); i++) {
                        refusals->raws[i] = socket(i == 0 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
                        if (refusals->raws[i] < 0 && i == 0)
                                return err_set_errno(err, ERR_UNSUPPORTED, errno, "cannot answer for the rules");
                }
        r = nflog_open(NULL, group, copy_bytes, &refusals->log, err);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(refusals);
        return 0;
}

void refusals_free(struct refusals *refusals)
{
        if (!refusals)
                return;
        loop_io_remove(&refusals->io);
        nflog_free(refusals->log);
        for (size_t i = 0; i < ARRAY_SIZE(refusals->raws); i++)
                close_cleanup(&refusals->raws[i]);
        free(refusals);
}

/* Why a packet was refused although the policy allows its target. */
static const char *other_reason(const struct packet_flow *flow, const struct target *target)
{
        if (flow->is_fragment)
                return "fragments are not let through";
        if (flow->has_options)
                return "IP options and extension headers are not let through";
        if (target->port == 853)
                return "names are asked at port 53";
        return "over a limit, from an address of another, or its name's time is over: look it up again";
}

/* Who was left to wait for the answer of the rules (rules.h) gets ours. It is the same for one that has got theirs. */
static void reset(const struct refusals *refusals, struct span packet, const struct packet_flow *flow)
{
        struct ip_prefix to = {.family = flow->family};
        uint8_t answer[PACKET_RESET_BYTES];
        size_t answer_bytes = packet_reset(packet, flow, answer);
        struct sockaddr_storage where;
        socklen_t len;

        memcpy(to.bytes, flow->source, sizeof(to.bytes));
        len = ip_prefix_sockaddr(&to, 0, &where);
        if (answer_bytes > 0)
                sendto(refusals->raws[flow->family == AF_INET6], answer, answer_bytes, MSG_DONTWAIT,
                       (struct sockaddr *)&where, len);
}

static void tell(struct refusals *refusals, const struct packet_flow *flow)
{
        struct flow_end from = {.address = {.family = flow->family, .length_bits = flow->family == AF_INET ? 32 : 128},
                                .port = flow->source_port};
        struct target target = {.transport = flow->protocol == IPPROTO_UDP ? TRANSPORT_UDP : TRANSPORT_TCP,
                                .port = flow->destination_port};
        char text[TARGET_TEXT], rule[RULE_TEXT];
        struct decision decision;

        target.address.family = flow->family;
        target.address.length_bits = flow->family == AF_INET ? 32 : 128;
        memcpy(target.address.bytes, flow->destination, sizeof(target.address.bytes));
        if (!flow->has_ports) {
                char address[IP_TEXT_MAX];

                snprintf(text, sizeof(text), "protocol %u to %s", flow->protocol,
                         ip_prefix_format(&target.address, address));
                sandbox_denied(refusals->sandbox, text, "only TCP and UDP are let through", NULL);
                return;
        }
        target_format(&target, text);
        policy_decide(refusals->sandbox->policy, &target, &decision);
        if (decision.outcome == POLICY_ALLOWED)
                snprintf(rule, sizeof(rule), "%s", other_reason(flow, &target));
        else
                decision_rule_format(&decision, rule);
        memcpy(from.address.bytes, flow->source, sizeof(from.address.bytes));
        sandbox_denied(refusals->sandbox, text, rule, askers_find(refusals->sandbox->askers, &target, &from, true));
}

void refusals_drain(struct refusals *refusals)
{
        struct nflog_packet packet;
        struct packet_flow flow;
        int r;

        while ((r = nflog_read(refusals->log, &packet)) != 0) {
                if (r < 0 && r != -ENOBUFS) /* lost reports: the rules count what they refuse */
                        return;
                if (r != 1 || packet_flow_parse(packet.bytes, &flow) < 0)
                        continue;
                tell(refusals, &flow);
                if (askers_looks_up(refusals->sandbox->askers))
                        reset(refusals, packet.bytes, &flow);
        }
}

static int on_report(struct loop_io *io, uint32_t events)
{
        refusals_drain(CONTAINER_OF(io, struct refusals, io));
        return 0;
}

int refusals_watch(struct refusals *refusals, struct err *err)
{
        int r = loop_io_add(refusals->sandbox->loop, &refusals->io, nflog_fd(refusals->log), EPOLLIN, on_report);

        return r < 0 ? err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot wait for the packet log") : 0;
}
