/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/verb.h"
#include "sandbox/policy.h"

extern const struct verb verb_policy_check, verb_policy_explain, verb_policy_learn;

/* policy_load_all - the policies of @n files, each for itself
 * @ret: @n policies, each of which the caller frees; all NULL after an error
 */
int policy_load_all(char *const *paths, size_t n, struct policy **ret, struct err *err);

/* policy_combine_all - make one policy of @n, all of which are consumed, also after an error */
int policy_combine_all(struct policy **policies, size_t n, struct policy **ret, struct err *err);
