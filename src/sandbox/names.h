/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/cleanup.h"
#include "sandbox/enforcer.h"
#include "sandbox/pins.h"
#include "sandbox/policy.h"

/* The names of a run: a resolver at port 53 of every address that the command's network namespace N has, whose answers
 * are pinned and admitted by the enforcer before they leave. */
struct names;

/* names_open - make what belongs to N: the sockets that are asked; to be called inside N
 * @ret: names_free() releases it
 */
int names_open(struct sandbox *sandbox, struct names **ret, struct err *err);

/* names_route - lead to the resolver whatever N sends to port 53, of whatever server the program believes in; to be
 * called inside N, where not every address is N's own already */
int names_route(struct err *err);

/* names_serve - answer, in the supervisor's loop and from the host's network namespace */
int names_serve(struct names *names, struct err *err);

/* names_pins - which names an address was given for; borrowed, NULL before anything was asked */
const struct pins *names_pins(const struct names *names);

/* names_decide - whether @target may be reached, under any of the names that its address is pinned for, or none
 * @target: gets the name that decided, good until pins are added or swept; NULL where it was none
 * @ret:    of the outcome
 */
enum policy_outcome names_decide(const struct names *names, const struct policy *policy, struct target *target,
                                 struct decision *ret);

void names_free(struct names *names);

DEFINE_CLEANUP(struct names *, names_free)
#define _cleanup_names_ _cleanup_(names_free_cleanup)
