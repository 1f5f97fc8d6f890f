/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

struct run;

/* Proofs that were given before, by what they depend on; see prove.h. Whatever does not work means that there is none.
 */

/* What the lines about positive controls begin with. */
#define PROOF_CONTROL "control "
#define PROOF_MARKER  PROOF_CONTROL "from inside"

/* proof_cache_get - whether there is one for a run like this; its attempts go into the run's bundle */
bool proof_cache_get(const struct run *run);

/* proof_cache_put - keep one
 * @record: a line for each attempt: "NAME: what came of it"
 */
void proof_cache_put(const struct run *run, const char *record);
