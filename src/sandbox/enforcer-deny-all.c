/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
#include "sandbox/enforcer.h"
#include "sandbox/policy.h"
#include "sys/ip.h"
#include "sys/netlink.h"

/* A network namespace without any link but lo: there is no way out, whatever else is told to the user about what was
 * asked for. */

/* ---- able ---- */

static bool layer_allows_nothing(const struct policy_layer *layer)
{
        if (layer->is_deny_all)
                return true;
        for (size_t i = 0; i < layer->n_rules; i++)
                if (!layer->rules[i].is_deny)
                        return false;
        return layer->localhost.n == 0;
}

static int describe_permission(const struct policy *policy, struct err *err)
{
        const struct policy_layer *layer = policy->layers[0];

        for (size_t i = 0; i < layer->n_rules; i++)
                if (!layer->rules[i].is_deny)
                        err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP,
                                "%s:%u: allow[%u] lets something out, and there is no way out of its network namespace",
                                layer->path, layer->rules[i].at.line, layer->rules[i].number);
        if (layer->localhost.n > 0)
                err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP,
                        "%s:%u: the host's loopback cannot be reached from its network namespace", layer->path,
                        layer->localhost_at.line);
        return 0;
}

static int is_able(const struct policy *policy, struct err *err)
{
        for (size_t i = 0; i < policy->n_layers; i++)
                if (layer_allows_nothing(policy->layers[i]))
                        return 1;
        return describe_permission(policy, err);
}

/* ---- inside ---- */

/* Without these routes the kernel says that the network is unreachable, which reads like a fault of the host's. */
static int inside(struct sandbox *sandbox, struct err *err)
{
        static const struct ip_prefix everywhere[] = {{.family = AF_INET}, {.family = AF_INET6}};
        _cleanup_netlink_ struct netlink *nl = NULL;
        int r;

        r = netlink_open(NULL, &nl, err);
        for (size_t i = 0; i < ARRAY_SIZE(everywhere) && r == 0; i++) {
                struct err why = {0};

                r = ip_route_prohibit(nl, &everywhere[i], &why);
                if (r < 0 && everywhere[i].family == AF_INET6)
                        r = 0; /* a kernel without IPv6: then nothing can be sent over it either */
                if (r < 0)
                        *err = why;
        }
        return r;
}

const struct enforcer_ops enforcer_deny_all = {
        .name = "deny-all",
        .strength = STRENGTH_ENFORCED,
        .is_asked = true,
        .able = is_able,
        .inside = inside,
};
