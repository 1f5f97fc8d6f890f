/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bpf/gen.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/span.h"
#include "bpfvm/helper.h"
#include "bpfvm/isa.h"
#include "tests/bpf/gen-internal.h"

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

/* What is true whichever of two ways was taken. */
static void merge(struct gen_state *s, const struct gen_state *other)
{
        for (unsigned i = 0; i < ARRAY_SIZE(s->regs); i++) {
                struct gen_held *a = &s->regs[i];
                const struct gen_held *b = &other->regs[i];

                if (a->kind != b->kind || (a->kind == VALUE && (a->map != b->map || a->offset != b->offset)))
                        a->kind = NONE;
        }
        for (unsigned i = 0; i < STACK_SLOTS; i++) {
                bool has_pointer = s->slots[i].pointer.kind != NONE || other->slots[i].pointer.kind != NONE;
                const struct gen_held *a = &s->slots[i].pointer, *b = &other->slots[i].pointer;

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
        struct insn insn = {.kind = INSN_BRANCH,
                            .op = (uint8_t)gen_below(g, BRANCH_OPS),
                            .size = gen_chance(g, 50) ? 4 : 8};

        insn.dst = (uint8_t)gen_pick_scalar(g);
        if (gen_chance(g, 60)) {
                insn.flags = INSN_IMM;
                insn.imm = (int32_t)gen_number(g);
        } else {
                insn.src = (uint8_t)gen_pick_scalar(g);
        }
        return gen_emit(g, insn);
}

static void make_if(struct gen *g, unsigned depth)
{
        uint32_t branch = emit_branch(g), jump;
        struct gen_state before = g->s, then;

        make_statements(g, 1 + (unsigned)gen_below(g, 4), depth + 1);
        if (gen_chance(g, 50)) {
                g->insns[branch].target = g->n;
                merge(&g->s, &before);
                return;
        }
        jump = gen_emit(g, (struct insn){.kind = INSN_JUMP, .size = gen_chance(g, 20) ? 4 : 8});
        g->insns[branch].target = g->n;
        then = g->s;
        g->s = before;
        make_statements(g, 1 + (unsigned)gen_below(g, 4), depth + 1);
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
        struct gen_state entry;

        for (unsigned reg = 1; reg <= 5; reg++) /* helpers clobber them, and pointers could not be made again */
                if (g->s.regs[reg].kind > SCALAR && !gen_is_locked(g, reg))
                        gen_mov_imm(g, reg, (int32_t)gen_number(g));
        counter = 6 + (unsigned)gen_below(g, 4);
        if (gen_is_locked(g, counter) || g->s.regs[counter].kind > SCALAR)
                return;
        gen_mov_imm(g, counter, 1 + (int32_t)gen_below(g, 5));
        for (unsigned reg = 0; reg < 10; reg++)
                if (g->s.regs[reg].kind > SCALAR || reg == counter)
                        g->locked |= (uint16_t)(1u << reg);
        for (unsigned slot = 0; slot < STACK_SLOTS; slot++)
                if (g->s.slots[slot].pointer.kind != NONE)
                        g->locked_slots |= (uint8_t)(1u << slot);

        entry = g->s;
        head = g->n;
        g->in_loop = true;
        make_statements(g, 1 + (unsigned)gen_below(g, 4), depth + 1);
        g->in_loop = false;
        for (unsigned reg = 0; reg < 10; reg++)
                if (entry.regs[reg].kind == SCALAR && g->s.regs[reg].kind != SCALAR)
                        gen_mov_imm(g, reg, (int32_t)gen_number(g));
        for (unsigned slot = 0; slot < STACK_SLOTS; slot++)
                if (g->s.slots[slot].pointer.kind != entry.slots[slot].pointer.kind ||
                    g->s.slots[slot].is_unknown != entry.slots[slot].is_unknown) {
                        gen_emit(g, (struct insn){.kind = INSN_STORE,
                                                  .dst = 10,
                                                  .offset = -8 * (int32_t)(slot + 1),
                                                  .size = 8,
                                                  .flags = INSN_IMM});
                        g->s.slots[slot].pointer.kind = NONE;
                        g->s.slots[slot].is_unknown = false;
                        g->s.slots[slot].written = 0xff;
                }
        gen_alu_imm(g, ALU_SUB, counter, 1);
        gen_emit(g, (struct insn){.kind = INSN_BRANCH,
                                  .op = BRANCH_NE,
                                  .dst = (uint8_t)counter,
                                  .size = 8,
                                  .flags = INSN_IMM,
                                  .target = head});
        g->locked = locked;
        g->locked_slots = locked_slots;
}

/* After a call: r0 is the result, r1 to r5 are gone. */
static void after_call(struct gen *g, struct gen_held result)
{
        gen_set(g, 0, result);
        for (unsigned reg = 1; reg <= 5; reg++)
                g->s.regs[reg].kind = NONE;
}

static bool can_call(const struct gen *g)
{
        return (g->locked & 0x3f) == 0;
}

static void stack_address(struct gen *g, unsigned reg, int32_t offset)
{
        gen_mov_reg(g, reg, 10);
        gen_emit(g, (struct insn){.kind = INSN_ALU,
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

        if (gen_chance(g, 50)) {
                gen_emit(g, (struct insn){.kind = INSN_STORE,
                                          .dst = 10,
                                          .offset = KEY_OFFSET,
                                          .size = (uint8_t)size,
                                          .flags = INSN_IMM,
                                          .imm = (int64_t)gen_below(g, 6)});
        } else {
                unsigned key = gen_pick_scalar_dst(g);

                gen_alu_imm(g, ALU_AND, key, 7);
                gen_memory(g, INSN_STORE, 10, key, KEY_OFFSET, size);
        }
        gen_emit(g, (struct insn){.kind = INSN_WIDE, .op = WIDE_MAP, .dst = 1, .map = map});
        stack_address(g, 2, KEY_OFFSET);
}

static void call_helper(struct gen *g, uint32_t helper)
{
        gen_emit(g, (struct insn){.kind = INSN_CALL_HELPER, .imm = helper});
        after_call(g, gen_number_held);
}

static void make_lookup(struct gen *g, unsigned depth)
{
        unsigned map = (unsigned)gen_below(g, GEN_MAPS);
        struct gen_state missing;
        uint32_t branch, jump;

        if (!can_call(g))
                return;
        map_arguments(g, map);
        call_helper(g, HELPER_MAP_LOOKUP);
        branch = gen_emit(g,
                          (struct insn){.kind = INSN_BRANCH, .op = BRANCH_EQ, .dst = 0, .size = 8, .flags = INSN_IMM});
        missing = g->s; /* there r0 is the number 0 */
        gen_set(g, 0, (struct gen_held){.kind = VALUE, .map = (uint8_t)map});
        if (gen_chance(g, 50))
                gen_mov_reg(g, gen_pick_dst(g), 0);
        gen_make_value_access(g);
        make_statements(g, (unsigned)gen_below(g, 4), depth + 1);
        gen_make_value_access(g);
        if (gen_chance(g, 30) && !g->in_loop) {
                /* the rest of the program only where there is a value */
                struct gen_state found = g->s;

                jump = gen_emit(g, (struct insn){.kind = INSN_JUMP, .size = 8});
                g->insns[branch].target = g->n;
                gen_mov_imm(g, 0, (int32_t)gen_below(g, 100));
                gen_emit(g, (struct insn){.kind = INSN_EXIT});
                g->insns[jump].target = g->n;
                g->s = found;
                return;
        }
        g->insns[branch].target = g->n;
        merge(&g->s, &missing);
}

static void make_update(struct gen *g)
{
        unsigned map = gen_chance(g, 70) ? GEN_HASH : GEN_ARRAY, slot = (unsigned)gen_below(g, STACK_SLOTS - 1);

        if (!can_call(g))
                return;
        if (gen_chance(g, 30)) {
                map_arguments(g, map);
                call_helper(g, HELPER_MAP_DELETE);
                return;
        }
        if (g->s.slots[slot].written != 0xff || g->s.slots[slot + 1].written != 0xff ||
            g->s.slots[slot].pointer.kind != NONE || g->s.slots[slot + 1].pointer.kind != NONE)
                return;
        map_arguments(g, map);
        stack_address(g, 3, -8 * (int32_t)(slot + 2));
        gen_mov_imm(g, 4, (int32_t)gen_below(g, 3));
        call_helper(g, HELPER_MAP_UPDATE);
}

static void make_table_read(struct gen *g)
{
        unsigned reg = gen_pick_dst(g);

        gen_emit(g, (struct insn){.kind = INSN_WIDE,
                                  .op = WIDE_MAP_VALUE,
                                  .dst = (uint8_t)reg,
                                  .map = GEN_TABLE,
                                  .imm = (int64_t)gen_below(g, 8)});
        gen_memory(g, INSN_LOAD, reg, reg, 0, 1u << gen_below(g, 4));
        gen_set(g, reg, gen_number_held);
}

static void make_call(struct gen *g)
{
        unsigned callee = g->function + 1 + (unsigned)gen_below(g, FUNCTIONS);

        if (!can_call(g) || g->options->no_calls || callee > FUNCTIONS || g->n_calls == ARRAY_SIZE(g->calls))
                return;
        for (unsigned reg = 1; reg <= 3; reg++)
                if (g->s.regs[reg].kind != SCALAR)
                        gen_mov_imm(g, reg, (int32_t)gen_number(g));
        g->callees[g->n_calls] = callee;
        g->calls[g->n_calls++] = gen_emit(g, (struct insn){.kind = INSN_CALL_LOCAL});
        after_call(g, gen_number_held);
}

static void make_statement(struct gen *g, unsigned depth)
{
        uint64_t what = gen_below(g, 100);

        if (what < 30)
                gen_make_alu(g);
        else if (what < 36)
                gen_make_constant(g);
        else if (what < 40)
                gen_make_swap(g);
        else if (what < 44)
                gen_make_copy(g);
        else if (what < 54)
                gen_make_stack_store(g);
        else if (what < 62)
                gen_make_stack_load(g);
        else if (what < 66)
                gen_make_stack_atomic(g);
        else if (what < 72)
                gen_make_context_access(g);
        else if (what < 77)
                gen_make_value_access(g);
        else if (what < 80)
                gen_make_value_arith(g);
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

/* Accesses anywhere, through anything. */
static void make_wild_access(struct gen *g)
{
        unsigned reg = (unsigned)gen_below(g, 10), other = (unsigned)gen_below(g, 11), size = 1u << gen_below(g, 4);
        int32_t offset = (int32_t)gen_below(g, 48) - 24;

        switch (gen_below(g, 6)) {
        case 0:
                gen_memory(g, INSN_LOAD, reg, other, offset, size);
                break;
        case 1:
                gen_memory(g, INSN_STORE, other, reg, offset, size);
                break;
        case 2:
                gen_memory(g, INSN_LOAD, reg, 10, -(int32_t)gen_below(g, 540), size);
                break;
        case 3:
                gen_memory(g, INSN_STORE, 10, reg, -(int32_t)gen_below(g, 540), size);
                break;
        case 4:
                gen_memory(g, INSN_ATOMIC, other, reg, offset, gen_chance(g, 50) ? 4 : 8);
                break;
        default:
                gen_emit(g, (struct insn){.kind = INSN_WIDE,
                                          .op = WIDE_MAP,
                                          .dst = (uint8_t)reg,
                                          .map = (uint32_t)gen_below(g, GEN_MAPS)});
                gen_memory(g, INSN_LOAD, reg, reg, 0, 4);
                break;
        }
}

/* Operations on any registers: perhaps not initialised, perhaps pointers. */
static void make_wild_operation(struct gen *g)
{
        struct insn insn = {.dst = (uint8_t)gen_below(g, 10),
                            .src = (uint8_t)gen_below(g, 11),
                            .size = gen_chance(g, 50) ? 4 : 8};

        switch (gen_below(g, 6)) {
        case 0:
                insn.kind = INSN_ALU;
                insn.op = (uint8_t)gen_below(g, ALU_MOVSX);
                break;
        case 1:
                insn.kind = INSN_BRANCH;
                insn.op = (uint8_t)gen_below(g, BRANCH_OPS);
                insn.target = g->n + 1;
                break;
        case 2:
                insn = (struct insn){.kind = INSN_ALU,
                                     .op = ALU_LSH,
                                     .dst = insn.dst,
                                     .size = 4,
                                     .flags = INSN_IMM,
                                     .imm = 24 + (int64_t)gen_below(g, 16)};
                break;
        case 3:
                insn = (struct insn){.kind = INSN_ALU,
                                     .op = ALU_ADD,
                                     .dst = insn.dst,
                                     .size = 8,
                                     .flags = INSN_IMM,
                                     .imm = (int64_t)gen_below(g, 100000) - 50000};
                break;
        case 4:
                insn = (struct insn){.kind = INSN_CALL_HELPER, .imm = 1 + (int64_t)gen_below(g, 4)};
                break;
        default:
                insn = (struct insn){.kind = INSN_ALU, .op = ALU_MOV, .dst = 0, .src = 10, .size = 8};
                break;
        }
        gen_emit(g, insn);
}

/* A statement that a verifier has reasons to refuse, though it may be harmless where it stands. */
static void make_wild(struct gen *g)
{
        g->is_wild = true;
        if (gen_chance(g, 50))
                make_wild_access(g);
        else
                make_wild_operation(g);
}

/* All that is known goes into r0, and its upper half into the lower. */
static void make_end(struct gen *g)
{
        if (g->s.regs[0].kind != SCALAR)
                gen_mov_imm(g, 0, 1);
        for (unsigned reg = 1; reg < 10; reg++)
                if (g->s.regs[reg].kind == SCALAR) {
                        gen_alu_imm(g, ALU_MUL, 0, 31);
                        gen_emit(g, (struct insn){
                                            .kind = INSN_ALU, .op = ALU_ADD, .dst = 0, .src = (uint8_t)reg, .size = 8});
                }
        for (unsigned slot = 0; slot < STACK_SLOTS; slot++)
                if (g->s.slots[slot].written == 0xff && g->s.slots[slot].pointer.kind == NONE) {
                        gen_memory(g, INSN_LOAD, 1, 10, -8 * (int32_t)(slot + 1), 8);
                        gen_alu_imm(g, ALU_MUL, 0, 31);
                        gen_emit(g, (struct insn){.kind = INSN_ALU, .op = ALU_XOR, .dst = 0, .src = 1, .size = 8});
                }
        gen_mov_reg(g, 1, 0);
        gen_alu_imm(g, ALU_RSH, 1, 32);
        gen_emit(g, (struct insn){.kind = INSN_ALU, .op = ALU_XOR, .dst = 0, .src = 1, .size = 8});
        gen_emit(g, (struct insn){.kind = INSN_EXIT});
}

static void make_body(struct gen *g, unsigned statements)
{
        unsigned wild = g->is_wild ? (unsigned)gen_below(g, statements + 1) : UINT32_MAX;

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
                g->s = (struct gen_state){0};
                for (unsigned reg = 1; reg <= 3; reg++)
                        gen_set(g, reg, gen_number_held);
                make_body(g, 2 + (unsigned)gen_below(g, 6));
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
        g->is_wild = gen_chance(g, options->wild_percent);
        g->s.regs[1].kind = CTX;
        if (gen_chance(g, 80))
                gen_mov_reg(g, 6, 1);
        for (unsigned i = 0; i < 3; i++)
                gen_make_constant(g);
        make_body(g, options->statements / 2 + (unsigned)gen_below(g, options->statements));
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
