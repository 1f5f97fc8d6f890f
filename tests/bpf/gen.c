/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bpf/gen.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/span.h"
#include "bpfvm/helper.h"
#include "bpfvm/isa.h"

#define SLOTS_MAX   4096
#define STACK_SLOTS 8 /* 8-byte slots below r10 that programs use; keys for maps lie below them */
#define KEY_OFFSET  (-8 * (STACK_SLOTS + 1))
#define VALUE_BYTES 16
#define FUNCTIONS   3

#define CTX_LEN      0
#define CTX_MARK     8
#define CTX_PRIORITY 32
#define CTX_CB       48

static const uint8_t table[VALUE_BYTES] = {3, 1, 4, 1, 5, 0xf9, 2, 6, 5, 3, 5, 0x88, 9, 7, 9, 0xff};

const struct map_def gen_maps[GEN_MAPS] = {
        {.name = "array", .kind = MAP_ARRAY, .key_size = 4, .value_size = VALUE_BYTES, .max_entries = 4},
        {.name = "hash", .kind = MAP_HASH, .key_size = 8, .value_size = VALUE_BYTES, .max_entries = 8},
        {.name = "table",
         .kind = MAP_ARRAY,
         .key_size = 4,
         .value_size = VALUE_BYTES,
         .max_entries = 1,
         .is_read_only = true,
         .initial = {table, VALUE_BYTES}},
};

enum kind { NONE, SCALAR, CTX, VALUE };

struct held {
        uint8_t kind;
        uint8_t map;    /* VALUE */
        int16_t offset; /* VALUE: what was added to it */
};

struct state {
        struct held regs[10];
        struct {
                uint8_t written; /* bit set of its bytes that hold data */
                bool is_unknown; /* on some way here it holds a pointer: only to be overwritten whole */
                struct held pointer;
        } slots[STACK_SLOTS];
};

struct gen {
        struct rng *rng;
        const struct gen_options *options;
        struct insn insns[SLOTS_MAX];
        uint32_t n;
        struct state s;
        uint16_t locked;      /* registers that may not be written now */
        uint8_t locked_slots; /* stack slots, likewise */
        bool in_loop, is_function, is_wild;
        unsigned function; /* the one being made, counted from 1; it may call those above it */
        uint32_t function_at[FUNCTIONS + 1];
        uint32_t calls[64], callees[64];
        unsigned n_calls;
};

static uint64_t below(struct gen *g, uint64_t n)
{
        return rng_below(g->rng, n);
}

static bool chance(struct gen *g, unsigned percent)
{
        return below(g, 100) < percent;
}

/* Numbers at which arithmetic shows its edges, or any. */
static uint64_t number(struct gen *g)
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

        switch (below(g, 3)) {
        case 0:
                return edges[below(g, ARRAY_SIZE(edges))];
        case 1:
                return below(g, 100);
        default:
                return rng_next(g->rng) >> below(g, 64);
        }
}

static uint32_t emit(struct gen *g, struct insn insn)
{
        if (g->n + 2 > SLOTS_MAX)
                abort();
        g->insns[g->n++] = insn;
        if (insn.kind == INSN_WIDE)
                g->insns[g->n++] = (struct insn){.kind = INSN_TAIL};
        return g->n - 1;
}

static void set(struct gen *g, unsigned reg, struct held held)
{
        if (reg < ARRAY_SIZE(g->s.regs))
                g->s.regs[reg] = held;
}

static const struct held number_held = {.kind = SCALAR};

static void mov_imm(struct gen *g, unsigned reg, int32_t imm)
{
        emit(g,
             (struct insn){
                     .kind = INSN_ALU, .op = ALU_MOV, .dst = (uint8_t)reg, .size = 8, .flags = INSN_IMM, .imm = imm});
        set(g, reg, number_held);
}

static void mov_reg(struct gen *g, unsigned dst, unsigned src)
{
        emit(g, (struct insn){.kind = INSN_ALU, .op = ALU_MOV, .dst = (uint8_t)dst, .src = (uint8_t)src, .size = 8});
        if (src < ARRAY_SIZE(g->s.regs))
                set(g, dst, g->s.regs[src]);
}

static void alu_imm(struct gen *g, enum alu_op op, unsigned reg, int32_t imm)
{
        emit(g,
             (struct insn){.kind = INSN_ALU, .op = op, .dst = (uint8_t)reg, .size = 8, .flags = INSN_IMM, .imm = imm});
        set(g, reg, number_held);
}

static void memory(struct gen *g, enum insn_kind kind, unsigned dst, unsigned src, int32_t offset, unsigned size)
{
        emit(g,
             (struct insn){
                     .kind = kind, .dst = (uint8_t)dst, .src = (uint8_t)src, .offset = offset, .size = (uint8_t)size});
}

static bool is_locked(const struct gen *g, unsigned reg)
{
        return g->locked & 1u << reg;
}

/* A register that holds @kind, or -1. */
static int pick(struct gen *g, enum kind kind)
{
        unsigned start = (unsigned)below(g, 10);

        for (unsigned i = 0; i < 10; i++)
                if (g->s.regs[(start + i) % 10].kind == kind)
                        return (int)((start + i) % 10);
        return -1;
}

/* A register that may be written. At least one always can. */
static unsigned pick_dst(struct gen *g)
{
        for (;;) {
                unsigned reg = (unsigned)below(g, 10);

                if (!is_locked(g, reg) && (g->s.regs[reg].kind <= SCALAR || chance(g, 10)))
                        return reg;
                if (chance(g, 5)) {
                        for (reg = 0; reg < 10; reg++)
                                if (!is_locked(g, reg))
                                        return reg;
                }
        }
}

static unsigned pick_scalar(struct gen *g)
{
        int reg = pick(g, SCALAR);

        if (reg >= 0)
                return (unsigned)reg;
        reg = (int)pick_dst(g);
        mov_imm(g, (unsigned)reg, (int32_t)number(g));
        return (unsigned)reg;
}

/* A scalar in a register that may be written. */
static unsigned pick_scalar_dst(struct gen *g)
{
        unsigned reg = pick_scalar(g);

        if (is_locked(g, reg)) {
                reg = pick_dst(g);
                mov_imm(g, reg, (int32_t)number(g));
        }
        return reg;
}

static void make_constant(struct gen *g)
{
        unsigned reg = pick_dst(g);

        if (chance(g, 50)) {
                mov_imm(g, reg, (int32_t)number(g));
                return;
        }
        emit(g, (struct insn){.kind = INSN_WIDE, .op = WIDE_CONSTANT, .dst = (uint8_t)reg, .imm = (int64_t)number(g)});
        set(g, reg, number_held);
}

static void make_alu(struct gen *g)
{
        struct insn insn = {.kind = INSN_ALU, .op = (uint8_t)below(g, ALU_OPS), .size = chance(g, 50) ? 4 : 8};
        bool is_shift = insn.op == ALU_LSH || insn.op == ALU_RSH || insn.op == ALU_ARSH;
        bool is_division = insn.op == ALU_DIV || insn.op == ALU_MOD || insn.op == ALU_SDIV || insn.op == ALU_SMOD;

        insn.dst = (uint8_t)pick_scalar_dst(g);
        if (insn.op == ALU_MOVSX)
                insn.from = (uint8_t)(1u << below(g, insn.size == 8 ? 3 : 2));
        if (insn.op == ALU_NEG) {
                /* no operand */
        } else if (insn.op == ALU_MOVSX || chance(g, 50)) {
                insn.src = (uint8_t)pick_scalar(g);
        } else {
                insn.flags = INSN_IMM;
                insn.imm = (int32_t)number(g);
                if (is_shift)
                        insn.imm = (int64_t)below(g, 8u * insn.size);
                if (is_division && insn.imm == 0)
                        insn.imm = 3;
        }
        emit(g, insn);
        set(g, insn.dst, number_held);
}

static void make_swap(struct gen *g)
{
        unsigned reg = pick_scalar_dst(g), size = 2u << below(g, 3);

        emit(g,
             (struct insn){.kind = INSN_SWAP, .op = (uint8_t)below(g, 3), .dst = (uint8_t)reg, .size = (uint8_t)size});
        set(g, reg, number_held);
}

/* A pointer into a register that stays until it is overwritten. */
static void make_copy(struct gen *g)
{
        int src = pick(g, chance(g, 50) ? VALUE : SCALAR);

        if (src >= 0)
                mov_reg(g, pick_dst(g), (unsigned)src);
}

static void make_stack_store(struct gen *g)
{
        unsigned slot = (unsigned)below(g, STACK_SLOTS), size = 1u << below(g, 4),
                 at = size * (unsigned)below(g, 8 / size);
        int32_t offset = -8 * (int32_t)(slot + 1) + (int32_t)at;
        int pointer = pick(g, chance(g, 50) ? VALUE : CTX);

        if (g->locked_slots & 1u << slot)
                return;
        if (pointer >= 0 && chance(g, 15)) {
                memory(g, INSN_STORE, 10, (unsigned)pointer, -8 * (int32_t)(slot + 1), 8);
                g->s.slots[slot].written = 0;
                g->s.slots[slot].is_unknown = false;
                g->s.slots[slot].pointer = g->s.regs[pointer];
                return;
        }
        if ((g->s.slots[slot].pointer.kind != NONE || g->s.slots[slot].is_unknown) && size != 8)
                return; /* it would overwrite part of a pointer */
        if (size == 8)
                g->s.slots[slot].is_unknown = false;
        if (chance(g, 30))
                emit(g, (struct insn){.kind = INSN_STORE,
                                      .dst = 10,
                                      .offset = offset,
                                      .size = (uint8_t)size,
                                      .flags = INSN_IMM,
                                      .imm = (int32_t)number(g)});
        else
                memory(g, INSN_STORE, 10, pick_scalar(g), offset, size);
        g->s.slots[slot].pointer.kind = NONE;
        g->s.slots[slot].written |= (uint8_t)(((1u << size) - 1) << at);
}

static void make_stack_load(struct gen *g)
{
        unsigned slot = (unsigned)below(g, STACK_SLOTS), size = 1u << below(g, 4),
                 at = size * (unsigned)below(g, 8 / size);
        unsigned mask = ((1u << size) - 1) << at, reg = pick_dst(g);
        bool is_signed = size < 8 && chance(g, 30);

        if (g->s.slots[slot].pointer.kind != NONE) {
                memory(g, INSN_LOAD, reg, 10, -8 * (int32_t)(slot + 1), 8);
                set(g, reg, g->s.slots[slot].pointer);
                return;
        }
        if ((g->s.slots[slot].written & mask) != mask)
                return;
        memory(g, INSN_LOAD, reg, 10, -8 * (int32_t)(slot + 1) + (int32_t)at, size);
        if (is_signed)
                g->insns[g->n - 1].flags = INSN_SIGNED;
        set(g, reg, number_held);
}

static void make_stack_atomic(struct gen *g)
{
        unsigned slot = (unsigned)below(g, STACK_SLOTS), size = chance(g, 50) ? 4 : 8;
        struct insn insn = {.kind = INSN_ATOMIC, .op = (uint8_t)below(g, 6), .dst = 10, .size = (uint8_t)size};

        if (g->s.slots[slot].written != 0xff || g->s.slots[slot].pointer.kind != NONE)
                return;
        insn.offset = -8 * (int32_t)(slot + 1) + (size == 4 && chance(g, 50) ? 4 : 0);
        insn.src = (uint8_t)pick_scalar_dst(g);
        if (insn.op >= ATOMIC_XCHG || chance(g, 50))
                insn.flags = INSN_FETCH;
        if (insn.op == ATOMIC_CMPXCHG) {
                if (is_locked(g, 0))
                        return;
                if (g->s.regs[0].kind != SCALAR)
                        mov_imm(g, 0, (int32_t)number(g));
        }
        emit(g, insn);
        if (insn.op == ATOMIC_CMPXCHG)
                set(g, 0, number_held);
        else if (insn.flags & INSN_FETCH)
                set(g, insn.src, number_held);
}

static void make_context_access(struct gen *g)
{
        static const int16_t fields[] = {CTX_LEN, CTX_MARK, CTX_PRIORITY, CTX_CB, CTX_CB + 4, CTX_CB + 12, CTX_CB + 16};
        int context = pick(g, CTX);
        int32_t offset = fields[below(g, ARRAY_SIZE(fields))];
        unsigned size = 1u << below(g, 3), reg;

        if (context < 0)
                return;
        if (chance(g, 30)) {
                memory(g, INSN_STORE, (unsigned)context, pick_scalar(g), CTX_CB + 4 * (int32_t)below(g, 5), 4);
                return;
        }
        reg = pick_dst(g);
        memory(g, INSN_LOAD, reg, (unsigned)context, offset, size);
        set(g, reg, number_held);
}

/* An access through a pointer to a map's value, which was compared with null. */
static void make_value_access(struct gen *g)
{
        unsigned number = pick_scalar_dst(g), size = 1u << below(g, 4);
        int pointer = pick(g, VALUE);
        const struct held *held;
        int32_t offset;

        if (pointer < 0)
                return;
        held = &g->s.regs[pointer];
        offset = (int32_t)(below(g, VALUE_BYTES / size) * size) - held->offset;
        if (held->map != GEN_TABLE && chance(g, 40)) {
                memory(g, INSN_STORE, (unsigned)pointer, number, offset, size);
                return;
        }
        if (held->map != GEN_TABLE && size >= 4 && chance(g, 30))
                emit(g, (struct insn){.kind = INSN_ATOMIC,
                                      .op = (uint8_t)below(g, 5),
                                      .dst = (uint8_t)pointer,
                                      .src = (uint8_t)number,
                                      .offset = offset,
                                      .size = (uint8_t)size,
                                      .flags = INSN_FETCH});
        else
                memory(g, INSN_LOAD, number, (unsigned)pointer, offset, size);
}

/* A pointer moved by a constant, and back, or read at an index that a mask bounds. */
static void make_value_arith(struct gen *g)
{
        int pointer = pick(g, VALUE);
        unsigned index, reg;

        if (pointer < 0 || is_locked(g, (unsigned)pointer))
                return;
        if (chance(g, 50)) {
                int32_t by = (int32_t)below(g, 9) - g->s.regs[pointer].offset;

                emit(g, (struct insn){.kind = INSN_ALU,
                                      .op = ALU_ADD,
                                      .dst = (uint8_t)pointer,
                                      .size = 8,
                                      .flags = INSN_IMM,
                                      .imm = by});
                g->s.regs[pointer].offset = (int16_t)(g->s.regs[pointer].offset + by);
                return;
        }
        index = pick_scalar_dst(g);
        alu_imm(g, ALU_AND, index, 7);
        reg = pick_dst(g);
        if (reg == index || reg == (unsigned)pointer)
                return;
        mov_reg(g, reg, (unsigned)pointer);
        emit(g, (struct insn){.kind = INSN_ALU, .op = ALU_ADD, .dst = (uint8_t)reg, .src = (uint8_t)index, .size = 8});
        memory(g, INSN_LOAD, reg, reg, -g->s.regs[pointer].offset, 1u << below(g, 4));
        set(g, reg, number_held);
}

/* What is true whichever of two ways was taken. */
static void merge(struct state *s, const struct state *other)
{
        for (unsigned i = 0; i < ARRAY_SIZE(s->regs); i++) {
                struct held *a = &s->regs[i];
                const struct held *b = &other->regs[i];

                if (a->kind != b->kind || (a->kind == VALUE && (a->map != b->map || a->offset != b->offset)))
                        a->kind = NONE;
        }
        for (unsigned i = 0; i < STACK_SLOTS; i++) {
                bool has_pointer = s->slots[i].pointer.kind != NONE || other->slots[i].pointer.kind != NONE;
                const struct held *a = &s->slots[i].pointer, *b = &other->slots[i].pointer;

                s->slots[i].written &= other->slots[i].written;
                s->slots[i].is_unknown |= other->slots[i].is_unknown;
                if (has_pointer && (a->kind != b->kind || a->map != b->map || a->offset != b->offset)) {
                        s->slots[i].written = 0;
                        s->slots[i].is_unknown = true;
                        s->slots[i].pointer.kind = NONE;
                }
        }
}

static void make_statements(struct gen *g, unsigned n, unsigned depth);

static uint32_t emit_branch(struct gen *g)
{
        struct insn insn = {.kind = INSN_BRANCH, .op = (uint8_t)below(g, BRANCH_OPS), .size = chance(g, 50) ? 4 : 8};

        insn.dst = (uint8_t)pick_scalar(g);
        if (chance(g, 60)) {
                insn.flags = INSN_IMM;
                insn.imm = (int32_t)number(g);
        } else {
                insn.src = (uint8_t)pick_scalar(g);
        }
        return emit(g, insn);
}

static void make_if(struct gen *g, unsigned depth)
{
        uint32_t branch = emit_branch(g), jump;
        struct state before = g->s, then;

        make_statements(g, 1 + (unsigned)below(g, 4), depth + 1);
        if (chance(g, 50)) {
                g->insns[branch].target = g->n;
                merge(&g->s, &before);
                return;
        }
        jump = emit(g, (struct insn){.kind = INSN_JUMP, .size = chance(g, 20) ? 4 : 8});
        g->insns[branch].target = g->n;
        then = g->s;
        g->s = before;
        make_statements(g, 1 + (unsigned)below(g, 4), depth + 1);
        g->insns[jump].target = g->n;
        merge(&g->s, &then);
}

/* A loop of a few turns: its counter is not touched in the body, and what held a number before does so again at the
 * end. */
static void make_loop(struct gen *g, unsigned depth)
{
        uint16_t locked = g->locked;
        uint8_t locked_slots = g->locked_slots;
        unsigned counter;
        uint32_t head;
        struct state entry;

        for (unsigned reg = 1; reg <= 5; reg++) /* helpers clobber them, and pointers could not be made again */
                if (g->s.regs[reg].kind > SCALAR && !is_locked(g, reg))
                        mov_imm(g, reg, (int32_t)number(g));
        counter = 6 + (unsigned)below(g, 4);
        if (is_locked(g, counter) || g->s.regs[counter].kind > SCALAR)
                return;
        mov_imm(g, counter, 1 + (int32_t)below(g, 5));
        for (unsigned reg = 0; reg < 10; reg++)
                if (g->s.regs[reg].kind > SCALAR || reg == counter)
                        g->locked |= (uint16_t)(1u << reg);
        for (unsigned slot = 0; slot < STACK_SLOTS; slot++)
                if (g->s.slots[slot].pointer.kind != NONE)
                        g->locked_slots |= (uint8_t)(1u << slot);

        entry = g->s;
        head = g->n;
        g->in_loop = true;
        make_statements(g, 1 + (unsigned)below(g, 4), depth + 1);
        g->in_loop = false;
        for (unsigned reg = 0; reg < 10; reg++)
                if (entry.regs[reg].kind == SCALAR && g->s.regs[reg].kind != SCALAR)
                        mov_imm(g, reg, (int32_t)number(g));
        for (unsigned slot = 0; slot < STACK_SLOTS; slot++)
                if (g->s.slots[slot].pointer.kind != entry.slots[slot].pointer.kind ||
                    g->s.slots[slot].is_unknown != entry.slots[slot].is_unknown) {
                        emit(g, (struct insn){.kind = INSN_STORE,
                                              .dst = 10,
                                              .offset = -8 * (int32_t)(slot + 1),
                                              .size = 8,
                                              .flags = INSN_IMM});
                        g->s.slots[slot].pointer.kind = NONE;
                        g->s.slots[slot].is_unknown = false;
                        g->s.slots[slot].written = 0xff;
                }
        alu_imm(g, ALU_SUB, counter, 1);
        emit(g, (struct insn){.kind = INSN_BRANCH,
                              .op = BRANCH_NE,
                              .dst = (uint8_t)counter,
                              .size = 8,
                              .flags = INSN_IMM,
                              .target = head});
        g->locked = locked;
        g->locked_slots = locked_slots;
}

/* After a call: r0 is the result, r1 to r5 are gone. */
static void after_call(struct gen *g, struct held result)
{
        set(g, 0, result);
        for (unsigned reg = 1; reg <= 5; reg++)
                g->s.regs[reg].kind = NONE;
}

static bool can_call(const struct gen *g)
{
        return (g->locked & 0x3f) == 0;
}

static void stack_address(struct gen *g, unsigned reg, int32_t offset)
{
        mov_reg(g, reg, 10);
        emit(g, (struct insn){.kind = INSN_ALU,
                              .op = ALU_ADD,
                              .dst = (uint8_t)reg,
                              .size = 8,
                              .flags = INSN_IMM,
                              .imm = offset});
        g->s.regs[reg].kind = NONE;
}

/* r1 = map, r2 = address of a key, which is a small number or one that a mask bounds */
static void map_arguments(struct gen *g, unsigned map)
{
        unsigned size = map == GEN_HASH ? 8 : 4;

        if (chance(g, 50)) {
                emit(g, (struct insn){.kind = INSN_STORE,
                                      .dst = 10,
                                      .offset = KEY_OFFSET,
                                      .size = (uint8_t)size,
                                      .flags = INSN_IMM,
                                      .imm = (int64_t)below(g, 6)});
        } else {
                unsigned key = pick_scalar_dst(g);

                alu_imm(g, ALU_AND, key, 7);
                memory(g, INSN_STORE, 10, key, KEY_OFFSET, size);
        }
        emit(g, (struct insn){.kind = INSN_WIDE, .op = WIDE_MAP, .dst = 1, .map = map});
        stack_address(g, 2, KEY_OFFSET);
}

static void call_helper(struct gen *g, uint32_t helper)
{
        emit(g, (struct insn){.kind = INSN_CALL_HELPER, .imm = helper});
        after_call(g, number_held);
}

static void make_lookup(struct gen *g, unsigned depth)
{
        unsigned map = (unsigned)below(g, GEN_MAPS);
        struct state missing;
        uint32_t branch, jump;

        if (!can_call(g))
                return;
        map_arguments(g, map);
        call_helper(g, HELPER_MAP_LOOKUP);
        branch = emit(g, (struct insn){.kind = INSN_BRANCH, .op = BRANCH_EQ, .dst = 0, .size = 8, .flags = INSN_IMM});
        missing = g->s; /* there r0 is the number 0 */
        set(g, 0, (struct held){.kind = VALUE, .map = (uint8_t)map});
        if (chance(g, 50))
                mov_reg(g, pick_dst(g), 0);
        make_value_access(g);
        make_statements(g, (unsigned)below(g, 4), depth + 1);
        make_value_access(g);
        if (chance(g, 30) && !g->in_loop) {
                /* the rest of the program only where there is a value */
                struct state found = g->s;

                jump = emit(g, (struct insn){.kind = INSN_JUMP, .size = 8});
                g->insns[branch].target = g->n;
                mov_imm(g, 0, (int32_t)below(g, 100));
                emit(g, (struct insn){.kind = INSN_EXIT});
                g->insns[jump].target = g->n;
                g->s = found;
                return;
        }
        g->insns[branch].target = g->n;
        merge(&g->s, &missing);
}

static void make_update(struct gen *g)
{
        unsigned map = chance(g, 70) ? GEN_HASH : GEN_ARRAY, slot = (unsigned)below(g, STACK_SLOTS - 1);

        if (!can_call(g))
                return;
        if (chance(g, 30)) {
                map_arguments(g, map);
                call_helper(g, HELPER_MAP_DELETE);
                return;
        }
        if (g->s.slots[slot].written != 0xff || g->s.slots[slot + 1].written != 0xff ||
            g->s.slots[slot].pointer.kind != NONE || g->s.slots[slot + 1].pointer.kind != NONE)
                return;
        map_arguments(g, map);
        stack_address(g, 3, -8 * (int32_t)(slot + 2));
        mov_imm(g, 4, (int32_t)below(g, 3));
        call_helper(g, HELPER_MAP_UPDATE);
}

static void make_table_read(struct gen *g)
{
        unsigned reg = pick_dst(g);

        emit(g, (struct insn){.kind = INSN_WIDE,
                              .op = WIDE_MAP_VALUE,
                              .dst = (uint8_t)reg,
                              .map = GEN_TABLE,
                              .imm = (int64_t)below(g, 8)});
        memory(g, INSN_LOAD, reg, reg, 0, 1u << below(g, 4));
        set(g, reg, number_held);
}

static void make_call(struct gen *g)
{
        unsigned callee = g->function + 1 + (unsigned)below(g, FUNCTIONS);

        if (!can_call(g) || g->options->no_calls || callee > FUNCTIONS || g->n_calls == ARRAY_SIZE(g->calls))
                return;
        for (unsigned reg = 1; reg <= 3; reg++)
                if (g->s.regs[reg].kind != SCALAR)
                        mov_imm(g, reg, (int32_t)number(g));
        g->callees[g->n_calls] = callee;
        g->calls[g->n_calls++] = emit(g, (struct insn){.kind = INSN_CALL_LOCAL});
        after_call(g, number_held);
}

static void make_wild(struct gen *g);

static void make_statement(struct gen *g, unsigned depth)
{
        uint64_t what = below(g, 100);

        if (what < 30)
                make_alu(g);
        else if (what < 36)
                make_constant(g);
        else if (what < 40)
                make_swap(g);
        else if (what < 44)
                make_copy(g);
        else if (what < 54)
                make_stack_store(g);
        else if (what < 62)
                make_stack_load(g);
        else if (what < 66)
                make_stack_atomic(g);
        else if (what < 72)
                make_context_access(g);
        else if (what < 77)
                make_value_access(g);
        else if (what < 80)
                make_value_arith(g);
        else if (what < 82)
                make_table_read(g);
        else if (what < 84)
                make_call(g);
        else if (what < 87)
                make_update(g);
        else if (what < 90 && depth < 3)
                make_lookup(g, depth);
        else if (what < 98 && depth < 3)
                make_if(g, depth);
        else if (depth < 2 && !g->in_loop && !g->options->no_loops)
                make_loop(g, depth);
}

static void make_statements(struct gen *g, unsigned n, unsigned depth)
{
        for (unsigned i = 0; i < n && g->n < SLOTS_MAX / 4; i++)
                make_statement(g, depth);
}

/* Statements that a verifier has reasons to refuse, though some are harmless where they stand. */
static void make_wild(struct gen *g)
{
        unsigned reg = (unsigned)below(g, 10), other = (unsigned)below(g, 11), size = 1u << below(g, 4);
        int32_t offset = (int32_t)below(g, 48) - 24;

        g->is_wild = true;
        switch (below(g, 12)) {
        case 0: /* any registers: perhaps not initialised, perhaps pointers */
                emit(g, (struct insn){.kind = INSN_ALU,
                                      .op = (uint8_t)below(g, ALU_MOVSX),
                                      .dst = (uint8_t)reg,
                                      .src = (uint8_t)other,
                                      .size = chance(g, 50) ? 4 : 8});
                break;
        case 1:
                memory(g, INSN_LOAD, reg, other, offset, size);
                break;
        case 2:
                memory(g, INSN_STORE, other, reg, offset, size);
                break;
        case 3:
                memory(g, INSN_LOAD, reg, 10, -(int32_t)below(g, 540), size);
                break;
        case 4:
                memory(g, INSN_STORE, 10, reg, -(int32_t)below(g, 540), size);
                break;
        case 5:
                mov_reg(g, 0, 10);
                break;
        case 6:
                emit(g, (struct insn){.kind = INSN_CALL_HELPER, .imm = 1 + (int64_t)below(g, 4)});
                break;
        case 7:
                emit(g, (struct insn){.kind = INSN_BRANCH,
                                      .op = (uint8_t)below(g, BRANCH_OPS),
                                      .dst = (uint8_t)reg,
                                      .src = (uint8_t)other,
                                      .size = chance(g, 50) ? 4 : 8,
                                      .target = g->n + 1});
                break;
        case 8:
                emit(g, (struct insn){.kind = INSN_ALU,
                                      .op = ALU_LSH,
                                      .dst = (uint8_t)reg,
                                      .size = 4,
                                      .flags = INSN_IMM,
                                      .imm = 24 + (int64_t)below(g, 16)});
                break;
        case 9:
                emit(g, (struct insn){.kind = INSN_ATOMIC,
                                      .op = ATOMIC_ADD,
                                      .dst = (uint8_t)other,
                                      .src = (uint8_t)reg,
                                      .offset = offset,
                                      .size = chance(g, 50) ? 4 : 8});
                break;
        case 10:
                emit(g, (struct insn){.kind = INSN_ALU,
                                      .op = ALU_ADD,
                                      .dst = (uint8_t)reg,
                                      .size = 8,
                                      .flags = INSN_IMM,
                                      .imm = (int64_t)below(g, 100000) - 50000});
                break;
        default:
                emit(g, (struct insn){.kind = INSN_WIDE,
                                      .op = WIDE_MAP,
                                      .dst = (uint8_t)reg,
                                      .map = (uint32_t)below(g, GEN_MAPS)});
                memory(g, INSN_LOAD, reg, reg, 0, 4);
                break;
        }
}

/* All that is known goes into r0, and its upper half into the lower. */
static void make_end(struct gen *g)
{
        if (g->s.regs[0].kind != SCALAR)
                mov_imm(g, 0, 1);
        for (unsigned reg = 1; reg < 10; reg++)
                if (g->s.regs[reg].kind == SCALAR) {
                        alu_imm(g, ALU_MUL, 0, 31);
                        emit(g,
                             (struct insn){.kind = INSN_ALU, .op = ALU_ADD, .dst = 0, .src = (uint8_t)reg, .size = 8});
                }
        for (unsigned slot = 0; slot < STACK_SLOTS; slot++)
                if (g->s.slots[slot].written == 0xff && g->s.slots[slot].pointer.kind == NONE) {
                        memory(g, INSN_LOAD, 1, 10, -8 * (int32_t)(slot + 1), 8);
                        alu_imm(g, ALU_MUL, 0, 31);
                        emit(g, (struct insn){.kind = INSN_ALU, .op = ALU_XOR, .dst = 0, .src = 1, .size = 8});
                }
        mov_reg(g, 1, 0);
        alu_imm(g, ALU_RSH, 1, 32);
        emit(g, (struct insn){.kind = INSN_ALU, .op = ALU_XOR, .dst = 0, .src = 1, .size = 8});
        emit(g, (struct insn){.kind = INSN_EXIT});
}

static void make_body(struct gen *g, unsigned statements)
{
        unsigned wild = g->is_wild ? (unsigned)below(g, statements + 1) : UINT32_MAX;

        for (unsigned i = 0; i < statements; i++) {
                if (i == wild)
                        make_wild(g);
                make_statements(g, 1, 0);
        }
        if (wild == statements)
                make_wild(g);
        make_end(g);
}

/* The functions that are called, each of which may call those after it. */
static void make_functions(struct gen *g)
{
        bool is_wild = g->is_wild;

        for (unsigned f = 1; f <= FUNCTIONS; f++) {
                bool is_called = false;

                for (unsigned c = 0; c < g->n_calls; c++)
                        is_called |= g->callees[c] == f;
                if (!is_called)
                        continue;
                g->function_at[f] = g->n;
                g->function = f;
                g->is_wild = false;
                g->s = (struct state){0};
                for (unsigned reg = 1; reg <= 3; reg++)
                        set(g, reg, number_held);
                make_body(g, 2 + (unsigned)below(g, 6));
        }
        g->is_wild = is_wild;
        for (unsigned c = 0; c < g->n_calls; c++)
                g->insns[g->calls[c]].target = g->function_at[g->callees[c]];
}

static void encode(const struct gen *g, uint8_t **ret, size_t *ret_len)
{
        uint8_t *bytes = calloc(g->n, INSN_SLOT_BYTES);

        if (!bytes)
                abort();
        for (uint32_t i = 0; i < g->n; i++) {
                struct isa_slot slots[2];
                int n;

                if (g->insns[i].kind == INSN_TAIL)
                        continue;
                n = isa_encode(&g->insns[i], i, slots);
                if (n < 0)
                        abort(); /* the generator made something that has no encoding */
                for (int k = 0; k < n; k++)
                        isa_slot_put(slots[k], bytes + (i + (unsigned)k) * INSN_SLOT_BYTES);
        }
        *ret = bytes;
        *ret_len = (size_t)g->n * INSN_SLOT_BYTES;
}

void gen_program(struct rng *rng, const struct gen_options *options, uint8_t **ret, size_t *ret_len, bool *ret_is_wild)
{
        struct gen *g = calloc(1, sizeof(*g));

        if (!g)
                abort();
        g->rng = rng;
        g->options = options;
        g->is_wild = chance(g, options->wild_percent);
        g->s.regs[1].kind = CTX;
        if (chance(g, 80))
                mov_reg(g, 6, 1);
        for (unsigned i = 0; i < 3; i++)
                make_constant(g);
        make_body(g, options->statements / 2 + (unsigned)below(g, options->statements));
        make_functions(g);
        encode(g, ret, ret_len);
        *ret_is_wild = g->is_wild;
        free(g);
}

void gen_context(struct rng *rng, uint8_t context[static GEN_CONTEXT_BYTES])
{
        memset(context, 0, GEN_CONTEXT_BYTES);
        put_le32(context + CTX_LEN, GEN_PACKET_BYTES - 14); /* a socket filter does not see the Ethernet header */
        put_le32(context + CTX_MARK, (uint32_t)rng_next(rng));
        put_le32(context + CTX_PRIORITY, (uint32_t)rng_next(rng));
        for (unsigned i = 0; i < 5; i++)
                put_le32(context + CTX_CB + 4 * i, (uint32_t)rng_next(rng));
}
