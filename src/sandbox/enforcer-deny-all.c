/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/enforcer.h"
#include "sandbox/names.h"
#include "sandbox/policy.h"

/* A network namespace without any link but lo: there is no way out, whatever else is told to the user about what was
 * asked for. */

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

/* ---- names ---- */

/* So that a name is refused by the rule, and told, rather than by nobody's answering. */
static int inside(struct sandbox *sandbox, struct err *err)
{
        struct names *names;
        int r;

        r = names_open(sandbox, &names, err);
        if (r == 0)
                sandbox->state = names;
        return r;
}

static int up(struct sandbox *sandbox, struct err *err)
{
        return names_serve(sandbox->state, err);
}

static int down(struct sandbox *sandbox, struct err *err)
{
        names_free(sandbox->state);
        sandbox->state = NULL;
        return 0;
}

const struct enforcer_ops enforcer_deny_all = {
        .name = "deny-all",
        .strength = STRENGTH_ENFORCED,
        .is_asked = true,
        .able = is_able,
        .inside = inside,
        .up = up,
        .down = down,
};
