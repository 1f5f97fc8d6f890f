/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the verifier claims of a program, kept by chain of calls and instruction, and held against what the checking
 * interpreter sees there: some claim has to be true of every register and stack byte. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bpfvm/oracle.h"
#include "bpfvm/verifier.h"

struct claim {
        struct claim *next;
        struct verifier_context context;
        struct state state; /* its slots are the claim's own */
        struct slot slots[];
};

struct claims {
        /* By slot of the program: circular lists, by the claim that was added last, and then by the one that was found
         * true last. In a loop's next turn it is mostly the next that is. */
        struct claim **at;
        uint32_t n;
        const bool *checks;  /* by slot: where a claim has to hold; NULL: everywhere */
        uint32_t wrong_slot; /* where none was true, and what the last that was tried said */
        char wrong[256];
};

static inline int claims_init(struct claims *claims, const struct program *program)
{
        *claims = (struct claims){.n = program->n_insns};
        claims->at = calloc(program->n_insns + 1, sizeof(*claims->at));
        return claims->at ? 0 : -ENOMEM;
}

static inline void claims_done(struct claims *claims)
{
        for (uint32_t i = 0; claims->at && i < claims->n; i++) {
                struct claim *claim = claims->at[i] ? claims->at[i]->next : NULL;

                if (claim)
                        claims->at[i]->next = NULL;
                while (claim) {
                        struct claim *next = claim->next;

                        free(claim);
                        claim = next;
                }
        }
        free(claims->at);
}

#define _cleanup_claims_ _cleanup_(claims_done)

/* claims_add - the verifier's observer; @userdata is a struct claims */
static inline void claims_add(void *userdata, const struct verifier_context *context, uint32_t slot,
                              const struct state *state)
{
        struct claims *claims = userdata;
        struct claim *claim = malloc(sizeof(*claim) + state->n_slots * sizeof(struct slot));

        if (!claim)
                abort();
        claim->context = *context;
        claim->state = *state;
        claim->state.slots = claim->slots;
        if (state->n_slots > 0)
                memcpy(claim->slots, state->slots, state->n_slots * sizeof(struct slot));
        claim->next = claims->at[slot] ? claims->at[slot]->next : claim;
        if (claims->at[slot])
                claims->at[slot]->next = claim;
        claims->at[slot] = claim;
}

static inline bool claim_is_pointer(const struct reg *reg, const struct value *value, enum value_kind kind)
{
        return value->kind == kind && value->index == reg->index &&
               scalar_contains(&reg->value, (uint64_t)value_offset(value));
}

static inline bool claim_reg(const struct reg *reg, const struct value *value)
{
        switch ((enum reg_kind)reg->kind) {
        case REG_UNINIT:
                return true;
        case REG_MIXED:
                return value->kind != VALUE_UNINIT;
        case REG_SCALAR:
                return value->kind == VALUE_SCALAR && scalar_contains(&reg->value, value->bits);
        case REG_CONTEXT:
                return claim_is_pointer(reg, value, VALUE_CONTEXT);
        case REG_STACK:
                return claim_is_pointer(reg, value, VALUE_STACK);
        case REG_VALUE:
                if (reg->may_be_null && value->bits == 0)
                        return value->kind == VALUE_SCALAR ||
                               (value->kind == VALUE_MAP_VALUE && value->index == reg->index);
                return claim_is_pointer(reg, value, VALUE_MAP_VALUE) && (reg->may_be_null || !value->may_be_null);
        case REG_MAP:
                return claim_is_pointer(reg, value, VALUE_MAP);
        }
        return false;
}

/* Copies: all that carry one id have the same bits. */
struct claim_ids {
        struct {
                uint32_t id;
                uint64_t bits;
        } seen[128];
        size_t n;
};

static inline bool claim_id(struct claim_ids *ids, const struct reg *reg, uint64_t bits)
{
        if (reg->id == 0 || (reg->kind == REG_SCALAR ? reg->index != 0 : reg->kind != REG_VALUE || !reg->may_be_null))
                return true;
        for (size_t i = 0; i < ids->n; i++)
                if (ids->seen[i].id == reg->id)
                        return ids->seen[i].bits == bits;
        if (ids->n < 128) {
                ids->seen[ids->n].id = reg->id;
                ids->seen[ids->n++].bits = bits;
        }
        return true;
}

static inline bool claim_kept(struct claim_ids *ids, const struct slot *slot, const struct oracle_frame *frame)
{
        const struct value *value = &frame->regs[6 + STATE_PLACE_INDEX(slot->place) - 64];

        return claim_reg(&slot->value, value) && claim_id(ids, &slot->value, value->bits);
}

static inline bool claim_slot(struct claim_ids *ids, const struct slot *slot, const struct oracle_frame *frame)
{
        size_t first = PROFILE_FRAME_BYTES - 8 * (STATE_PLACE_INDEX(slot->place) + 1u);
        struct value data = {.kind = VALUE_SCALAR};
        bool is_pointer = frame->states[first] == STACK_POINTER;

        for (unsigned i = 0; i < 8; i++) {
                if (slot->init >> i & 1 && frame->states[first + i] == STACK_UNINIT)
                        return false;
                if (slot->init >> i & 1 && slot->size == 0 && frame->states[first + i] == STACK_POINTER)
                        return false;
        }
        if (slot->size == 0)
                return true;
        memcpy(&data.bits, frame->bytes + first + slot->at, slot->size);
        if (slot->value.kind == REG_MIXED)
                return true;
        if (is_pointer)
                return slot->at == 0 && slot->size == 8 && claim_reg(&slot->value, &frame->spills[first / 8]) &&
                       claim_id(ids, &slot->value, data.bits);
        return claim_reg(&slot->value, &data) && claim_id(ids, &slot->value, data.bits);
}

static inline bool claim_holds(const struct claim *claim, const struct oracle_view *view, char *why, size_t size)
{
        const struct state *state = &claim->state;
        struct claim_ids ids = {.n = 0};

        for (unsigned reg = 0; reg < INSN_REGISTERS; reg++) {
                const struct value *value = &view->frames[view->depth - 1].regs[reg];

                if (claim_reg(&state->regs[reg], value) && claim_id(&ids, &state->regs[reg], value->bits))
                        continue;
                snprintf(why, size, "r%u, %s, is 0x%lx of kind %u", reg, reg_kind_name(&state->regs[reg]), value->bits,
                         value->kind);
                return false;
        }
        for (size_t i = 0; i < state->n_slots; i++) {
                const struct slot *slot = &state->slots[i];
                const struct oracle_frame *frame = &view->frames[STATE_PLACE_FRAME(slot->place)];

                if (STATE_PLACE_INDEX(slot->place) >= 64 ? claim_kept(&ids, slot, frame)
                                                         : claim_slot(&ids, slot, frame))
                        continue;
                snprintf(why, size, "slot %u of frame %u is something else", STATE_PLACE_INDEX(slot->place),
                         STATE_PLACE_FRAME(slot->place));
                return false;
        }
        return true;
}

static inline bool claim_is_here(const struct claim *claim, const struct oracle_view *view)
{
        if (claim->context.n + 1 != view->depth)
                return false;
        for (uint32_t i = 0; i < claim->context.n; i++)
                if (claim->context.calls[i] != view->frames[i + 1].call_slot)
                        return false;
        return true;
}

/* claims_check - the interpreter's observer; stops it where no claim is true */
static inline int claims_check(void *userdata, const struct oracle_view *view)
{
        struct claims *claims = userdata;
        struct claim *first = claims->at[view->slot], *claim = first;

        if (claims->checks && !claims->checks[view->slot])
                return 0;
        snprintf(claims->wrong, sizeof(claims->wrong), "no state was claimed here");
        while (claim) {
                if (claim_is_here(claim, view) && claim_holds(claim, view, claims->wrong, sizeof(claims->wrong))) {
                        claims->at[view->slot] = claim;
                        return 0;
                }
                claim = claim->next != first ? claim->next : NULL;
        }
        claims->wrong_slot = view->slot;
        return 1;
}
