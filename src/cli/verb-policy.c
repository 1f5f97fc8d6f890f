/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verb-policy.h"

#include <fcntl.h>

#include "cli/verbs.h"

int policy_load_all(char *const *paths, size_t n, struct policy **ret, struct err *err)
{
        for (size_t i = 0; i < n; i++) {
                int r = policy_load(AT_FDCWD, paths[i], &ret[i], err);

                if (r < 0) {
                        while (i-- > 0)
                                policy_free(TAKE_PTR(ret[i]));
                        return r;
                }
        }
        return 0;
}

int policy_combine_all(struct policy **policies, size_t n, struct policy **ret, struct err *err)
{
        int r = 0;

        for (size_t i = 1; r == 0 && i < n; i++)
                r = policy_combine(policies[0], &policies[i], err);
        if (r == 0)
                *ret = TAKE_PTR(policies[0]);
        for (size_t i = 0; i < n; i++)
                policy_free(TAKE_PTR(policies[i]));
        return r;
}

static const struct verb *const verbs_of_policy[] = {
        &verb_policy_check,
        &verb_policy_explain,
        &verb_policy_learn,
        NULL,
};

const struct verb verb_policy = {
        .name = "policy",
        .summary = "check network policies, say what they decide, and learn them",
        .description =
                "A policy says what a command may reach on the network. Several narrow each other: what is allowed "
                "is\nwhat each of them allows.",
        .verbs = verbs_of_policy,
};
