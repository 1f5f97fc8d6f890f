/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpfvm/fault.h"
#include "bpfvm/profile.h"
#include "bpfvm/program.h"
#include "bpfvm/state.h"

/* What instructions do to abstract states, and what they need of them. The rules are those of the checking interpreter
 * (oracle.h): if no concrete state of an abstract one faults there, the instruction may still be refused here, but
 * never the other way round. */
struct transfer {
        const struct program *program;
        const struct profile *profile;
        bool may_actuate;
        struct state_pool *pool;
        struct fault *fault; /* why an instruction was refused */

        /* The most bytes below r10 that an access reached, by frame of the states; the caller resets and collects. */
        uint32_t frame_bytes[PROFILE_CALL_DEPTH];
};

/* transfer_entry - @state (new) becomes that at a program's first instruction */
void transfer_entry(const struct program *program, struct state *state);

/* transfer_insn - carry out one instruction that is no jump, branch, local call or exit
 *
 * Return: 0; 1 with the reason in t->fault (FAULT_STATE_LIMIT where the pool has no memory); @state is spoilt then.
 */
int transfer_insn(struct transfer *t, struct state *state, uint32_t slot);

/* transfer_branch_check - whether a branch may look at its operands. Return: 0; 1 with the reason. */
int transfer_branch_check(struct transfer *t, const struct state *state, uint32_t slot);

/* transfer_branch - narrow the state by a checked branch, @taken or passed. Return: false if it cannot go that way. */
bool transfer_branch(const struct transfer *t, struct state *state, uint32_t slot, bool taken);

/* transfer_call - enter the function that a local call leads to
 * @kept: registers that the caller reads afterwards
 *
 * Return: 0; 1 with the reason.
 */
int transfer_call(struct transfer *t, struct state *state, uint32_t slot, uint16_t kept);

/* transfer_exit - leave a function, for its caller, or the program
 *
 * Return: 0, and @state is that after the call (without frames at the program's end); 1 with the reason.
 */
int transfer_exit(struct transfer *t, struct state *state, uint32_t slot);
