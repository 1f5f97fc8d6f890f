/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/macro.h"
#include "bpfvm/audit-state.h"

static int refuse(struct audit_rules *rules, enum fault_kind kind, uint32_t slot, unsigned reg,
                  const struct audit_value *value)
{
        const struct reg named = {.kind = value->kind, .may_be_null = value->may_be_null};

        return fault_set(rules->fault, kind, slot, "r%u is %s", reg, reg_kind_name(&named));
}

static bool is_pointer(const struct audit_value *v)
{
        return v->kind != REG_SCALAR && v->kind != REG_UNINIT;
}

static struct audit_value number(const struct audit_number *n)
{
        return (struct audit_value){.kind = REG_SCALAR, .n = *n};
}

/* A number that was shifted left by 32 bits is the one with its id shifted; only shifting it back makes use of that. */
static void forget_shift(struct audit_value *v)
{
        if (v->kind == REG_SCALAR && v->index != 0)
                v->id = v->index = 0;
}

/* By 32 bits left and back again: what the number had fitted in between leaves it the copy that it was. */
static void shift_by_half(struct audit_value *dst, enum alu_op op, const struct audit_number *result)
{
        const struct audit_bounds *b = &dst->n.word;
        uint16_t fits = 0;
        bool is_back = (op == ALU_RSH && dst->index & REG_SHIFTED_UNSIGNED) ||
                       (op == ALU_ARSH && dst->index & REG_SHIFTED_SIGNED);

        if (op == ALU_LSH && dst->index == 0 && b->umax <= UINT32_MAX)
                fits |= REG_SHIFTED_UNSIGNED;
        if (op == ALU_LSH && dst->index == 0 && b->smin >= INT32_MIN && b->smax <= INT32_MAX)
                fits |= REG_SHIFTED_SIGNED;
        *dst = (struct audit_value){.kind = REG_SCALAR,
                                    .index = fits,
                                    .id = fits != 0 || is_back ? dst->id : 0,
                                    .n = *result};
}

void audit_end_block(struct audit_state *state)
{
        for (unsigned reg = 0; reg < INSN_FRAME_POINTER; reg++)
                forget_shift(&state->regs[reg]);
}

/* From now on known by an id, so that a copy can be told to be one. */
static void share(struct audit_state *state, struct audit_value *v)
{
        forget_shift(v);
        if (v->kind == REG_SCALAR && v->id == 0 && !audit_number_is_const(&v->n))
                v->id = ++state->last_id;
}

static int step_alu(struct audit_rules *rules, struct audit_state *state, uint32_t slot)
{
        const struct insn *insn = &rules->program->insns[slot];
        bool by_register = insn->op != ALU_NEG && !(insn->flags & INSN_IMM);
        bool is_move = insn->op == ALU_MOV || insn->op == ALU_MOVSX;
        struct audit_value *dst = &state->regs[insn->dst], *src = &state->regs[insn->src], operand;
        struct audit_number constant = audit_number_const((uint64_t)insn->imm);

        if (by_register && src->kind == REG_UNINIT)
                return refuse(rules, FAULT_UNINIT_REGISTER, slot, insn->src, src);
        if (!is_move && dst->kind == REG_UNINIT)
                return refuse(rules, FAULT_UNINIT_REGISTER, slot, insn->dst, dst);
        if (by_register && insn->op == ALU_MOV && (insn->size == 8 || src->n.maybe <= UINT32_MAX))
                share(state, src);
        operand = by_register ? *src : number(&constant);
        forget_shift(&operand);

        if (is_move && is_pointer(&operand) && (insn->size != 8 || insn->op == ALU_MOVSX))
                return refuse(rules, FAULT_POINTER_ARITH, slot, insn->src, src);
        if (insn->op == ALU_MOV) {
                *dst = operand;
                dst->n = audit_number_extend(&operand.n, insn->size, false, 8);
                if (insn->size == 4 && operand.n.maybe > UINT32_MAX)
                        dst->id = 0;
                return 0;
        }
        if (insn->op == ALU_MOVSX) {
                *dst = number(&operand.n);
                dst->n = audit_number_extend(&operand.n, insn->from, true, insn->size);
                return 0;
        }
        if (is_pointer(dst) || is_pointer(&operand)) {
                struct audit_value *pointer = is_pointer(dst) ? dst : &operand;
                bool adds = insn->op == ALU_ADD && is_pointer(dst) != is_pointer(&operand);
                bool subtracts = insn->op == ALU_SUB && is_pointer(dst) && !is_pointer(&operand);

                if (insn->size != 8 || !(adds || subtracts) || pointer->kind == REG_MAP || pointer->kind == REG_MIXED ||
                    pointer->may_be_null)
                        return refuse(rules, FAULT_POINTER_ARITH, slot, insn->dst, pointer);
                pointer->n = audit_number_alu(insn->op, &dst->n, &operand.n, 8);
                *dst = *pointer;
                return 0;
        }
        if (by_register && insn->src == insn->dst &&
            (insn->op == ALU_SUB || insn->op == ALU_XOR || insn->op == ALU_MOD || insn->op == ALU_SMOD))
                constant = audit_number_const(0);
        else
                constant = audit_number_alu(insn->op, &dst->n, &operand.n, insn->size);
        if (!by_register && insn->imm == 32 && dst->id != 0 && insn->size == 8 && insn->op >= ALU_LSH &&
            insn->op <= ALU_ARSH)
                shift_by_half(dst, insn->op, &constant);
        else
                *dst = number(&constant);
        return 0;
}

static int step_swap(struct audit_rules *rules, struct audit_state *state, uint32_t slot)
{
        const struct insn *insn = &rules->program->insns[slot];
        struct audit_value *dst = &state->regs[insn->dst];
        struct audit_number n;

        if (dst->kind != REG_SCALAR)
                return refuse(rules, dst->kind == REG_UNINIT ? FAULT_UNINIT_REGISTER : FAULT_POINTER_ARITH, slot,
                              insn->dst, dst);
        n = insn->op == SWAP_LE ? audit_number_extend(&dst->n, insn->size, false, 8)
                                : audit_number_swap(&dst->n, insn->size);
        *dst = number(&n);
        return 0;
}

static void step_wide(const struct audit_rules *rules, struct audit_state *state, uint32_t slot)
{
        const struct insn *insn = &rules->program->insns[slot];
        struct audit_number n = audit_number_const(insn->op == WIDE_MAP ? 0 : (uint64_t)insn->imm);
        struct audit_value *dst = &state->regs[insn->dst];

        *dst = number(&n);
        if (insn->op == WIDE_CONSTANT)
                return;
        dst->kind = insn->op == WIDE_MAP ? REG_MAP : REG_VALUE;
        dst->index = (uint16_t)insn->map;
}

static int lies_in(struct audit_rules *rules, uint32_t slot, struct audit_access *a, int64_t from, int64_t to)
{
        __int128 first = (__int128)a->pointer->n.word.smin + a->offset;
        __int128 last = (__int128)a->pointer->n.word.smax + a->offset;

        if (first < from || last + (__int128)a->size > to)
                return fault_set(rules->fault, FAULT_BOUNDS, slot,
                                 "%" PRIu64 " bytes need not lie at offsets %" PRIi64 " to %" PRIi64, a->size, from,
                                 to - 1);
        a->first = (int64_t)first;
        a->last = (int64_t)last;
        return 0;
}

static bool is_aligned(const struct audit_access *a)
{
        struct audit_number offset = audit_number_const((uint64_t)a->offset);
        struct audit_number at = audit_number_alu(ALU_ADD, &a->pointer->n, &offset, 8);

        return (at.maybe & (a->size - 1)) == 0;
}

static int access_context(struct audit_rules *rules, uint32_t slot, struct audit_access *a)
{
        const struct context_def *def = &rules->program->context;

        for (size_t i = 0; i < def->n_ranges; i++) {
                const struct context_range *range = &def->ranges[i];

                if (lies_in(rules, slot, a, range->offset, (int64_t)range->offset + range->size))
                        continue;
                if (a->is_helper && range->is_aligned)
                        return fault_set(rules->fault, FAULT_HELPER_ARGUMENT, slot, "fields of the context as memory");
                if (range->is_aligned && !is_aligned(a))
                        return fault_set(rules->fault, FAULT_ALIGNMENT, slot, "a field of the context");
                if (a->is_write && !range->is_writable)
                        return fault_set(rules->fault, FAULT_READ_ONLY, slot, "the context is read only there");
                return 0;
        }
        return lies_in(rules, slot, a, 0, 0);
}

int audit_access(struct audit_rules *rules, uint32_t slot, struct audit_access *a)
{
        const struct map_def *map;
        int r;

        switch ((enum reg_kind)a->pointer->kind) {
        case REG_CONTEXT:
                return access_context(rules, slot, a);
        case REG_STACK:
                r = lies_in(rules, slot, a, -PROFILE_FRAME_BYTES, 0);
                if (r == 0)
                        rules->deepest[a->pointer->index] = MAX(rules->deepest[a->pointer->index], (uint32_t)-a->first);
                return r;
        case REG_VALUE:
                map = &rules->program->maps[a->pointer->index];
                if (a->pointer->may_be_null)
                        return fault_set(rules->fault, FAULT_NULL, slot, "the pointer may be null");
                if (a->is_write && map->is_read_only)
                        return fault_set(rules->fault, FAULT_READ_ONLY, slot, "map %s is read only", map->name);
                return lies_in(rules, slot, a, 0, map->value_size);
        case REG_UNINIT:
                return fault_set(rules->fault, FAULT_UNINIT_REGISTER, slot, "the pointer was not written");
        case REG_MAP:
        case REG_MIXED:
        case REG_SCALAR:
                break;
        }
        if (a->is_helper)
                return fault_set(rules->fault, FAULT_HELPER_ARGUMENT, slot, "a helper's memory is no pointer to any");
        return fault_set(rules->fault, a->pointer->kind == REG_MAP ? FAULT_NO_ACCESS : FAULT_NOT_POINTER, slot,
                         "an access through what is no pointer to memory");
}

/* The cell that byte @at (below 0, from r10) lies in, and the byte's number in it. */
static struct audit_cell *cell_at(const struct audit_state *state, uint32_t frame, int64_t at, unsigned *ret_byte)
{
        *ret_byte = (unsigned)(at + PROFILE_FRAME_BYTES) % 8;
        return (struct audit_cell *)&state->frames[frame].cells[(-at - 1) / 8];
}

static bool has_pointer(const struct audit_cell *cell)
{
        return cell->size > 0 && cell->value.kind != REG_SCALAR;
}

int audit_read_stack(struct audit_rules *rules, const struct audit_state *state, uint32_t slot,
                     const struct audit_access *a)
{
        for (int64_t at = a->first; at < a->last + (int64_t)a->size; at++) {
                unsigned byte;
                const struct audit_cell *cell = cell_at(state, a->pointer->index, at, &byte);

                if (!(cell->init >> byte & 1))
                        return fault_set(rules->fault, FAULT_UNINIT_STACK, slot, "r10%+" PRIi64 " was not written", at);
                if (has_pointer(cell))
                        return fault_set(rules->fault, a->is_helper ? FAULT_POINTER_LEAK : FAULT_POINTER_PARTIAL, slot,
                                         "r10%+" PRIi64 " is part of a pointer", at);
        }
        return 0;
}

/* Data is written to the stack; where exactly need not be known. */
static void write_stack(struct audit_state *state, const struct audit_access *a)
{
        for (int64_t at = a->first; at < a->last + (int64_t)a->size; at++) {
                unsigned byte;
                struct audit_cell *cell = cell_at(state, a->pointer->index, at, &byte);

                if (has_pointer(cell))
                        cell->init = cell->size = 0;
                if (cell->at <= byte && byte < cell->at + cell->size)
                        cell->size = 0;
                if (a->first == a->last)
                        cell->init |= (uint8_t)(1u << byte);
        }
}

/* The cell of an access that is known to lie in one. */
static struct audit_cell *one_cell(const struct audit_state *state, const struct audit_access *a, unsigned *ret_byte)
{
        struct audit_cell *cell;

        if (a->first != a->last)
                return NULL;
        cell = cell_at(state, a->pointer->index, a->first, ret_byte);
        return *ret_byte + a->size <= 8 ? cell : NULL;
}

static void loaded(struct audit_value *dst, const struct insn *insn, struct audit_value v)
{
        if (insn->flags & INSN_SIGNED) {
                v.n = audit_number_extend(&v.n, insn->size, true, 8);
                v.id = 0;
        }
        *dst = v;
}

static int step_load(struct audit_rules *rules, struct audit_state *state, uint32_t slot)
{
        const struct insn *insn = &rules->program->insns[slot];
        struct audit_access a = {.pointer = &state->regs[insn->src], .size = insn->size, .offset = insn->offset};
        struct audit_number any = audit_number_bytes(insn->size), n;
        struct audit_value *dst = &state->regs[insn->dst], v = number(&any);
        struct audit_cell *cell;
        unsigned byte = 0;

        if (audit_access(rules, slot, &a))
                return 1;
        if (a.pointer->kind != REG_STACK) {
                loaded(dst, insn, v);
                return 0;
        }
        cell = one_cell(state, &a, &byte);
        if (cell && has_pointer(cell) && byte == 0 && a.size == 8 && cell->init == 0xff) {
                *dst = cell->value;
                return 0;
        }
        if (audit_read_stack(rules, state, slot, &a))
                return 1;
        if (cell && cell->size > 0 && cell->at <= byte && byte + a.size <= cell->at + cell->size) {
                struct audit_number amount = audit_number_const(8u * (byte - cell->at));

                if (byte == cell->at && a.size == cell->size)
                        share(state, &cell->value);
                v = cell->value;
                if (byte != cell->at || a.size != cell->size) {
                        n = audit_number_alu(ALU_RSH, &cell->value.n, &amount, 8);
                        n = audit_number_extend(&n, insn->size, false, 8);
                        v = number(&n);
                }
        }
        loaded(dst, insn, v);
        return 0;
}

/* Pointers go whole, to a known place that is a multiple of 8, and not into a frame that outlives what they point to.
 */
static int may_store_pointer(struct audit_rules *rules, const struct audit_state *state, uint32_t slot,
                             const struct audit_access *a, const struct audit_value *v)
{
        bool may_outlive = v->kind == REG_MIXED ? a->pointer->index + 1u != state->depth
                                                : v->kind == REG_STACK && v->index > a->pointer->index;

        if (a->pointer->kind != REG_STACK || may_outlive)
                return fault_set(rules->fault, FAULT_POINTER_LEAK, slot, "a pointer is stored where it may not be");
        if (a->size != 8)
                return fault_set(rules->fault, FAULT_POINTER_PARTIAL, slot, "part of a pointer is stored");
        if (a->first != a->last || a->first % 8 != 0)
                return fault_set(rules->fault, FAULT_ALIGNMENT, slot, "a pointer is stored at no multiple of 8");
        return 0;
}

static int step_store(struct audit_rules *rules, struct audit_state *state, uint32_t slot)
{
        const struct insn *insn = &rules->program->insns[slot];
        struct audit_access a = {.pointer = &state->regs[insn->dst],
                                 .size = insn->size,
                                 .offset = insn->offset,
                                 .is_write = true};
        struct audit_number constant = audit_number_const((uint64_t)insn->imm);
        struct audit_value *src = &state->regs[insn->src], v = number(&constant);
        struct audit_cell *cell;
        unsigned byte = 0;

        if (!(insn->flags & INSN_IMM)) {
                if (src->kind == REG_UNINIT)
                        return refuse(rules, FAULT_UNINIT_REGISTER, slot, insn->src, src);
                forget_shift(src);
                if (src->n.maybe <= UINT64_MAX >> (64 - 8 * insn->size))
                        share(state, src);
                v = *src;
        }
        if (audit_access(rules, slot, &a) || (is_pointer(&v) && may_store_pointer(rules, state, slot, &a, &v)))
                return 1;
        if (a.pointer->kind != REG_STACK)
                return 0;
        write_stack(state, &a);
        cell = one_cell(state, &a, &byte);
        if (!cell)
                return 0;
        cell->at = (uint8_t)byte;
        cell->size = insn->size;
        cell->value = v;
        if (v.kind == REG_SCALAR) {
                cell->value.n = audit_number_extend(&v.n, insn->size, false, 8);
                if (v.n.maybe > UINT64_MAX >> (64 - 8 * insn->size))
                        cell->value.id = 0;
        }
        return 0;
}

static int step_atomic(struct audit_rules *rules, struct audit_state *state, uint32_t slot)
{
        const struct insn *insn = &rules->program->insns[slot];
        struct audit_access a = {.pointer = &state->regs[insn->dst],
                                 .size = insn->size,
                                 .offset = insn->offset,
                                 .is_write = true};
        const unsigned operands[] = {insn->src, insn->op == ATOMIC_CMPXCHG ? 0 : insn->src};
        struct audit_number any = audit_number_bytes(insn->size);

        for (unsigned i = 0; i < ARRAY_SIZE(operands); i++) {
                const struct audit_value *v = &state->regs[operands[i]];

                if (v->kind != REG_SCALAR)
                        return refuse(rules, v->kind == REG_UNINIT ? FAULT_UNINIT_REGISTER : FAULT_POINTER_LEAK, slot,
                                      operands[i], v);
        }
        if (a.pointer->kind == REG_CONTEXT)
                return fault_set(rules->fault, FAULT_NO_ACCESS, slot, "an atomic operation on the context");
        if (audit_access(rules, slot, &a))
                return 1;
        if (!is_aligned(&a))
                return fault_set(rules->fault, FAULT_ALIGNMENT, slot, "an atomic operation that need not be aligned");
        if (a.pointer->kind == REG_STACK) {
                if (audit_read_stack(rules, state, slot, &a))
                        return 1;
                write_stack(state, &a);
        }
        if (insn->flags & INSN_FETCH)
                state->regs[insn->op == ATOMIC_CMPXCHG ? 0 : insn->src] = number(&any);
        return 0;
}

int audit_step(struct audit_rules *rules, struct audit_state *state, uint32_t slot)
{
        switch ((enum insn_kind)rules->program->insns[slot].kind) {
        case INSN_ALU:
                return step_alu(rules, state, slot);
        case INSN_SWAP:
                return step_swap(rules, state, slot);
        case INSN_LOAD:
                return step_load(rules, state, slot);
        case INSN_STORE:
                return step_store(rules, state, slot);
        case INSN_ATOMIC:
                return step_atomic(rules, state, slot);
        case INSN_WIDE:
                step_wide(rules, state, slot);
                return 0;
        case INSN_CALL_HELPER:
                return audit_helper(rules, state, slot);
        case INSN_TAIL:
        case INSN_JUMP:
        case INSN_BRANCH:
        case INSN_CALL_LOCAL:
        case INSN_EXIT:
                break;
        }
        return 0;
}
