/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bpfvm/store.h"
#include "bpfvm/verifier.h"

/* An input on which a refused program really does what it was refused for: the checking interpreter, run on it, ends in
 * a fault of the same kind at the same instruction. */

#define COUNTEREXAMPLE_WORDS   8 /* answers of the outside world */
#define COUNTEREXAMPLE_ENTRIES 16

/* How long to search: until either is spent. 0 sets no limit, and not both may be 0. */
struct counterexample_effort {
        int64_t ns;     /* by the monotonic clock */
        uint64_t steps; /* instructions, an input counting as COUNTEREXAMPLE_INPUT_STEPS more; the same on every machine
                         */
};

#define COUNTEREXAMPLE_NS          INT64_C(50000000) /* for a person who waits for the answer */
#define COUNTEREXAMPLE_INPUT_STEPS 32

/* A value that a map holds when the program starts. */
struct counterexample_entry {
        uint32_t map;
        uint8_t *key, *value; /* key_size and value_size bytes */
};

struct counterexample {
        uint8_t *context; /* program->context.size bytes */
        struct counterexample_entry *entries;
        uint32_t n_entries;
        /* What helpers that ask the world (time, random numbers, levels of lines) answer, one after the other, and then
         * from the beginning again. */
        uint64_t words[COUNTEREXAMPLE_WORDS];
        uint32_t n_words;   /* that were asked for */
        uint64_t steps;     /* instructions until the fault */
        uint64_t tries;     /* inputs that were run until it was found */
        struct fault fault; /* as the interpreter put it */
};

void counterexample_free(struct counterexample *c);
DEFINE_CLEANUP(struct counterexample *, counterexample_free)
#define _cleanup_counterexample_ _cleanup_(counterexample_free_cleanup)

/* counterexample_is_due - whether a refusal is for what happens at run time, so that there can be one */
bool counterexample_is_due(enum fault_kind kind);

/* counterexample_find - search for one
 * @options:  those of the check
 * @verdict:  of the refusal; its path guides the search
 * @seed:     of what is drawn
 *
 * Return: 1 with @ret; 0 if none was found, which proves nothing; a negative errno.
 */
int counterexample_find(const struct program *program, const struct verifier_options *options,
                        const struct verdict *verdict, const struct counterexample_effort *effort, uint64_t seed,
                        struct counterexample **ret, struct err *err);

/* counterexample_replay - run the program on it
 * @fault: what it ends in; kind FAULT_NONE if it does not fault
 *
 * Return: 0, or a negative errno.
 */
int counterexample_replay(const struct program *program, const struct verifier_options *options,
                          const struct counterexample *c, struct fault *fault, struct err *err);
