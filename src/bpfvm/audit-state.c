/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/audit-state.h"

#include <string.h>

#include "base/macro.h"

static const struct audit_value unwritten = {.kind = REG_UNINIT};

static struct audit_value frame_end(uint32_t frame)
{
        return (struct audit_value){.kind = REG_STACK, .index = (uint16_t)frame, .n = audit_number_const(0)};
}

static void clear_frame(struct audit_state *state, uint32_t frame)
{
        memset(&state->frames[frame], 0, sizeof(state->frames[frame])); /* no byte written, REG_UNINIT everywhere */
}

void audit_state_enter(const struct audit_rules *rules, struct audit_state *state)
{
        state->depth = 1;
        state->last_id = 0;
        state->n_counts = 0;
        state->n_turns = 0;
        for (unsigned reg = 0; reg < INSN_REGISTERS; reg++)
                state->regs[reg] = unwritten;
        state->regs[1] = (struct audit_value){.kind = rules->program->context.size > 0 ? REG_CONTEXT : REG_SCALAR,
                                              .n = audit_number_const(0)};
        state->regs[INSN_FRAME_POINTER] = frame_end(0);
        clear_frame(state, 0);
}

/* What a certificate says of one value, if that can be in a program: frames and maps exist. */
static bool value_of(const struct audit_rules *rules, const struct reg *claim, uint32_t depth, struct audit_value *ret)
{
        *ret = (struct audit_value){.kind = claim->kind};
        if (claim->kind == REG_UNINIT || claim->kind == REG_MIXED)
                return true;
        if (claim->kind > REG_MAP || (claim->kind == REG_STACK && claim->index >= depth) ||
            ((claim->kind == REG_VALUE || claim->kind == REG_MAP) && claim->index >= rules->program->n_maps))
                return false;
        *ret = (struct audit_value){claim->kind, claim->may_be_null, claim->index, claim->id, audit_number_any()};
        return audit_number_of(&claim->value, &ret->n);
}

static bool cell_of(const struct audit_rules *rules, const struct slot *claim, struct audit_state *state)
{
        uint32_t frame = STATE_PLACE_FRAME(claim->place), index = STATE_PLACE_INDEX(claim->place);
        struct audit_cell *cell;

        if (frame >= state->depth)
                return false;
        if (index >= AUDIT_CELLS)
                return index < AUDIT_CELLS + STATE_SAVED_REGISTERS && frame + 1 < state->depth && claim->size == 8 &&
                       value_of(rules, &claim->value, state->depth, &state->frames[frame].kept[index - AUDIT_CELLS]);
        cell = &state->frames[frame].cells[index];
        cell->init = claim->init;
        cell->at = claim->at;
        cell->size = claim->size;
        if (claim->size == 0)
                return true;
        return claim->at + claim->size <= 8 && (claim->value.kind == REG_SCALAR || claim->size == 8) &&
               claim->value.kind != REG_UNINIT && value_of(rules, &claim->value, state->depth, &cell->value);
}

bool audit_state_of(const struct audit_rules *rules, const struct certificate_state *claimed,
                    const struct verifier_count *counts, uint32_t n_counts, struct audit_state *ret)
{
        const struct state *claim = &claimed->state;

        if (claim->depth == 0 || claim->depth > PROFILE_CALL_DEPTH || n_counts > AUDIT_COUNTS)
                return false;
        ret->n_turns = claimed->n_turns;
        if (claimed->n_turns > 0)
                memcpy(ret->turns, claimed->turns, claimed->n_turns * sizeof(*claimed->turns));
        ret->depth = claim->depth;
        ret->last_id = claim->last_id;
        ret->n_counts = n_counts;
        if (n_counts > 0)
                memcpy(ret->counts, counts, n_counts * sizeof(*counts));
        for (uint32_t frame = 0; frame < ret->depth; frame++)
                clear_frame(ret, frame);
        for (unsigned reg = 0; reg < INSN_FRAME_POINTER; reg++) {
                if (!value_of(rules, &claim->regs[reg], ret->depth, &ret->regs[reg]))
                        return false;
                ret->last_id = MAX(ret->last_id, ret->regs[reg].id);
        }
        ret->regs[INSN_FRAME_POINTER] = frame_end(ret->depth - 1);
        for (size_t i = 0; i < claim->n_slots; i++) {
                if (!cell_of(rules, &claim->slots[i], ret))
                        return false;
                if (claim->slots[i].size > 0 && claim->slots[i].value.kind != REG_MIXED)
                        ret->last_id = MAX(ret->last_id, claim->slots[i].value.id);
        }
        return true;
}

void audit_state_copy(struct audit_state *to, const struct audit_state *from)
{
        to->depth = from->depth;
        to->last_id = from->last_id;
        to->n_counts = from->n_counts;
        to->n_turns = from->n_turns;
        memcpy(to->turns, from->turns, from->n_turns * sizeof(*from->turns));
        memcpy(to->regs, from->regs, sizeof(to->regs));
        memcpy(to->counts, from->counts, from->n_counts * sizeof(*from->counts));
        memcpy(to->frames, from->frames, from->depth * sizeof(*from->frames));
}

/* Pairs of a claim's id and the first value that it was said of. */
struct copies {
        uint32_t n;
        struct {
                uint32_t id;
                const struct audit_value *first;
        } of[256];
};

static bool is_zero(const struct audit_value *v)
{
        return v->kind == REG_SCALAR && audit_number_is_const(&v->n) && v->n.ones == 0;
}

/* Whether two values are one, so far as a branch can tell: the same number, or both null or both not. */
static bool are_copies(const struct audit_value *a, const struct audit_value *b)
{
        if (a->id != 0 && a->id == b->id)
                return true;
        if (a->kind == REG_SCALAR && b->kind == REG_SCALAR)
                return audit_number_is_const(&a->n) && audit_number_is_const(&b->n) && a->n.ones == b->n.ones;
        return a->kind == REG_VALUE && b->kind == REG_VALUE && !a->may_be_null && !b->may_be_null;
}

static bool agrees_with_copies(struct copies *copies, const struct audit_value *v, const struct reg *claim)
{
        if (claim->id == 0 || (claim->kind != REG_SCALAR && !claim->may_be_null))
                return true;
        for (uint32_t i = 0; i < copies->n; i++)
                if (copies->of[i].id == claim->id)
                        return are_copies(copies->of[i].first, v);
        if (copies->n == ARRAY_SIZE(copies->of))
                return false;
        copies->of[copies->n].id = claim->id;
        copies->of[copies->n++].first = v;
        return true;
}

static bool value_within(struct copies *copies, const struct audit_value *v, const struct reg *claim)
{
        switch ((enum reg_kind)claim->kind) {
        case REG_UNINIT:
                return true;
        case REG_MIXED:
                return v->kind != REG_UNINIT;
        case REG_VALUE:
                if (claim->may_be_null && is_zero(v))
                        break;
                if (v->may_be_null && !claim->may_be_null)
                        return false;
                /* and as other pointers */
                __attribute__((fallthrough));
        case REG_SCALAR:
        case REG_CONTEXT:
        case REG_STACK:
        case REG_MAP:
                if (v->kind != claim->kind || (v->kind != REG_SCALAR && v->index != claim->index) ||
                    !audit_number_within(&v->n, &claim->value))
                        return false;
                break;
        }
        return agrees_with_copies(copies, v, claim);
}

static bool cell_within(struct copies *copies, const struct audit_cell *cell, const struct slot *claim)
{
        bool holds_pointer = cell->size > 0 && cell->value.kind != REG_SCALAR;

        if (claim->init & ~cell->init)
                return false;
        if (claim->size == 0)
                return !holds_pointer;
        if (claim->value.kind == REG_MIXED)
                return true;
        return cell->at == claim->at && cell->size == claim->size && value_within(copies, &cell->value, &claim->value);
}

bool audit_state_within(const struct audit_state *state, const struct state *claim)
{
        struct copies copies = {.n = 0};

        if (state->depth != claim->depth)
                return false;
        for (unsigned reg = 0; reg < INSN_FRAME_POINTER; reg++)
                if (!value_within(&copies, &state->regs[reg], &claim->regs[reg]))
                        return false;
        for (size_t i = 0; i < claim->n_slots; i++) {
                const struct slot *slot = &claim->slots[i];
                uint32_t frame = STATE_PLACE_FRAME(slot->place), index = STATE_PLACE_INDEX(slot->place);

                if (frame >= state->depth || index >= AUDIT_CELLS + STATE_SAVED_REGISTERS)
                        return false;
                if (index < AUDIT_CELLS
                            ? !cell_within(&copies, &state->frames[frame].cells[index], slot)
                            : !value_within(&copies, &state->frames[frame].kept[index - AUDIT_CELLS], &slot->value))
                        return false;
        }
        return true;
}

const struct verifier_turn *audit_turn(const struct verifier_turn *turns, uint32_t n, uint32_t frame, uint32_t head)
{
        for (uint32_t i = 0; i < n; i++)
                if (turns[i].frame == frame && turns[i].head == head)
                        return &turns[i];
        return NULL;
}

static bool same_place(struct verifier_place a, struct verifier_place b)
{
        return a.reg == b.reg && (a.reg != VERIFIER_STACK || (a.offset == b.offset && a.size == b.size));
}

bool audit_state_counts(const struct audit_state *state, const struct verifier_count *claim)
{
        for (uint32_t i = 0; i < state->n_counts; i++) {
                const struct verifier_count *known = &state->counts[i];

                if (known->head == claim->head && !known->is_up && same_place(known->at, claim->at) &&
                    (claim->is_low || !known->is_low) && claim->least <= known->least && known->most <= claim->most)
                        return true;
        }
        return false;
}
