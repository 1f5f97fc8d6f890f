/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/enforcer.h"

#include <string.h>

#include "base/text.h"

/* Fastest first. What was tried and is not among them: programs on a cgroup's connect(), in the host's namespace, which
 * do not see every socket and whose links go with a descriptor; and a broker that is asked about each connect(), which
 * costs twice the time of a small request. */
const struct enforcer_ops *const enforcers[] = {
        &enforcer_deny_all, &enforcer_wall, &enforcer_proxy, &enforcer_none, NULL,
};

const struct enforcer_ops *enforcer_find(const char *name)
{
        for (size_t i = 0; enforcers[i]; i++)
                if (streq(enforcers[i]->name, name))
                        return enforcers[i];
        return NULL;
}

static int unknown(const char *name, struct err *err)
{
        _cleanup_text_ struct text list = {0};

        for (size_t i = 0; enforcers[i]; i++)
                text_addf(&list, ", %s", enforcers[i]->name);
        return err_set(err, ERR_USAGE, EINVAL, "there is no enforcer %s; expected one of auto%s", name,
                       list.failed ? "" : list.data);
}

/* Each enforcer that cannot is in @reasons with what it lacks. Return: 1 with @ret, or 0. */
static int first_able(const struct policy *policy, const struct enforcer_ops **ret, struct text *reasons,
                      struct err *err)
{
        for (size_t i = 0; enforcers[i]; i++) {
                struct err why = {0};
                int r;

                if (enforcers[i]->strength != STRENGTH_ENFORCED)
                        continue;
                r = enforcers[i]->able(policy, &why);
                if (r == 1)
                        *ret = enforcers[i];
                if (r < 0)
                        *err = why;
                if (r != 0)
                        return r;
                text_addf(reasons, "%s%s: %s", reasons->len > 0 ? "; " : "", enforcers[i]->name, why.text);
        }
        return 0;
}

int enforcer_choose(const char *name, const struct policy *policy, const struct enforcer_ops **ret, struct err *err)
{
        _cleanup_text_ struct text reasons = {0};
        int r;

        if (!streq(name, "auto")) {
                *ret = enforcer_find(name);
                if (!*ret)
                        return unknown(name, err);
                r = (*ret)->able(policy, err);
                if (r == 0) {
                        err_prefix(err, "%s cannot enforce this policy here", name);
                        return -EOPNOTSUPP;
                }
                return r < 0 ? r : 0;
        }
        r = first_able(policy, ret, &reasons, err);
        if (r == 0)
                return err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP, "no enforcer can enforce this policy here: %s",
                               reasons.failed ? "" : reasons.data);
        return r < 0 ? r : 0;
}

/* ---- none ---- */

static int none_is_able(const struct policy *policy, struct err *err)
{
        return 1;
}

const struct enforcer_ops enforcer_none = {
        .name = "none",
        .strength = STRENGTH_UNENFORCED,
        .shares_network = true,
        .able = none_is_able,
};
