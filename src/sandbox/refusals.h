/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/cleanup.h"
#include "sandbox/enforcer.h"

/* What rules of nftables refuse in the command's network namespace and report to its packet log: told to the user, and
 * counted in the bundle, as it happens. */
struct refusals;

/* refusals_open - take the reports of a group of the packet log; to be called inside N
 * @ret: refusals_free() releases it
 */
int refusals_open(struct sandbox *sandbox, uint16_t group, uint32_t copy_bytes, struct refusals **ret, struct err *err);

/* refusals_watch - from now on tell of them, in the supervisor's loop */
int refusals_watch(struct refusals *refusals, struct err *err);

/* refusals_drain - tell of those that have been reported but not been read, such as after the command's end */
void refusals_drain(struct refusals *refusals);

void refusals_free(struct refusals *refusals);

DEFINE_CLEANUP(struct refusals *, refusals_free)
#define _cleanup_refusals_ _cleanup_(refusals_free_cleanup)
