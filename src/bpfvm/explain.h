/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/text.h"
#include "bpfvm/verifier.h"

/* For people: what to do about a refusal, and what holds at each instruction. */

/* explain_suggestion - what usually mends a refusal of that kind, at that instruction; "" for kinds where nothing more
 * is to be said than the reason */
const char *explain_suggestion(const struct program *program, const struct verdict *verdict);

/* explain_states - every instruction with the states that hold before it, chain of calls by chain of calls, one line an
 * instruction and one line a state below it; of a refused program up to the refusal
 * @ret_verdict: as from verifier_check()
 *
 * Return: as verifier_check().
 */
int explain_states(const struct program *program, const struct verifier_options *options, struct text *out,
                   struct verdict *ret_verdict, struct err *err);
