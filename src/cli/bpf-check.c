/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bpf-check.h"

#include "cli/bpf-cost.h"

const char *const bpf_check_profiles[] = {"full", "embedded", NULL};

enum { RIGHT_PROFILE, RIGHT_ALLOW, RIGHT_DENY };
const char *const bpf_check_rights[] = {"profile", "allow", "deny", NULL};

int bpf_check_options(const struct bpf_check *check, struct cost_table *table, struct verifier_options *ret,
                      struct err *err)
{
        const struct profile *profile = profile_find(bpf_check_profiles[check->profile]);

        *ret = (struct verifier_options){.profile = profile,
                                         .costs = check->costs ? table : NULL,
                                         .may_actuate = check->actuation == RIGHT_ALLOW ||
                                                        (check->actuation == RIGHT_PROFILE && profile->may_actuate),
                                         .disjuncts = (unsigned)check->disjuncts};
        return check->costs ? bpf_cost_load(check->costs, table, err) : 0;
}
