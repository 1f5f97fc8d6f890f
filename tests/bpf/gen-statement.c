/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/macro.h"
#include "tests/bpf/gen-internal.h"

uint64_t gen_below(struct gen *g, uint64_t n)
{
        return rng_below(g->rng, n);
}

bool gen_chance(struct gen *g, unsigned percent)
{
        return gen_below(g, 100) < percent;
}

/* Numbers at which arithmetic shows its edges, or any. */
uint64_t gen_number(struct gen *g)
{
        static const uint64_t edges[] = {0,
                                         1,
                                         2,
                                         7,
                                         8,
                                         31,
                                         32,
                                         63,
                                         64,
                                         0x7f,
                                         0x80,
                                         0xff,
                                         0x100,
                                         0x7fff,
                                         0x8000,
                                         0xffff,
                                         0x7fffffff,
                                         0x80000000,
                                         0xffffffff,
                                         0x100000000,
                                         0x7fffffffffffffff,
                                         0x8000000000000000,
                                         0xffffffff80000000,
                                         0xffffffff7fffffff,
                                         UINT64_MAX,
                                         UINT64_MAX - 1};

        switch (gen_below(g, 3)) {
        case 0:
                return edges[gen_below(g, ARRAY_SIZE(edges))];
        case 1:
                return gen_below(g, 100);
        default:
                return rng_next(g->rng) >> gen_below(g, 64);
        }
}

uint32_t gen_emit(struct gen *g, struct insn insn)
{
        if (g->n + 2 > SLOTS_MAX)
                abort();
        g->insns[g->n++] = insn;
        if (insn.kind == INSN_WIDE)
                g->insns[g->n++] = (struct insn){.kind = INSN_TAIL};
        return g->n - 1;
}

void gen_set(struct gen *g, unsigned reg, struct gen_held held)
{
        if (reg < ARRAY_SIZE(g->s.regs))
                g->s.regs[reg] = held;
}

const struct gen_held gen_number_held = {.kind = SCALAR};

void gen_mov_imm(struct gen *g, unsigned reg, int32_t imm)
{
        gen_emit(g, (struct insn){.kind = INSN_ALU,
                                  .op = ALU_MOV,
                                  .dst = (uint8_t)reg,
                                  .size = 8,
                                  .flags = INSN_IMM,
                                  .imm = imm});
        gen_set(g, reg, gen_number_held);
}

void gen_mov_reg(struct gen *g, unsigned dst, unsigned src)
{
        gen_emit(g,
                 (struct insn){.kind = INSN_ALU, .op = ALU_MOV, .dst = (uint8_t)dst, .src = (uint8_t)src, .size = 8});
        if (src < ARRAY_SIZE(g->s.regs))
                gen_set(g, dst, g->s.regs[src]);
}

void gen_alu_imm(struct gen *g, enum alu_op op, unsigned reg, int32_t imm)
{
        gen_emit(g, (struct insn){
                            .kind = INSN_ALU, .op = op, .dst = (uint8_t)reg, .size = 8, .flags = INSN_IMM, .imm = imm});
        gen_set(g, reg, gen_number_held);
}

void gen_memory(struct gen *g, enum insn_kind kind, unsigned dst, unsigned src, int32_t offset, unsigned size)
{
        gen_emit(g, (struct insn){.kind = kind,
                                  .dst = (uint8_t)dst,
                                  .src = (uint8_t)src,
                                  .offset = offset,
                                  .size = (uint8_t)size});
}

bool gen_is_locked(const struct gen *g, unsigned reg)
{
        return g->locked & 1u << reg;
}

/* A register that holds @kind, or -1. */
int gen_pick(struct gen *g, enum gen_kind kind)
{
        unsigned start = (unsigned)gen_below(g, 10);

        for (unsigned i = 0; i < 10; i++)
                if (g->s.regs[(start + i) % 10].kind == kind)
                        return (int)((start + i) % 10);
        return -1;
}

/* A register that may be written. At least one always can. */
unsigned gen_pick_dst(struct gen *g)
{
        for (;;) {
                unsigned reg = (unsigned)gen_below(g, 10);

                if (!gen_is_locked(g, reg) && (g->s.regs[reg].kind <= SCALAR || gen_chance(g, 10)))
                        return reg;
                if (gen_chance(g, 5)) {
                        for (reg = 0; reg < 10; reg++)
                                if (!gen_is_locked(g, reg))
                                        return reg;
                }
        }
}

unsigned gen_pick_scalar(struct gen *g)
{
        int reg = gen_pick(g, SCALAR);

        if (reg >= 0)
                return (unsigned)reg;
        reg = (int)gen_pick_dst(g);
        gen_mov_imm(g, (unsigned)reg, (int32_t)gen_number(g));
        return (unsigned)reg;
}

/* A scalar in a register that may be written. */
unsigned gen_pick_scalar_dst(struct gen *g)
{
        unsigned reg = gen_pick_scalar(g);

        if (gen_is_locked(g, reg)) {
                reg = gen_pick_dst(g);
                gen_mov_imm(g, reg, (int32_t)gen_number(g));
        }
        return reg;
}

void gen_make_constant(struct gen *g)
{
        unsigned reg = gen_pick_dst(g);

        if (gen_chance(g, 50)) {
                gen_mov_imm(g, reg, (int32_t)gen_number(g));
                return;
        }
        gen_emit(g, (struct insn){.kind = INSN_WIDE,
                                  .op = WIDE_CONSTANT,
                                  .dst = (uint8_t)reg,
                                  .imm = (int64_t)gen_number(g)});
        gen_set(g, reg, gen_number_held);
}

void gen_make_alu(struct gen *g)
{
        struct insn insn = {.kind = INSN_ALU, .op = (uint8_t)gen_below(g, ALU_OPS), .size = gen_chance(g, 50) ? 4 : 8};
        bool is_shift = insn.op == ALU_LSH || insn.op == ALU_RSH || insn.op == ALU_ARSH;
        bool is_division = insn.op == ALU_DIV || insn.op == ALU_MOD || insn.op == ALU_SDIV || insn.op == ALU_SMOD;

        insn.dst = (uint8_t)gen_pick_scalar_dst(g);
        if (insn.op == ALU_MOVSX)
                insn.from = (uint8_t)(1u << gen_below(g, insn.size == 8 ? 3 : 2));
        if (insn.op == ALU_NEG) {
                /* no operand */
        } else if (insn.op == ALU_MOVSX || gen_chance(g, 50)) {
                insn.src = (uint8_t)gen_pick_scalar(g);
        } else {
                insn.flags = INSN_IMM;
                insn.imm = (int32_t)gen_number(g);
                if (is_shift)
                        insn.imm = (int64_t)gen_below(g, 8u * insn.size);
                if (is_division && insn.imm == 0)
                        insn.imm = 3;
        }
        gen_emit(g, insn);
        gen_set(g, insn.dst, gen_number_held);
}

void gen_make_swap(struct gen *g)
{
        unsigned reg = gen_pick_scalar_dst(g), size = 2u << gen_below(g, 3);

        gen_emit(g, (struct insn){.kind = INSN_SWAP,
                                  .op = (uint8_t)gen_below(g, 3),
                                  .dst = (uint8_t)reg,
                                  .size = (uint8_t)size});
        gen_set(g, reg, gen_number_held);
}

/* A pointer into a register that stays until it is overwritten. */
void gen_make_copy(struct gen *g)
{
        int src = gen_pick(g, gen_chance(g, 50) ? VALUE : SCALAR);

        if (src >= 0)
                gen_mov_reg(g, gen_pick_dst(g), (unsigned)src);
}

void gen_make_stack_store(struct gen *g)
{
        unsigned slot = (unsigned)gen_below(g, STACK_SLOTS), size = 1u << gen_below(g, 4),
                 at = size * (unsigned)gen_below(g, 8 / size);
        int32_t offset = -8 * (int32_t)(slot + 1) + (int32_t)at;
        int pointer = gen_pick(g, gen_chance(g, 50) ? VALUE : CTX);

        if (g->locked_slots & 1u << slot)
                return;
        if (pointer >= 0 && gen_chance(g, 15)) {
                gen_memory(g, INSN_STORE, 10, (unsigned)pointer, -8 * (int32_t)(slot + 1), 8);
                g->s.slots[slot].written = 0;
                g->s.slots[slot].is_unknown = false;
                g->s.slots[slot].pointer = g->s.regs[pointer];
                return;
        }
        if ((g->s.slots[slot].pointer.kind != NONE || g->s.slots[slot].is_unknown) && size != 8)
                return; /* it would overwrite part of a pointer */
        if (size == 8)
                g->s.slots[slot].is_unknown = false;
        if (gen_chance(g, 30))
                gen_emit(g, (struct insn){.kind = INSN_STORE,
                                          .dst = 10,
                                          .offset = offset,
                                          .size = (uint8_t)size,
                                          .flags = INSN_IMM,
                                          .imm = (int32_t)gen_number(g)});
        else
                gen_memory(g, INSN_STORE, 10, gen_pick_scalar(g), offset, size);
        g->s.slots[slot].pointer.kind = NONE;
        g->s.slots[slot].written |= (uint8_t)(((1u << size) - 1) << at);
}

void gen_make_stack_load(struct gen *g)
{
        unsigned slot = (unsigned)gen_below(g, STACK_SLOTS), size = 1u << gen_below(g, 4),
                 at = size * (unsigned)gen_below(g, 8 / size);
        unsigned mask = ((1u << size) - 1) << at, reg = gen_pick_dst(g);
        bool is_signed = size < 8 && gen_chance(g, 30);

        if (g->s.slots[slot].pointer.kind != NONE) {
                gen_memory(g, INSN_LOAD, reg, 10, -8 * (int32_t)(slot + 1), 8);
                gen_set(g, reg, g->s.slots[slot].pointer);
                return;
        }
        if ((g->s.slots[slot].written & mask) != mask)
                return;
        gen_memory(g, INSN_LOAD, reg, 10, -8 * (int32_t)(slot + 1) + (int32_t)at, size);
        if (is_signed)
                g->insns[g->n - 1].flags = INSN_SIGNED;
        gen_set(g, reg, gen_number_held);
}

void gen_make_stack_atomic(struct gen *g)
{
        unsigned slot = (unsigned)gen_below(g, STACK_SLOTS), size = gen_chance(g, 50) ? 4 : 8;
        struct insn insn = {.kind = INSN_ATOMIC, .op = (uint8_t)gen_below(g, 6), .dst = 10, .size = (uint8_t)size};

        if (g->s.slots[slot].written != 0xff || g->s.slots[slot].pointer.kind != NONE)
                return;
        insn.offset = -8 * (int32_t)(slot + 1) + (size == 4 && gen_chance(g, 50) ? 4 : 0);
        insn.src = (uint8_t)gen_pick_scalar_dst(g);
        if (insn.op >= ATOMIC_XCHG || gen_chance(g, 50))
                insn.flags = INSN_FETCH;
        if (insn.op == ATOMIC_CMPXCHG) {
                if (gen_is_locked(g, 0))
                        return;
                if (g->s.regs[0].kind != SCALAR)
                        gen_mov_imm(g, 0, (int32_t)gen_number(g));
        }
        gen_emit(g, insn);
        if (insn.op == ATOMIC_CMPXCHG)
                gen_set(g, 0, gen_number_held);
        else if (insn.flags & INSN_FETCH)
                gen_set(g, insn.src, gen_number_held);
}

void gen_make_context_access(struct gen *g)
{
        static const int16_t fields[] = {CTX_LEN, CTX_MARK, CTX_PRIORITY, CTX_CB, CTX_CB + 4, CTX_CB + 12, CTX_CB + 16};
        int context = gen_pick(g, CTX);
        int32_t offset = fields[gen_below(g, ARRAY_SIZE(fields))];
        unsigned size = 1u << gen_below(g, 3), reg;

        if (context < 0)
                return;
        if (gen_chance(g, 30)) {
                gen_memory(g, INSN_STORE, (unsigned)context, gen_pick_scalar(g), CTX_CB + 4 * (int32_t)gen_below(g, 5),
                           4);
                return;
        }
        reg = gen_pick_dst(g);
        gen_memory(g, INSN_LOAD, reg, (unsigned)context, offset, size);
        gen_set(g, reg, gen_number_held);
}

/* An access through a pointer to a map's value, which was compared with null. */
void gen_make_value_access(struct gen *g)
{
        unsigned number = gen_pick_scalar_dst(g), size = 1u << gen_below(g, 4);
        int pointer = gen_pick(g, VALUE);
        const struct gen_held *held;
        int32_t offset;

        if (pointer < 0)
                return;
        held = &g->s.regs[pointer];
        offset = (int32_t)(gen_below(g, VALUE_BYTES / size) * size) - held->offset;
        if (held->map != GEN_TABLE && gen_chance(g, 40)) {
                gen_memory(g, INSN_STORE, (unsigned)pointer, number, offset, size);
                return;
        }
        if (held->map != GEN_TABLE && size >= 4 && gen_chance(g, 30))
                gen_emit(g, (struct insn){.kind = INSN_ATOMIC,
                                          .op = (uint8_t)gen_below(g, 5),
                                          .dst = (uint8_t)pointer,
                                          .src = (uint8_t)number,
                                          .offset = offset,
                                          .size = (uint8_t)size,
                                          .flags = INSN_FETCH});
        else
                gen_memory(g, INSN_LOAD, number, (unsigned)pointer, offset, size);
}

/* A pointer moved by a constant, and back, or read at an index that a mask bounds. */
void gen_make_value_arith(struct gen *g)
{
        int pointer = gen_pick(g, VALUE);
        unsigned index, reg;

        if (pointer < 0 || gen_is_locked(g, (unsigned)pointer))
                return;
        if (gen_chance(g, 50)) {
                int32_t by = (int32_t)gen_below(g, 9) - g->s.regs[pointer].offset;

                gen_emit(g, (struct insn){.kind = INSN_ALU,
                                          .op = ALU_ADD,
                                          .dst = (uint8_t)pointer,
                                          .size = 8,
                                          .flags = INSN_IMM,
                                          .imm = by});
                g->s.regs[pointer].offset = (int16_t)(g->s.regs[pointer].offset + by);
                return;
        }
        index = gen_pick_scalar_dst(g);
        gen_alu_imm(g, ALU_AND, index, 7);
        reg = gen_pick_dst(g);
        if (reg == index || reg == (unsigned)pointer)
                return;
        gen_mov_reg(g, reg, (unsigned)pointer);
        gen_emit(g,
                 (struct insn){.kind = INSN_ALU, .op = ALU_ADD, .dst = (uint8_t)reg, .src = (uint8_t)index, .size = 8});
        gen_memory(g, INSN_LOAD, reg, reg, -g->s.regs[pointer].offset, 1u << gen_below(g, 4));
        gen_set(g, reg, gen_number_held);
}
