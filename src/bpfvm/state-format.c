/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "bpfvm/program.h"
#include "bpfvm/state.h"

const char *reg_kind_name(const struct reg *reg)
{
        switch ((enum reg_kind)reg->kind) {
        case REG_UNINIT:
                return "not initialised";
        case REG_MIXED:
                return "a number or a pointer, depending on the path";
        case REG_SCALAR:
                return "a number";
        case REG_CONTEXT:
                return "a pointer to the context";
        case REG_STACK:
                return "a pointer to the stack";
        case REG_VALUE:
                return reg->may_be_null ? "a lookup's result that may be null" : "a pointer to a map's value";
        case REG_MAP:
                return "the handle of a map";
        }
        return "nothing known";
}

static void format_const(uint64_t value, struct text *out)
{
        int64_t s = (int64_t)value;

        if (s >= -65536 && s <= 65536)
                text_addf(out, "%" PRIi64, s);
        else
                text_addf(out, "0x%" PRIx64, value);
}

/* The tightest reading: signed where that is the shorter range. */
static void format_range(const struct range *r, struct text *out)
{
        bool is_signed = r->umax > INT64_MAX && (uint64_t)r->smax - (uint64_t)r->smin < r->umax - r->umin;

        format_const(is_signed ? (uint64_t)r->smin : r->umin, out);
        text_add(out, " to ");
        format_const(is_signed ? (uint64_t)r->smax : r->umax, out);
}

static bool is_full(const struct range *r)
{
        return r->umin == 0 && r->umax == UINT64_MAX && r->smin == INT64_MIN && r->smax == INT64_MAX;
}

static void format_scalar(const struct scalar *s, struct text *out)
{
        unsigned low_zeros =
                (s->tnum.value | s->tnum.mask) ? (unsigned)__builtin_ctzll(s->tnum.value | s->tnum.mask) : 0;
        bool half_is_full = s->half.umin == 0 && s->half.umax == UINT32_MAX && s->half.smin == INT32_MIN;

        if (scalar_is_const(s)) {
                format_const(s->tnum.value, out);
                return;
        }
        if (is_full(&s->word))
                text_add(out, "any");
        else
                format_range(&s->word, out);
        if (is_full(&s->word) && !half_is_full)
                text_addf(out, ", low half %" PRIu64 " to %" PRIu64, s->half.umin, s->half.umax);
        if (low_zeros > 0)
                text_addf(out, ", a multiple of %" PRIu64, UINT64_C(1) << low_zeros);
}

static void format_offset(const struct scalar *s, struct text *out)
{
        int64_t first = s->word.smin, last = s->word.smax;

        if (first == last)
                text_addf(out, "%+" PRIi64, first);
        else if (is_full(&s->word))
                text_add(out, "+any");
        else
                text_addf(out, "%+" PRIi64 "..%+" PRIi64, first, last);
}

void reg_format(const struct reg *reg, const struct program *program, unsigned depth, struct text *out)
{
        switch ((enum reg_kind)reg->kind) {
        case REG_SCALAR:
                format_scalar(&reg->value, out);
                return;
        case REG_CONTEXT:
                text_add(out, "context");
                break;
        case REG_STACK:
                text_add(out, "r10");
                if (reg->index + 1u != depth)
                        text_addf(out, " of frame %u", reg->index);
                break;
        case REG_VALUE:
                text_addf(out, "value of %s", program->maps[reg->index].name);
                if (reg->may_be_null) {
                        text_add(out, " or null");
                        return;
                }
                break;
        case REG_MAP:
                text_addf(out, "map %s", program->maps[reg->index].name);
                return;
        case REG_UNINIT:
        case REG_MIXED:
                text_add(out, reg_kind_name(reg));
                return;
        }
        format_offset(&reg->value, out);
}

void slot_format(const struct slot *slot, const struct state *state, const struct program *program, struct text *out)
{
        unsigned frame = STATE_PLACE_FRAME(slot->place), index = STATE_PLACE_INDEX(slot->place);
        int at = -8 * ((int)index + 1);

        if (index >= 64) {
                text_addf(out, "kept r%u: ", index - 64 + 6);
        } else {
                text_addf(out, "[r10%+d%s", slot->size > 0 ? at + slot->at : at + __builtin_ctz(slot->init),
                          slot->size > 0 ? "" : "...");
                if (frame + 1u != state->depth)
                        text_addf(out, " of frame %u", frame);
                text_add(out, "]: ");
        }
        if (slot->size == 0)
                text_addf(out, "%d bytes", __builtin_popcount(slot->init));
        else
                reg_format(&slot->value, program, state->depth, out);
}

void state_format(const struct state *state, const struct program *program, struct text *out)
{
        const char *separator = "";

        for (unsigned reg = 0; reg < INSN_FRAME_POINTER; reg++) {
                if (state->regs[reg].kind == REG_UNINIT)
                        continue;
                text_addf(out, "%sr%u: ", separator, reg);
                reg_format(&state->regs[reg], program, state->depth, out);
                separator = "; ";
        }
        for (size_t i = 0; i < state->n_slots; i++) {
                text_add(out, separator);
                slot_format(&state->slots[i], state, program, out);
                separator = "; ";
        }
}
