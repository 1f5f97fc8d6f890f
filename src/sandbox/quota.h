/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "sandbox/policy.h"

/* A policy's `limits`, kept: of the whole run, and of each target. Flows are opened, move bytes and are closed; times
 * are those of CLOCK_MONOTONIC. */
struct quotas;

/* What one flow counts against. */
struct quota_flow {
        struct quota_target *target; /* NULL: not open */
};

int quotas_new(const struct policy *policy, struct quotas **ret);
void quotas_free(struct quotas *quotas);

DEFINE_CLEANUP(struct quotas *, quotas_free)
#define _cleanup_quotas_ _cleanup_(quotas_free_cleanup)

/* quota_open - count a flow to @target (target_format(): a name where there is one, transport and port)
 * @ret_why: on a refusal the limit that is reached
 *
 * Return: 0; -EDQUOT; -ENOMEM.
 */
int quota_open(struct quotas *quotas, const char *target, int64_t now_ns, struct quota_flow *flow,
               const char **ret_why);

/* quota_close - accepts a flow that is not open */
void quota_close(struct quotas *quotas, struct quota_flow *flow);

/* quota_chunk - how many bytes at most to move at once, so that a slow rate stays even and no byte is over a limit;
 * @most where nothing limits it, 0 where nothing more may be moved */
size_t quota_chunk(const struct quotas *quotas, const struct quota_flow *flow, size_t most);

/* quota_move - count bytes that a flow has moved, in either direction
 * @ret_wait_ns: before this time has passed it is to move no more; 0: at once
 *
 * Return: 0; -EDQUOT where these bytes were over a limit.
 */
int quota_move(struct quotas *quotas, const struct quota_flow *flow, size_t len, int64_t now_ns, int64_t *ret_wait_ns);
