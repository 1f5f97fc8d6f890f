/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/transfer.h"

#include <inttypes.h>

#include "base/macro.h"
#include "bpfvm/transfer-internal.h"

static struct reg frame_pointer(unsigned frame)
{
        struct scalar end = scalar_const(0);

        return (struct reg){.kind = REG_STACK, .index = (uint16_t)frame, .value = end};
}

void transfer_entry(const struct program *program, struct state *state)
{
        state->depth = 1;
        state->regs[1] = reg_const(0);
        if (program->context.size > 0)
                state->regs[1].kind = REG_CONTEXT;
        state->regs[INSN_FRAME_POINTER] = frame_pointer(0);
}

static int refuse_uninit(const struct transfer *t, uint32_t slot, unsigned reg)
{
        return fault_set(t->fault, FAULT_UNINIT_REGISTER, slot, "reads r%u, which was not written on every path here",
                         reg);
}

static int refuse_arith(const struct transfer *t, uint32_t slot, const struct reg *reg, const char *what)
{
        return fault_set(t->fault, FAULT_POINTER_ARITH, slot, "%s %s", what, reg_kind_name(reg));
}

static bool may_be_pointer(const struct reg *reg)
{
        return reg->kind != REG_SCALAR;
}

/* The only arithmetic that pointers have: plus or minus a number, in 64 bits. */
static int pointer_arith(const struct transfer *t, struct state *state, uint32_t slot, const struct reg *operand)
{
        const struct insn *insn = &t->program->insns[slot];
        struct reg *dst = &state->regs[insn->dst], moved;
        const struct reg *pointer = may_be_pointer(dst) ? dst : operand;
        const struct reg *number = pointer == dst ? operand : dst;

        if (insn->size != 8 || (insn->op != ALU_ADD && insn->op != ALU_SUB))
                return refuse_arith(t, slot, pointer, "an operation that pointers do not have, on");
        if (may_be_pointer(number))
                return refuse_arith(t, slot, number, "arithmetic of two pointers; the second is");
        if (insn->op == ALU_SUB && pointer != dst)
                return refuse_arith(t, slot, pointer, "subtracts, from a number,");
        if (pointer->kind == REG_MAP || pointer->kind == REG_MIXED || pointer->may_be_null)
                return refuse_arith(t, slot, pointer, "arithmetic on");

        moved = *pointer;
        scalar_alu(&moved.value, insn->op, &number->value, false);
        *dst = moved;
        return 0;
}

/* dst = src; copies of an unknown number are known as such. */
static void move(struct state *state, unsigned dst, unsigned src)
{
        reg_forget_shift(&state->regs[src]);
        transfer_share(state, &state->regs[src]);
        state->regs[dst] = state->regs[src];
}

/* The low half of a number whose upper half is zero is the number itself. */
static int move_low(const struct transfer *t, struct state *state, uint32_t slot)
{
        const struct insn *insn = &t->program->insns[slot];
        struct reg *src = &state->regs[insn->src];

        if (may_be_pointer(src))
                return refuse_arith(t, slot, src, "moves part of");
        if (src->value.word.umax <= UINT32_MAX) {
                move(state, insn->dst, insn->src);
                return 0;
        }
        state->regs[insn->dst] = reg_scalar(&src->value);
        scalar_zero_extend(&state->regs[insn->dst].value, 32);
        return 0;
}

static int move_signed(const struct transfer *t, struct state *state, uint32_t slot)
{
        const struct insn *insn = &t->program->insns[slot];
        struct reg *src = &state->regs[insn->src];

        if (may_be_pointer(src))
                return refuse_arith(t, slot, src, "moves part of");
        state->regs[insn->dst] = reg_scalar(&src->value);
        scalar_sign_extend(&state->regs[insn->dst].value, insn->from * 8u, insn->size == 4);
        return 0;
}

static bool is_zero_of_itself(enum alu_op op)
{
        return op == ALU_SUB || op == ALU_XOR || op == ALU_MOD || op == ALU_SMOD;
}

static int alu_by_register(const struct transfer *t, struct state *state, uint32_t slot)
{
        const struct insn *insn = &t->program->insns[slot];
        struct reg *dst = &state->regs[insn->dst], *src = &state->regs[insn->src];

        if (src->kind == REG_UNINIT)
                return refuse_uninit(t, slot, insn->src);
        if (insn->op == ALU_MOV && insn->size == 8) {
                move(state, insn->dst, insn->src);
                return 0;
        }
        if (insn->op == ALU_MOV)
                return move_low(t, state, slot);
        if (insn->op == ALU_MOVSX)
                return move_signed(t, state, slot);
        if (dst->kind == REG_UNINIT)
                return refuse_uninit(t, slot, insn->dst);
        if (may_be_pointer(dst) || may_be_pointer(src))
                return pointer_arith(t, state, slot, src);
        if (dst == src && is_zero_of_itself(insn->op))
                dst->value = scalar_const(0);
        else
                scalar_alu(&dst->value, insn->op, &src->value, insn->size == 4);
        dst->id = dst->index = 0;
        return 0;
}

/* By 32 bits left, and back: what does not change a number leaves it the copy that it was. */
static void shift_by_half(struct reg *dst, enum alu_op op)
{
        const struct range *word = &dst->value.word;
        uint16_t fits = 0;

        if (op == ALU_LSH && dst->index == 0) {
                fits |= word->umax <= UINT32_MAX ? REG_SHIFTED_UNSIGNED : 0;
                fits |= word->smin >= INT32_MIN && word->smax <= INT32_MAX ? REG_SHIFTED_SIGNED : 0;
        } else if (op != ALU_LSH && dst->index & (op == ALU_RSH ? REG_SHIFTED_UNSIGNED : REG_SHIFTED_SIGNED)) {
                dst->index = 0;
                return;
        }
        dst->index = fits;
        dst->id = fits ? dst->id : 0;
}

static int alu_by_constant(const struct transfer *t, struct state *state, uint32_t slot)
{
        const struct insn *insn = &t->program->insns[slot];
        struct reg *dst = &state->regs[insn->dst];

        if (insn->op == ALU_MOV) {
                *dst = (struct reg){.kind = REG_SCALAR};
                scalar_set(&dst->value, insn->size == 4 ? (uint32_t)insn->imm : (uint64_t)insn->imm);
                return 0;
        }
        if (dst->kind == REG_UNINIT)
                return refuse_uninit(t, slot, insn->dst);
        if (may_be_pointer(dst)) {
                struct reg operand = reg_const((uint64_t)insn->imm);

                return pointer_arith(t, state, slot, &operand);
        }
        if (insn->imm == 32 && dst->id != 0 && insn->size == 8 && insn->op >= ALU_LSH && insn->op <= ALU_ARSH)
                shift_by_half(dst, insn->op);
        else
                dst->id = dst->index = 0;
        scalar_alu_const(&dst->value, insn->op, (uint64_t)insn->imm, insn->size == 4);
        return 0;
}

static int swap(const struct transfer *t, struct state *state, uint32_t slot)
{
        const struct insn *insn = &t->program->insns[slot];
        struct reg *dst = &state->regs[insn->dst];

        if (dst->kind == REG_UNINIT)
                return refuse_uninit(t, slot, insn->dst);
        if (may_be_pointer(dst))
                return refuse_arith(t, slot, dst, "swaps the bytes of");
        /* The host that runs programs is little endian, as they are. */
        if (insn->op == SWAP_LE)
                scalar_zero_extend(&dst->value, insn->size * 8u);
        else
                scalar_swap(&dst->value, insn->size);
        dst->id = dst->index = 0;
        return 0;
}

static void load_wide(const struct transfer *t, struct state *state, uint32_t slot)
{
        const struct insn *insn = &t->program->insns[slot];
        struct reg *dst = &state->regs[insn->dst];

        *dst = reg_const(insn->op == WIDE_MAP ? 0 : (uint64_t)insn->imm);
        dst->index = (uint16_t)insn->map;
        if (insn->op != WIDE_CONSTANT)
                dst->kind = insn->op == WIDE_MAP ? REG_MAP : REG_VALUE;
}

int transfer_insn(struct transfer *t, struct state *state, uint32_t slot)
{
        const struct insn *insn = &t->program->insns[slot];

        switch ((enum insn_kind)insn->kind) {
        case INSN_ALU:
                if (insn->op == ALU_NEG || insn->flags & INSN_IMM)
                        return alu_by_constant(t, state, slot);
                return alu_by_register(t, state, slot);
        case INSN_SWAP:
                return swap(t, state, slot);
        case INSN_LOAD:
                return transfer_load(t, state, slot);
        case INSN_STORE:
                return transfer_store(t, state, slot);
        case INSN_ATOMIC:
                return transfer_atomic(t, state, slot);
        case INSN_WIDE:
                load_wide(t, state, slot);
                return 0;
        case INSN_CALL_HELPER:
                return transfer_helper(t, state, slot);
        case INSN_TAIL:
        case INSN_JUMP:
        case INSN_BRANCH:
        case INSN_CALL_LOCAL:
        case INSN_EXIT:
                break;
        }
        return 0;
}

int transfer_branch_check(struct transfer *t, const struct state *state, uint32_t slot)
{
        const struct insn *insn = &t->program->insns[slot];
        const struct reg *dst = &state->regs[insn->dst], *src = &state->regs[insn->src];
        bool is_null_check = insn->flags & INSN_IMM && insn->imm == 0 && insn->size == 8 &&
                             (insn->op == BRANCH_EQ || insn->op == BRANCH_NE);

        if (dst->kind == REG_UNINIT)
                return refuse_uninit(t, slot, insn->dst);
        if (!(insn->flags & INSN_IMM) && src->kind == REG_UNINIT)
                return refuse_uninit(t, slot, insn->src);
        if (may_be_pointer(dst) && !is_null_check)
                return fault_set(t->fault, FAULT_POINTER_COMPARE, slot,
                                 "compares r%u, %s, otherwise than with 0 for equality in 64 bits", insn->dst,
                                 reg_kind_name(dst));
        if (!(insn->flags & INSN_IMM) && may_be_pointer(src))
                return fault_set(t->fault, FAULT_POINTER_COMPARE, slot, "compares a number with r%u, %s", insn->src,
                                 reg_kind_name(src));
        return 0;
}

/* Every register and slot that has @id becomes @to. */
static void replace_copies(struct state *state, uint32_t id, const struct reg *to)
{
        for (unsigned reg = 0; reg < INSN_FRAME_POINTER; reg++)
                if (state->regs[reg].kind != REG_UNINIT && state->regs[reg].id == id)
                        state->regs[reg] = *to;
        for (size_t i = 0; i < state->n_slots; i++)
                if (state->slots[i].size > 0 && state->slots[i].value.id == id)
                        state->slots[i].value = *to;
}

/* Whether a pointer cannot be 0 as a number: it points into what it belongs to, or just behind. */
static bool is_not_null(const struct transfer *t, const struct reg *reg)
{
        const struct range *offset = &reg->value.word;

        switch ((enum reg_kind)reg->kind) {
        case REG_CONTEXT:
                return offset->smin >= 0 && offset->smax <= t->program->context.size;
        case REG_STACK:
                return offset->smin >= -PROFILE_FRAME_BYTES && offset->smax <= 0;
        case REG_VALUE:
                return offset->smin >= 0 && offset->smax <= t->program->maps[reg->index].value_size;
        case REG_MAP:
                return true;
        default:
                return false;
        }
}

/* A pointer, or what may be one, compared with 0. */
static bool branch_on_null(const struct transfer *t, struct state *state, const struct reg *pointer, bool is_null)
{
        struct reg known = *pointer;

        if (pointer->kind == REG_MIXED)
                return true;
        if (!pointer->may_be_null)
                return !is_null || !is_not_null(t, pointer);
        if (is_null) {
                known = reg_const(0);
        } else {
                known.may_be_null = false;
                known.id = 0;
        }
        replace_copies(state, pointer->id, &known);
        return true;
}

/* Whether a branch on an immediate holds of a known number. */
static bool holds(const struct insn *insn, uint64_t value)
{
        unsigned bits = insn->size * 8u;

        return scalar_holds(insn->op, value & width_mask(bits), (uint64_t)insn->imm & width_mask(bits), bits);
}

bool transfer_branch(const struct transfer *t, struct state *state, uint32_t slot, bool taken)
{
        const struct insn *insn = &t->program->insns[slot];
        struct reg *dst = &state->regs[insn->dst], *src = &state->regs[insn->src];
        struct scalar constant;

        for (unsigned reg = 0; reg < INSN_FRAME_POINTER; reg++)
                reg_forget_shift(&state->regs[reg]);
        if (may_be_pointer(dst))
                return branch_on_null(t, state, dst, (insn->op == BRANCH_EQ) == taken);
        if (insn->flags & INSN_IMM) {
                if (scalar_is_const(&dst->value))
                        return holds(insn, dst->value.tnum.value) == taken;
                constant = scalar_const((uint64_t)insn->imm);
                if (!scalar_refine(&dst->value, &constant, insn->op, taken, insn->size == 4))
                        return false;
        } else {
                if (!scalar_refine(&dst->value, &src->value, insn->op, taken, insn->size == 4))
                        return false;
                if (src->id != 0)
                        replace_copies(state, src->id, src);
        }
        if (dst->id != 0)
                replace_copies(state, dst->id, dst);
        return true;
}

int transfer_call(struct transfer *t, struct state *state, uint32_t slot, uint16_t kept)
{
        if (state->depth == PROFILE_CALL_DEPTH)
                return fault_set(t->fault, FAULT_CALL_DEPTH, slot, "is a call from frame %d, the last",
                                 PROFILE_CALL_DEPTH);
        for (unsigned i = 0; i < STATE_SAVED_REGISTERS; i++) {
                struct reg *reg = &state->regs[6 + i];
                struct slot *saved;

                if (reg->kind != REG_UNINIT && kept >> (6 + i) & 1) {
                        saved = state_insert(t->pool, state, STATE_SAVED(state->depth - 1, i));
                        if (!saved)
                                return fault_set(t->fault, FAULT_STATE_LIMIT, slot, "no memory is left for states");
                        saved->init = 0xff;
                        saved->size = 8;
                        saved->value = *reg;
                }
                reg->kind = REG_UNINIT;
        }
        state->regs[0].kind = REG_UNINIT;
        state->regs[INSN_FRAME_POINTER] = frame_pointer(state->depth);
        state->depth++;
        return 0;
}

/* Back in the caller's frame: its registers again, and its r0 is the callee's. */
static void leave(struct state *state)
{
        unsigned caller = state->depth - 2u;

        state_drop_frame(state);
        for (unsigned reg = 1; reg < INSN_FRAME_POINTER; reg++)
                state->regs[reg].kind = REG_UNINIT;
        for (unsigned i = 0; i < STATE_SAVED_REGISTERS; i++) {
                struct slot *saved = state_find(state, STATE_SAVED(caller, i));

                if (saved)
                        state->regs[6 + i] = saved->value;
        }
        state->regs[INSN_FRAME_POINTER] = frame_pointer(caller);
        /* What was kept stands at the end of the caller's slots, which are now the last. */
        while (state->n_slots > 0 && state->slots[state->n_slots - 1].place >= STATE_SAVED(caller, 0))
                state->n_slots--;
}

int transfer_exit(struct transfer *t, struct state *state, uint32_t slot)
{
        const struct reg *r0 = &state->regs[0];

        if (state->depth > 1) {
                if (r0->kind == REG_MIXED || (r0->kind == REG_STACK && r0->index == state->depth - 1))
                        return fault_set(t->fault, FAULT_POINTER_LEAK, slot,
                                         "returns %s into the frame of the function that ends",
                                         r0->kind == REG_MIXED ? "what may be a pointer" : "a pointer");
                leave(state);
                return 0;
        }
        if (r0->kind == REG_UNINIT)
                return refuse_uninit(t, slot, 0);
        if (may_be_pointer(r0))
                return fault_set(t->fault, FAULT_POINTER_LEAK, slot, "returns r0, %s; the result has to be a number",
                                 reg_kind_name(r0));
        state->depth = 0;
        return 0;
}
