/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bpfvm/insn.h"
#include "tests/bpf/gen.h"

/* The parts of the generator: gen-statement.c has what single statements are made of, and statements without branches;
 * gen.c has control flow, maps and functions, and puts programs together. */

#define SLOTS_MAX   4096
#define STACK_SLOTS 8 /* 8-byte slots below r10 that programs use; keys for maps lie below them */
#define KEY_OFFSET  (-8 * (STACK_SLOTS + 1))
#define VALUE_BYTES 16
#define FUNCTIONS   3

#define CTX_LEN      0
#define CTX_MARK     8
#define CTX_PRIORITY 32
#define CTX_CB       48

/* What the generator knows that a register or a stack slot holds: nothing it could use, a number, the context, or the
 * address of a map's value that was compared with null. */
enum gen_kind { NONE, SCALAR, CTX, VALUE };

struct gen_held {
        uint8_t kind;
        uint8_t map;    /* VALUE */
        int16_t offset; /* VALUE: what was added to it */
};

struct gen_state {
        struct gen_held regs[10];
        struct {
                uint8_t written; /* bit set of its bytes that hold data */
                bool is_unknown; /* on some way here it holds a pointer: only to be overwritten whole */
                struct gen_held pointer;
        } slots[STACK_SLOTS];
};

struct gen {
        struct rng *rng;
        const struct gen_options *options;
        struct insn insns[SLOTS_MAX];
        uint32_t n;
        struct gen_state s;
        uint16_t locked;      /* registers that may not be written now */
        uint8_t locked_slots; /* stack slots, likewise */
        bool in_loop, is_wild;
        unsigned function; /* the one being made, counted from 1; it may call those above it */
        uint32_t function_at[FUNCTIONS + 1];
        uint32_t calls[64], callees[64];
        unsigned n_calls;
};

extern const struct gen_held gen_number_held;

/* Chance: below @n; so many percent; numbers at which arithmetic shows its edges, or any. */
uint64_t gen_below(struct gen *g, uint64_t n);
bool gen_chance(struct gen *g, unsigned percent);
uint64_t gen_number(struct gen *g);
/* Append an instruction, and note what it leaves in a register. gen_emit() returns the last slot. */
uint32_t gen_emit(struct gen *g, struct insn insn);
void gen_set(struct gen *g, unsigned reg, struct gen_held held);
void gen_mov_imm(struct gen *g, unsigned reg, int32_t imm);
void gen_mov_reg(struct gen *g, unsigned dst, unsigned src);
void gen_alu_imm(struct gen *g, enum alu_op op, unsigned reg, int32_t imm);
void gen_memory(struct gen *g, enum insn_kind kind, unsigned dst, unsigned src, int32_t offset, unsigned size);
/* A register: one that holds a kind (-1 if none does), one that may be written, one with a number (made if there is
 * none), one with a number that may be written. */
bool gen_is_locked(const struct gen *g, unsigned reg);
int gen_pick(struct gen *g, enum gen_kind kind);
unsigned gen_pick_dst(struct gen *g);
unsigned gen_pick_scalar(struct gen *g);
unsigned gen_pick_scalar_dst(struct gen *g);
/* One statement each; nothing where what it needs is not there. */
void gen_make_constant(struct gen *g);
void gen_make_alu(struct gen *g);
void gen_make_swap(struct gen *g);
void gen_make_copy(struct gen *g);
void gen_make_stack_store(struct gen *g);
void gen_make_stack_load(struct gen *g);
void gen_make_stack_atomic(struct gen *g);
void gen_make_context_access(struct gen *g);
void gen_make_value_access(struct gen *g);
void gen_make_value_arith(struct gen *g);
