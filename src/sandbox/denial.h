/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "sandbox/enforcer.h"

/* What the user is told of refusals: each at once, but no flood of them. */
struct denials;

int denials_new(struct denials **ret, struct err *err);
void denials_free(struct denials *denials);

/* denials_admit - whether a line about @target may be written at @now_ns: not within a second of the same, and not the
 * 101st of a second */
bool denials_admit(struct denials *denials, const char *target, int64_t now_ns);
