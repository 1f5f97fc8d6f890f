/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "bpfvm/embed.h"
#include "bpfvm/fault.h"
#include "bpfvm/program.h"
#include "bpfvm/store.h"

/* The fast interpreter: a program decoded once more into handlers and operands. It checks nothing: only programs that
 * the verifier accepted may be given to it. For others there is oracle.h. */

struct interp;

/* interp_new - prepare a verified program
 * @store: maps, made from the program's definitions; both must live as long as the result
 * @embed: copied; NULL for the defaults
 *
 * Return: 0; -EINVAL if @program is not legal or the store is not for it; -ENOMEM.
 */
int interp_new(const struct program *program, struct store *store, const struct embed *embed, struct interp **ret,
               struct err *err);

void interp_free(struct interp *interp);
DEFINE_CLEANUP(struct interp *, interp_free)
#define _cleanup_interp_ _cleanup_(interp_free_cleanup)

/* interp_run - run it once; allocates nothing
 * @context: what r1 points to (the program's context.size bytes)
 * @budget:  a limit for loops. Each jump back costs the instructions from its target to itself, each local call those
 * of the function; when they exceed the budget, the run stops. Straight code costs nothing. UINT64_MAX: no limit.
 *
 * Return: 0 with r0 in @ret; 1 if the budget ran out, with FAULT_STEP_LIMIT and the jump or call in @fault.
 */
int interp_run(struct interp *interp, void *context, uint64_t budget, uint64_t *ret, struct fault *fault);
