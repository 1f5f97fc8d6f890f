/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "bpfvm/verifier.h"

/* What the verifier found out, in a form that a checker can go through once: for every chain of calls and every block,
 * the states at its entry; for every loop, its counter. docs/formats/bpf-certificate.md describes the file. */

#define CERTIFICATE_VERSION 1
#define CERTIFICATE_DIGEST  32

/* What a certificate is for. */
enum certificate_part {
        CERTIFICATE_PROGRAM, /* instructions after relocation, functions and context */
        CERTIFICATE_MAPS,
        CERTIFICATE_HELPERS,
        CERTIFICATE_PROFILE, /* and the right to actuate, and the table of costs */
        CERTIFICATE_PARTS
};

/* A state, and the turns of loops that it belongs to: ways from it lead to a loop's head again only in later turns, or
 * in the same if they move the loop's counter. */
struct certificate_state {
        struct certificate_state *next;
        struct state state;
        uint32_t n_turns;
        struct verifier_turn turns[];
};

struct certificate_point {
        uint32_t slot;                    /* a block's first */
        struct certificate_state *states; /* one of them holds */
        struct verifier_count *counts;
        uint32_t n_states, n_counts;
};

struct certificate_context {
        struct verifier_context chain;
        struct certificate_point *points; /* ascending by slot */
        uint32_t n_points;
        struct verifier_ending *loops; /* ascending by head */
        uint32_t n_loops;
};

struct certificate {
        uint8_t digests[CERTIFICATE_PARTS][CERTIFICATE_DIGEST];
        struct certificate_context *contexts; /* ascending by chain */
        uint32_t n_contexts;
};

void certificate_free(struct certificate *certificate);
DEFINE_CLEANUP(struct certificate *, certificate_free)
#define _cleanup_certificate_ _cleanup_(certificate_free_cleanup)

/* certificate_digests - what a certificate for this program under these options is bound to. Return: 0 or -ENOMEM. */
int certificate_digests(const struct program *program, const struct verifier_options *options,
                        uint8_t ret[CERTIFICATE_PARTS][CERTIFICATE_DIGEST], struct err *err);

/* certificate_part_name - "program", "maps", ... */
const char *certificate_part_name(enum certificate_part part);

/* certificate_make - verify a program and keep what was found out
 * @options: as for verifier_check(); its observers are not called
 *
 * Return: 0 with @ret; 1 refused, with the reason in @ret_verdict; a negative errno. @ret_verdict is set for 0 and 1.
 */
int certificate_make(const struct program *program, const struct verifier_options *options, struct certificate **ret,
                     struct verdict *ret_verdict, struct err *err);

/* certificate_to_json - the file's content; NULL if memory ran out */
json_t *certificate_to_json(const struct certificate *certificate);

/* certificate_of_json - read a file's content, which may be anything
 *
 * Return: 0; -EINVAL with what is wrong, and where, in @err (kind data); -ENOMEM.
 */
int certificate_of_json(const json_t *json, struct certificate **ret, struct err *err);

/* certificate_compare_chains - order of chains: by their calls, a chain before those that it begins; < 0, 0 or > 0 */
int certificate_compare_chains(const struct verifier_context *a, const struct verifier_context *b);

/* certificate_find - what is claimed for a chain of calls, or NULL; certificate_point_at - at a slot, or NULL */
const struct certificate_context *certificate_find(const struct certificate *certificate,
                                                   const struct verifier_context *chain);
const struct certificate_point *certificate_point_at(const struct certificate_context *context, uint32_t slot);
