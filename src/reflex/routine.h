/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "bpfvm/program.h"
#include "bpfvm/verifier.h"

/* A program that was accepted, with maps of its own: what a pipeline attaches. There is no other way to make one than
 * to have it verified, and nobody else keeps the program that it owns; so nothing that was not verified can be
 * attached. */

struct routine;

struct routine_options {
        const struct profile *profile;  /* NULL: embedded */
        const struct cost_table *costs; /* NULL: the default; must live as long as the routine */
        bool may_actuate;
};

/* routine_new - verify a program, as one that gets a struct reflex_event (bpf/reflex.h) as its context
 * @object:      what was loaded; taken where the program is accepted (*@object is NULL then), else left to the caller
 * @program:     one of its programs; its context is replaced
 * @ret_verdict: what the verifier found, accepted or refused; the caller releases it with verdict_done()
 *
 * Return: 0; 1 refused, with the reason in @ret_verdict; a negative errno, and no verdict.
 */
int routine_new(struct object **object, struct program *program, const struct routine_options *options,
                struct routine **ret, struct verdict *ret_verdict, struct err *err);

void routine_free(struct routine *routine);
DEFINE_CLEANUP(struct routine *, routine_free)
#define _cleanup_routine_ _cleanup_(routine_free_cleanup)

/* routine_name - of the program; as long as the routine */
const char *routine_name(const struct routine *routine);

/* routine_cost_ps - worst case of one run, picoseconds of the cost table */
uint64_t routine_cost_ps(const struct routine *routine);
