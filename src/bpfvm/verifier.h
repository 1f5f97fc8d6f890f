/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "bpfvm/cost.h"
#include "bpfvm/fault.h"
#include "bpfvm/profile.h"
#include "bpfvm/program.h"
#include "bpfvm/state.h"

/* Whether a program is safe, by abstract interpretation of its graph.
 *
 * Blocks are gone through in topological order, each function anew for every chain of calls that leads to it. Where
 * paths meet, states are joined so that no more than @disjuncts of them are left. So an instruction is carried out at
 * most that often for each chain of calls, whatever the branches, and each edge compares at most the square of it: both
 * bounds are known before the work begins, and the work is counted against them. In loops they grow by what may be
 * spent on turns that are kept apart, and by the passes that a loop may take to settle (verifier-loop.c). */

#define VERIFIER_DISJUNCTS     4 /* docs/method.md has the curve of what is accepted against time */
#define VERIFIER_DISJUNCTS_MAX 64
#define VERIFIER_BYTES         (UINT64_C(256) << 20)
#define VERIFIER_CONTEXTS_MAX  65536
#define VERIFIER_INSNS_MAX     UINT64_C(4000000) /* summed over chains of calls */

/* In which turn of a loop the running states are, where turns are kept apart: states of one turn lead to the head again
 * only in later turns. The loop begins at @head, in frame @frame. */
struct verifier_turn {
        uint32_t frame, head, turn;
};

#define VERIFIER_TURNS_MAX (8 * PROFILE_CALL_DEPTH)

/* A chain of calls: the slots of the calls, outermost first; and the loops around. */
struct verifier_context {
        uint32_t n;
        uint32_t calls[PROFILE_CALL_DEPTH];
        uint32_t n_turns;
        const struct verifier_turn *turns; /* borrowed for the call of an observer */
};

/* Where a number is kept: a register, or, with reg VERIFIER_STACK, @size bytes of the running frame at @offset from
 * r10. */
#define VERIFIER_STACK 10

struct verifier_place {
        uint8_t reg;
        uint8_t size;
        int16_t offset;
};

/* At the start of the block at @slot, @at holds what the counter of the loop that begins at @head was there in this
 * turn, plus @least to @most; with @is_low so far as the low 32 bits go. Within a block, with @is_up, that is in the
 * upper half of @at, and the low half is zero. */
struct verifier_count {
        uint32_t head, slot;
        struct verifier_place at;
        bool is_low;
        int64_t least, most;
        bool is_up;
};

/* Why a loop ends: each turn its counter changes by @least to @most, which have one sign, and its bounds at the head
 * allow
 * @turns jumps back to it. */
struct verifier_ending {
        uint32_t head;
        struct verifier_place counter;
        bool is_low;
        int64_t least, most;
        uint64_t turns;
};

struct verifier_options {
        const struct profile *profile;
        const struct cost_table *costs; /* NULL: the default */
        bool may_actuate;
        unsigned disjuncts;   /* 0: VERIFIER_DISJUNCTS */
        uint64_t max_bytes;   /* of states, 0: VERIFIER_BYTES */
        bool wants_costliest; /* the way that costs most */

        /* Called before each instruction with a state that holds there, once for every state; in a loop only after it
         * has settled. May be NULL. */
        void (*observe)(void *userdata, const struct verifier_context *context, uint32_t slot,
                        const struct state *state);
        /* Called for every loop that has settled, and what follows its counter. May be NULL. */
        void (*observe_ending)(void *userdata, const struct verifier_context *context,
                               const struct verifier_ending *ending);
        void (*observe_count)(void *userdata, const struct verifier_context *context,
                              const struct verifier_count *count);
        void *userdata;
};

/* One block on the way to a fault: the slot that it begins at. */
struct verifier_step {
        uint32_t slot;
        uint8_t depth; /* frames */
};

/* What was found. Everything is set when a program is accepted; of a refused one the counts say how far it got. */
struct verdict {
        struct fault fault; /* FAULT_NONE: accepted */
        bool has_loops;     /* of a profile that allows them */

        /* Refused for what is known of values: that, and blocks on one way from the entry to the instruction. */
        char *known;
        struct verifier_step *path;
        size_t n_path;

        uint64_t transfers, transfers_bound; /* instructions carried out */
        uint64_t comparisons, comparisons_bound;
        uint32_t contexts;               /* chains of calls, the entry's included */
        uint64_t state_bytes;            /* the most that states took */
        uint32_t stack_bytes;            /* the deepest chain of frames */
        uint64_t cost_ps;                /* worst case of one invocation */
        struct verifier_step *costliest; /* where asked for: blocks on the way that costs it, in the entry function */
        size_t n_costliest;
};

void verdict_done(struct verdict *verdict);
#define _cleanup_verdict_ _cleanup_(verdict_done)

/* verifier_check - check a program, which may be any that was loaded, also one with a fault
 * @ret: what was found; the caller releases it with verdict_done()
 *
 * Return: 0 accepted; 1 refused, with the reason in @ret->fault; a negative errno, and nothing is set.
 */
int verifier_check(const struct program *program, const struct verifier_options *options, struct verdict *ret,
                   struct err *err);
