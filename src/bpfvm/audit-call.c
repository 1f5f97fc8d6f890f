/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/macro.h"
#include "bpfvm/audit-state.h"
#include "bpfvm/helper.h"

static bool is_pointer(const struct audit_value *v)
{
        return v->kind != REG_SCALAR && v->kind != REG_UNINIT;
}

static struct audit_value number(struct audit_number n)
{
        return (struct audit_value){.kind = REG_SCALAR, .n = n};
}

static int want_number(struct audit_rules *rules, const struct audit_state *state, uint32_t slot, unsigned reg,
                       bool is_optional)
{
        uint8_t kind = state->regs[reg].kind;

        if (kind == REG_SCALAR || (kind == REG_UNINIT && is_optional))
                return 0;
        return fault_set(rules->fault, kind == REG_UNINIT ? FAULT_UNINIT_REGISTER : FAULT_POINTER_LEAK, slot,
                         "r%u is no number", reg);
}

static int want_memory(struct audit_rules *rules, const struct audit_state *state, uint32_t slot, unsigned reg,
                       uint64_t size)
{
        struct audit_access a = {.pointer = &state->regs[reg], .size = size, .is_helper = true};

        if (audit_access(rules, slot, &a))
                return 1;
        return a.pointer->kind == REG_STACK ? audit_read_stack(rules, state, slot, &a) : 0;
}

static int want_map(struct audit_rules *rules, const struct audit_state *state, uint32_t slot, unsigned reg,
                    const struct helper *helper)
{
        const struct audit_value *v = &state->regs[reg];

        if (v->kind == REG_UNINIT)
                return fault_set(rules->fault, FAULT_UNINIT_REGISTER, slot, "r%u was not written", reg);
        if (v->kind != REG_MAP || !(helper->map_kinds & 1 << rules->program->maps[v->index].kind))
                return fault_set(rules->fault, FAULT_HELPER_ARGUMENT, slot, "r%u is no map that %s takes", reg,
                                 helper->name);
        return 0;
}

/* Memory in @reg whose size is in the next register. */
static int want_sized(struct audit_rules *rules, const struct audit_state *state, uint32_t slot, unsigned reg,
                      uint64_t least)
{
        const struct audit_bounds *size = &state->regs[reg + 1].n.word;

        if (want_number(rules, state, slot, reg + 1, false))
                return 1;
        if (size->umin < least || size->umax > HELPER_SIZE_MAX)
                return fault_set(rules->fault, FAULT_HELPER_ARGUMENT, slot, "r%u need not be a size that is allowed",
                                 reg + 1);
        return want_memory(rules, state, slot, reg, size->umax);
}

static int check_argument(struct audit_rules *rules, const struct audit_state *state, uint32_t slot,
                          const struct helper *helper, unsigned i, uint16_t *map)
{
        const struct map_def *maps = rules->program->maps;
        unsigned reg = i + 1;

        switch ((enum helper_arg)helper->args[i]) {
        case HELPER_ARG_SCALAR:
        case HELPER_ARG_OPTIONAL:
                return want_number(rules, state, slot, reg, helper->args[i] == HELPER_ARG_OPTIONAL);
        case HELPER_ARG_MAP:
                *map = state->regs[reg].index;
                return want_map(rules, state, slot, reg, helper);
        case HELPER_ARG_KEY:
                return want_memory(rules, state, slot, reg, maps[*map].key_size);
        case HELPER_ARG_VALUE:
                return want_memory(rules, state, slot, reg, maps[*map].value_size);
        case HELPER_ARG_READ:
                return want_sized(rules, state, slot, reg, helper->args[i + 1] == HELPER_ARG_SIZE);
        case HELPER_ARG_NONE:
        case HELPER_ARG_SIZE:
        case HELPER_ARG_SIZE_OR_0:
                break;
        }
        return 0;
}

int audit_helper(struct audit_rules *rules, struct audit_state *state, uint32_t slot)
{
        const struct helper *helper = helper_find((uint64_t)rules->program->insns[slot].imm);
        struct audit_value result = number(audit_number_any());
        uint16_t map = 0;

        if (!helper)
                return fault_set(rules->fault, FAULT_HELPER_UNKNOWN, slot, "no helper has this number");
        if (!(helper->profiles & rules->profile->helper_bit) || (helper->is_actuation && !rules->may_actuate))
                return fault_set(rules->fault, FAULT_HELPER_FORBIDDEN, slot, "%s is not allowed", helper->name);
        for (unsigned i = 0; i < HELPER_ARGS; i++)
                if (check_argument(rules, state, slot, helper, i, &map))
                        return 1;

        if (helper->ret == HELPER_RET_VALUE_OR_NULL)
                result = (struct audit_value){REG_VALUE, true, map, ++state->last_id, audit_number_const(0)};
        else if (helper->ret_min != 0 || helper->ret_max != 0)
                result.n = audit_number_between(helper->ret_min, helper->ret_max);
        for (unsigned reg = 1; reg <= HELPER_ARGS; reg++)
                state->regs[reg].kind = REG_UNINIT;
        state->regs[0] = result;
        return 0;
}

int audit_check_branch(struct audit_rules *rules, const struct audit_state *state, uint32_t slot)
{
        const struct insn *insn = &rules->program->insns[slot];
        const struct audit_value *dst = &state->regs[insn->dst], *src = &state->regs[insn->src];
        bool by_register = !(insn->flags & INSN_IMM);

        if (dst->kind == REG_UNINIT || (by_register && src->kind == REG_UNINIT))
                return fault_set(rules->fault, FAULT_UNINIT_REGISTER, slot, "an operand was not written");
        if (by_register ? is_pointer(dst) || is_pointer(src)
                        : is_pointer(dst) && (insn->imm != 0 || insn->size != 8 || insn->op > BRANCH_NE))
                return fault_set(rules->fault, FAULT_POINTER_COMPARE, slot, "a pointer is compared");
        return 0;
}

static void learn(struct audit_value *v, uint32_t id, const struct audit_value *known)
{
        if (v->id == id && v->kind != REG_UNINIT)
                *v = *known;
}

/* What is learned of a value holds for all its copies. */
static void learn_all(struct audit_state *state, uint32_t id, const struct audit_value *known)
{
        for (unsigned reg = 0; reg < INSN_FRAME_POINTER; reg++)
                learn(&state->regs[reg], id, known);
        for (uint32_t frame = 0; frame < state->depth; frame++) {
                struct audit_frame *f = &state->frames[frame];

                for (unsigned i = 0; i < AUDIT_CELLS; i++)
                        if (f->cells[i].size > 0)
                                learn(&f->cells[i].value, id, known);
                for (unsigned i = 0; i < STATE_SAVED_REGISTERS; i++)
                        learn(&f->kept[i], id, known);
        }
}

/* Whether a pointer that is no lookup's result could be 0 as a number: only if it left what it points into. */
static bool can_be_zero(const struct audit_rules *rules, const struct audit_value *v)
{
        const struct audit_bounds *b = &v->n.word;

        if (v->kind == REG_STACK)
                return b->smin < -PROFILE_FRAME_BYTES || b->smax > 0;
        if (v->kind == REG_CONTEXT)
                return b->smin < 0 || b->smax > rules->program->context.size;
        return v->kind == REG_VALUE && (b->smin < 0 || b->smax > rules->program->maps[v->index].value_size);
}

static bool branch_on_pointer(const struct audit_rules *rules, struct audit_state *state, const struct audit_value *v,
                              bool is_null)
{
        struct audit_value known = *v;
        uint32_t id = v->id;

        if (v->kind == REG_MIXED)
                return true;
        if (!v->may_be_null)
                return !is_null || can_be_zero(rules, v);
        known.may_be_null = false;
        known.id = 0;
        if (is_null)
                known = number(audit_number_const(0));
        learn_all(state, id, &known);
        return true;
}

bool audit_branch(const struct audit_rules *rules, struct audit_state *state, uint32_t slot, bool taken)
{
        const struct insn *insn = &rules->program->insns[slot];
        struct audit_value *dst = &state->regs[insn->dst], *src = &state->regs[insn->src];
        struct audit_number operand = insn->flags & INSN_IMM ? audit_number_const((uint64_t)insn->imm) : src->n;
        struct audit_number first = dst->n;

        if (is_pointer(dst))
                return branch_on_pointer(rules, state, dst, (insn->op == BRANCH_EQ) == taken);
        if (!audit_number_branch(insn->op, insn->size, taken, &first, &operand))
                return false;
        dst->n = first;
        if (!(insn->flags & INSN_IMM) && src != dst) {
                src->n = operand;
                if (src->id != 0) {
                        struct audit_value known = *src;

                        learn_all(state, src->id, &known);
                }
        }
        if (dst->id != 0) {
                struct audit_value known = *dst;

                learn_all(state, dst->id, &known);
        }
        return true;
}

int audit_call(struct audit_rules *rules, struct audit_state *state, uint32_t slot)
{
        if (state->depth == PROFILE_CALL_DEPTH)
                return fault_set(rules->fault, FAULT_CALL_DEPTH, slot, "a call from the last frame");
        for (unsigned i = 0; i < STATE_SAVED_REGISTERS; i++) {
                state->frames[state->depth - 1].kept[i] = state->regs[6 + i];
                state->regs[6 + i].kind = REG_UNINIT;
        }
        state->regs[0].kind = REG_UNINIT;
        memset(&state->frames[state->depth], 0, sizeof(state->frames[state->depth]));
        state->regs[INSN_FRAME_POINTER].index = (uint16_t)state->depth++;
        return 0;
}

int audit_exit(struct audit_rules *rules, struct audit_state *state, uint32_t slot)
{
        const struct audit_value *r0 = &state->regs[0];

        if (state->depth == 1) {
                if (r0->kind != REG_SCALAR)
                        return fault_set(rules->fault,
                                         r0->kind == REG_UNINIT ? FAULT_UNINIT_REGISTER : FAULT_POINTER_LEAK, slot,
                                         "the result is no number");
                state->depth = 0;
                return 0;
        }
        if (r0->kind == REG_MIXED || (r0->kind == REG_STACK && r0->index == state->depth - 1))
                return fault_set(rules->fault, FAULT_POINTER_LEAK, slot, "a pointer into a frame leaves it");
        state->depth--;
        for (unsigned reg = 1; reg <= HELPER_ARGS; reg++)
                state->regs[reg].kind = REG_UNINIT;
        for (unsigned i = 0; i < STATE_SAVED_REGISTERS; i++)
                state->regs[6 + i] = state->frames[state->depth - 1].kept[i];
        state->regs[INSN_FRAME_POINTER].index = (uint16_t)(state->depth - 1);
        memset(state->frames[state->depth - 1].kept, 0, sizeof(state->frames[state->depth - 1].kept));
        return 0;
}

/* Counters. */

static void forget(struct audit_state *state, uint32_t i)
{
        state->counts[i] = state->counts[--state->n_counts];
}

static void forget_register(struct audit_state *state, unsigned reg)
{
        for (uint32_t i = state->n_counts; i-- > 0;)
                if (state->counts[i].at.reg == reg)
                        forget(state, i);
}

/* Forget what is known of stack bytes [from, to) of the running frame. */
static void forget_stack(struct audit_state *state, int64_t from, int64_t to)
{
        for (uint32_t i = state->n_counts; i-- > 0;) {
                const struct verifier_place *at = &state->counts[i].at;

                if (at->reg == VERIFIER_STACK && at->offset < to && from < at->offset + at->size)
                        forget(state, i);
        }
}

static bool is_at(const struct verifier_count *count, const struct insn *insn)
{
        return count->at.reg == VERIFIER_STACK && count->at.offset == insn->offset && count->at.size == insn->size;
}

/* Everything that is known of one place is known of another too, or no more than its low half is. */
static void copy_counts(struct audit_state *state, struct verifier_place to, const struct insn *insn, bool from_stack)
{
        uint32_t n = state->n_counts;

        if (!from_stack && insn->src == INSN_FRAME_POINTER)
                return;
        for (uint32_t i = 0; i < n && state->n_counts < AUDIT_COUNTS; i++) {
                struct verifier_count count = state->counts[i];

                if (from_stack ? !is_at(&count, insn) : count.at.reg != insn->src)
                        continue;
                if (count.is_up && insn->size != 8)
                        continue;
                count.at = to;
                count.is_low = count.is_low || insn->size == 4;
                state->counts[state->n_counts++] = count;
        }
}

#define HALF ((__int128)1 << 32)

/* A register's number is shifted by half a word: what was low in it is up now, or the reverse. */
static void turn_counts(struct audit_state *state, const struct insn *insn)
{
        for (uint32_t i = state->n_counts; i-- > 0;) {
                struct verifier_count *count = &state->counts[i];

                if (count->at.reg != insn->dst)
                        continue;
                if (count->is_up == (insn->op == ALU_LSH)) {
                        forget(state, i);
                        continue;
                }
                count->is_up = !count->is_up;
                count->is_low = true;
        }
}

static bool is_by_half(const struct insn *insn)
{
        return insn->op >= ALU_LSH && insn->op <= ALU_ARSH && insn->size == 8 && insn->flags & INSN_IMM &&
               insn->imm == 32;
}

static void shift_counts(struct audit_state *state, const struct insn *insn)
{
        const struct audit_value *src = &state->regs[insn->src];
        const struct audit_bounds *b = insn->size == 4 ? &src->n.half : &src->n.word;
        bool is_known = insn->flags & INSN_IMM || src->kind == REG_SCALAR;
        __int128 least = insn->flags & INSN_IMM ? insn->imm : b->smin,
                 most = insn->flags & INSN_IMM ? insn->imm : b->smax;
        const __int128 far = (__int128)1 << 62;

        for (uint32_t i = state->n_counts; i-- > 0;) {
                struct verifier_count *count = &state->counts[i];
                __int128 low, high, unit;
                bool is_whole;

                if (count->at.reg != insn->dst)
                        continue;
                is_whole = !count->is_up || (least == most && least % HALF == 0 && insn->size == 8);
                unit = count->is_up ? HALF : 1;
                low = insn->op == ALU_ADD ? count->least + least / unit : count->least - most / unit;
                high = insn->op == ALU_ADD ? count->most + most / unit : count->most - least / unit;
                if (!is_known || !is_whole || low < -far || high > far) {
                        forget(state, i);
                        continue;
                }
                count->least = (int64_t)low;
                count->most = (int64_t)high;
                count->is_low = count->is_low || insn->size == 4;
        }
}

/* A register is written; the counts that it gets are the last, so that they are set apart from those it had. */
static void move_counts(struct audit_state *state, const struct insn *insn, bool from_stack)
{
        struct verifier_place to = {.reg = VERIFIER_STACK + 1}; /* nowhere, until the old ones are gone */

        copy_counts(state, to, insn, from_stack);
        forget_register(state, insn->dst);
        for (uint32_t i = 0; i < state->n_counts; i++)
                if (state->counts[i].at.reg == to.reg)
                        state->counts[i].at.reg = insn->dst;
}

static void count_store(struct audit_state *state, const struct insn *insn)
{
        const struct audit_value *pointer = &state->regs[insn->dst];
        struct verifier_place to = {VERIFIER_STACK, insn->size, (int16_t)insn->offset};

        if (pointer->kind != REG_STACK)
                return;
        if (insn->dst == INSN_FRAME_POINTER)
                forget_stack(state, insn->offset, insn->offset + insn->size);
        else if (pointer->index + 1u == state->depth)
                forget_stack(state, -PROFILE_FRAME_BYTES, 0);
        if (insn->kind == INSN_STORE && insn->dst == INSN_FRAME_POINTER && !(insn->flags & INSN_IMM))
                copy_counts(state, to, insn, false);
}

void audit_step_counts(const struct audit_rules *rules, struct audit_state *state, uint32_t slot)
{
        const struct insn *insn = &rules->program->insns[slot];

        if (state->n_counts == 0)
                return;
        switch ((enum insn_kind)insn->kind) {
        case INSN_ALU:
                if (insn->op == ALU_ADD || insn->op == ALU_SUB)
                        shift_counts(state, insn);
                else if (is_by_half(insn))
                        turn_counts(state, insn);
                else if (insn->op == ALU_MOV && !(insn->flags & INSN_IMM))
                        move_counts(state, insn, false);
                else
                        forget_register(state, insn->dst);
                return;
        case INSN_LOAD:
                if (insn->src == INSN_FRAME_POINTER)
                        move_counts(state, insn, true);
                else
                        forget_register(state, insn->dst);
                return;
        case INSN_STORE:
        case INSN_ATOMIC:
                count_store(state, insn);
                if (insn->kind == INSN_ATOMIC && insn->flags & INSN_FETCH)
                        forget_register(state, insn->op == ATOMIC_CMPXCHG ? 0 : insn->src);
                return;
        case INSN_CALL_LOCAL:
                forget_stack(state, -PROFILE_FRAME_BYTES, 0);
                __attribute__((fallthrough));
        case INSN_CALL_HELPER:
                for (unsigned reg = 0; reg <= HELPER_ARGS; reg++)
                        forget_register(state, reg);
                return;
        case INSN_SWAP:
        case INSN_WIDE:
                forget_register(state, insn->dst);
                return;
        case INSN_TAIL:
        case INSN_JUMP:
        case INSN_BRANCH:
        case INSN_EXIT:
                return;
        }
}
