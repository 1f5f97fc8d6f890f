/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "sandbox/policy.h"

/* From what a command did to a policy that would have let it. */

/* learn_policy_new - the policy to look on with: everything that leaves the host is allowed. NULL if memory ran out. */
struct policy *learn_policy_new(void);

struct learned {
        size_t n_rules;
        size_t n_denied; /* attempts that were denied even so; the text has them as comments */
};

/* learn_policy_write - add to @out the smallest policy that allows what was allowed in a run
 * @record: of the run (docs/formats/run-bundle.md), with its names and what was allowed
 *
 * Destinations that were reached by a name are allowed by it: also by the others that the command looked up and that
 * have an address in common with it, since which of them it meant does not show. Addresses of names are allowed besides
 * where they are special. What was looked up only, and what was denied, stands there as a comment. Return: 0; -ENOMEM;
 * -EINVAL with the reason (kind bug) for a record that bundle_to_json() does not make.
 */
int learn_policy_write(const json_t *record, struct text *out, struct learned *ret, struct err *err);
