/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bpfvm/audit-number.h"
#include "bpfvm/certificate.h"
#include "bpfvm/fault.h"
#include "bpfvm/profile.h"
#include "bpfvm/program.h"
#include "bpfvm/state.h"

/* The auditor's states: as those of the verifier say, but laid out flat and changed by code of their own. */

struct audit_value {
        uint8_t kind; /* enum reg_kind */
        bool may_be_null;
        uint16_t index;
        uint32_t id;
        struct audit_number n;
};

/* Eight bytes of a frame. Cell i is at r10 - 8 * (i + 1). */
struct audit_cell {
        uint8_t init;     /* bit n: byte n was written */
        uint8_t at, size; /* bytes that one store left; size 0: nothing is known of them */
        struct audit_value value;
};

#define AUDIT_CELLS (PROFILE_FRAME_BYTES / 8)

struct audit_frame {
        struct audit_cell cells[AUDIT_CELLS];
        struct audit_value kept[STATE_SAVED_REGISTERS]; /* r6 to r9, while the frame waits for a call */
};

/* What follows loops' counters: the claims of struct verifier_count, as they change along a block. */
#define AUDIT_COUNTS 64

struct audit_state {
        uint32_t depth;
        uint32_t last_id;
        struct audit_value regs[INSN_REGISTERS];
        uint32_t n_counts;
        struct verifier_count counts[AUDIT_COUNTS];
        uint32_t n_turns;
        struct verifier_turn turns[VERIFIER_TURNS_MAX]; /* of loops, in all frames: when their heads were passed last */
        struct audit_frame frames[PROFILE_CALL_DEPTH];  /* those below depth are set */
};

/* One program under audit. */
struct audit_rules {
        const struct program *program;
        const struct profile *profile;
        bool may_actuate;
        struct fault *fault;
        uint32_t deepest[PROFILE_CALL_DEPTH]; /* bytes that accesses reached below r10, by frame */
};

/* audit_state_enter - the state at the program's first instruction */
void audit_state_enter(const struct audit_rules *rules, struct audit_state *state);

/* audit_state_of - the state that a certificate claims at a point. Return: false if it makes no sense. */
bool audit_state_of(const struct audit_rules *rules, const struct certificate_state *claimed,
                    const struct verifier_count *counts, uint32_t n_counts, struct audit_state *ret);

/* audit_state_copy - copy what is set */
void audit_state_copy(struct audit_state *to, const struct audit_state *from);

/* audit_state_within - whether a state is one of those that a claim stands for */
bool audit_state_within(const struct audit_state *state, const struct state *claim);

/* audit_turn - the turn of a loop that a state is in, or NULL where that is not known */
const struct verifier_turn *audit_turn(const struct verifier_turn *turns, uint32_t n, uint32_t frame, uint32_t head);

/* audit_state_counts - whether what a claim says of a loop's counter is known. */
bool audit_state_counts(const struct audit_state *state, const struct verifier_count *claim);

/* audit_step - carry out an instruction that is no jump, branch, local call or exit. Return: 0; 1 with rules->fault. */
int audit_step(struct audit_rules *rules, struct audit_state *state, uint32_t slot);

/* audit_end_block - forget what holds within a block only */
void audit_end_block(struct audit_state *state);

/* audit_step_counts - what the instruction at @slot, which is about to be carried out, does to counters */
void audit_step_counts(const struct audit_rules *rules, struct audit_state *state, uint32_t slot);

/* audit_access - whether @size bytes may be read or written behind a register, for a helper if @is_helper
 * @ret_first, @ret_last: where the first byte may lie, from the start of what the register points into
 */
struct audit_access {
        const struct audit_value *pointer;
        uint64_t size;
        int64_t offset;
        bool is_write, is_helper;
        int64_t first, last;
};
int audit_access(struct audit_rules *rules, uint32_t slot, struct audit_access *access);

/* audit_read_stack - whether all bytes of a checked access of the stack may be read as data. Return: 0; 1. */
int audit_read_stack(struct audit_rules *rules, const struct audit_state *state, uint32_t slot,
                     const struct audit_access *access);

/* audit_helper - a helper's call. Return: 0; 1. */
int audit_helper(struct audit_rules *rules, struct audit_state *state, uint32_t slot);

/* audit_check_branch, audit_branch - as a branch may look at its operands; narrow by it, or false where it cannot go */
int audit_check_branch(struct audit_rules *rules, const struct audit_state *state, uint32_t slot);
bool audit_branch(const struct audit_rules *rules, struct audit_state *state, uint32_t slot, bool taken);

/* audit_call, audit_exit - into a function, and out of one or the program (depth 0). Return: 0; 1. */
int audit_call(struct audit_rules *rules, struct audit_state *state, uint32_t slot);
int audit_exit(struct audit_rules *rules, struct audit_state *state, uint32_t slot);
