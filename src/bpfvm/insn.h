/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A decoded instruction: legal by isa.h, fields widened, targets absolute. Verifier, interpreter and disassembler work
 * on this form and never look at raw bytes. A program is an array of them with one element per 8-byte slot, so that
 * slot numbers are the same everywhere; the second half of a wide load is an element of kind INSN_TAIL. */

#define INSN_REGISTERS     11
#define INSN_FRAME_POINTER 10
#define INSN_SLOT_BYTES    8

enum insn_kind {
        INSN_TAIL,   /* second half of the wide load before it; never executed, never a target */
        INSN_ALU,    /* dst = dst OP operand */
        INSN_SWAP,   /* dst = dst with bytes swapped as op says, in its low @size bytes; upper bytes zero */
        INSN_LOAD,   /* dst = *(@size *)(src + offset), sign-extended to 64 bits if INSN_SIGNED, else zero-extended */
        INSN_STORE,  /* *(@size *)(dst + offset) = operand, truncated */
        INSN_ATOMIC, /* *(@size *)(dst + offset) OP= src; with INSN_FETCH src (CMPXCHG: r0) = the old value */
        INSN_WIDE,   /* dst = a constant, a map handle or the address of a map's value */
        INSN_JUMP,   /* goto target */
        INSN_BRANCH, /* if dst OP operand goto target */
        INSN_CALL_HELPER, /* r0 = helper number imm (r1..r5); r1..r5 undefined after */
        INSN_CALL_LOCAL,  /* call the subprogram that starts at target */
        INSN_EXIT,        /* return r0 */
};

/* INSN_ALU. With @size 4 the operands are the low halves and the result is zero-extended. Shifts are masked by 8 *
 * @size - 1. Division by zero gives 0; modulo by zero leaves dst (with @size 4 its low half, zero-extended). Signed
 * division truncates towards zero; the least value divided by -1 gives itself, modulo 0. */
enum alu_op {
        ALU_ADD,
        ALU_SUB,
        ALU_MUL,
        ALU_DIV,
        ALU_MOD,
        ALU_SDIV,
        ALU_SMOD,
        ALU_OR,
        ALU_AND,
        ALU_XOR,
        ALU_LSH,
        ALU_RSH,
        ALU_ARSH,
        ALU_MOV,
        ALU_MOVSX, /* dst = the low @from bytes of src, sign-extended to @size bytes */
        ALU_NEG,   /* has no operand */
        ALU_OPS
};

enum swap_op {
        SWAP_LE,     /* host order to little endian: truncates to @size bytes here */
        SWAP_BE,     /* host order to big endian */
        SWAP_ALWAYS, /* swap whatever the host is */
};

enum branch_op {
        BRANCH_EQ,
        BRANCH_NE,
        BRANCH_GT,
        BRANCH_GE,
        BRANCH_LT,
        BRANCH_LE,
        BRANCH_SGT,
        BRANCH_SGE,
        BRANCH_SLT,
        BRANCH_SLE,
        BRANCH_SET, /* dst & operand is not 0 */
        BRANCH_OPS
};

enum atomic_op {
        ATOMIC_ADD,
        ATOMIC_OR,
        ATOMIC_AND,
        ATOMIC_XOR,
        ATOMIC_XCHG,    /* always INSN_FETCH */
        ATOMIC_CMPXCHG, /* if memory equals r0 then memory = src; r0 = the old value; always INSN_FETCH */
};

enum wide_op {
        WIDE_CONSTANT,  /* dst = imm */
        WIDE_MAP,       /* dst = handle of map number @map */
        WIDE_MAP_VALUE, /* dst = address of the first value of map number @map, plus imm */
};

enum insn_flag {
        INSN_IMM = 1,    /* the operand is imm (sign-extended), not src */
        INSN_SIGNED = 2, /* INSN_LOAD: sign-extend */
        INSN_FETCH = 4,  /* INSN_ATOMIC: return the old value */
};

struct insn {
        uint8_t kind;  /* enum insn_kind */
        uint8_t op;    /* enum of its kind, else 0 */
        uint8_t dst;   /* register; 0 where there is none */
        uint8_t src;   /* register; 0 where there is none */
        uint8_t size;  /* bytes: 4 or 8 (ALU, branch), 2, 4, 8 (swap), 1 to 8 (memory); jump 4 if far, else 8; else 0 */
        uint8_t from;  /* bytes of ALU_MOVSX's source: 1, 2 or 4; else 0 */
        uint8_t flags; /* enum insn_flag */
        uint8_t unused;
        union {
                int32_t offset;  /* memory */
                uint32_t target; /* jump, branch, local call: absolute slot */
        };
        uint32_t map; /* WIDE_MAP, WIDE_MAP_VALUE: index into the program's maps */
        int64_t imm;  /* operand sign-extended from 32 bits; WIDE_CONSTANT; helper number; offset of WIDE_MAP_VALUE */
};

/* insn_next - the slot after the instruction at @slot */
static inline uint32_t insn_next(const struct insn *insn, uint32_t slot)
{
        return slot + (insn->kind == INSN_WIDE ? 2 : 1);
}

/* insn_has_operand - whether a second operand is read (from src or imm): not for neg, unconditional jumps, ... */
bool insn_has_operand(const struct insn *insn);

/* insn_reads - bit set of the registers whose value the instruction needs; a helper call's arguments are not in it
 * (its prototype says which), a local call's arguments are not either, exit needs r0 */
uint16_t insn_reads(const struct insn *insn);

/* insn_writes - bit set of the registers that it defines; calls: r0 */
uint16_t insn_writes(const struct insn *insn);
