/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/macro.h"
#include "bpfvm/transfer-internal.h"

/* One access: @size bytes (for a helper at most so many), @offset behind where a register points. */
struct access {
        struct transfer *t;
        const struct reg *pointer;
        uint64_t size;
        uint32_t slot; /* of the instruction */
        int32_t offset;
        uint8_t reg;
        bool is_write;
        bool is_helper;

        /* Set by resolve(): the first byte lies between these, from the start of what is pointed into. */
        int64_t first, last;
};

/* Where an access may begin, for people; the bounds may lie beyond what 64 bits can say. */
static const char *offset_text(const struct access *a, char buf[static 80])
{
        const struct range *at = &a->pointer->value.word;
        int64_t first, last;
        bool has_first = !__builtin_add_overflow(at->smin, a->offset, &first) && at->smin != INT64_MIN;
        bool has_last = !__builtin_add_overflow(at->smax, a->offset, &last) && at->smax != INT64_MAX;

        if (has_first && at->smin == at->smax)
                snprintf(buf, 80, "offset %" PRIi64, first);
        else if (has_first && has_last)
                snprintf(buf, 80, "offset %" PRIi64 " to %" PRIi64, first, last);
        else if (has_first)
                snprintf(buf, 80, "any offset from %" PRIi64 " on", first);
        else if (has_last)
                snprintf(buf, 80, "any offset up to %" PRIi64, last);
        else
                snprintf(buf, 80, "any offset");
        return buf;
}

static int refuse_bounds(const struct access *a, const char *what, int64_t from, int64_t to)
{
        char offset[80];

        return fault_set(a->t->fault, FAULT_BOUNDS, a->slot,
                         "%s %" PRIu64 " byte%s at %s of %s, which has offsets %" PRIi64 " to %" PRIi64,
                         a->is_write ? "writes" : "reads", a->size, a->size == 1 ? "" : "s", offset_text(a, offset),
                         what, from, to - 1);
}

/* Whether every byte that the access may touch lies in [from, to). Sets first and last. */
static bool lies_in(struct access *a, int64_t from, int64_t to)
{
        const struct range *at = &a->pointer->value.word;
        __int128 first = (__int128)at->smin + a->offset, last = (__int128)at->smax + a->offset;

        if (first < from || last + a->size > to)
                return false;
        a->first = (int64_t)first;
        a->last = (int64_t)last;
        return true;
}

static bool is_aligned(const struct access *a)
{
        struct tnum at = tnum_add(a->pointer->value.tnum, tnum_const((uint64_t)(int64_t)a->offset));

        return ((at.value | at.mask) & (a->size - 1)) == 0;
}

static int resolve_context(struct access *a)
{
        const struct context_def *def = &a->t->program->context;

        for (size_t i = 0; i < def->n_ranges; i++) {
                const struct context_range *range = &def->ranges[i];

                if (!lies_in(a, range->offset, (int64_t)range->offset + range->size))
                        continue;
                if (a->is_helper && range->is_aligned)
                        return fault_set(a->t->fault, FAULT_HELPER_ARGUMENT, a->slot,
                                         "r%u is the context, whose fields no helper may read as memory", a->reg);
                if (range->is_aligned && !is_aligned(a))
                        return fault_set(a->t->fault, FAULT_ALIGNMENT, a->slot,
                                         "%" PRIu64 " bytes at offset %" PRIi64 " of the context; expected a multiple "
                                         "of %" PRIu64,
                                         a->size, a->first, a->size);
                if (a->is_write && !range->is_writable)
                        return fault_set(a->t->fault, FAULT_READ_ONLY, a->slot,
                                         "writes offset %" PRIi64 " of the context, which is read only", a->first);
                return 0;
        }
        if (def->n_ranges > 1 && lies_in(a, 0, def->size))
                return fault_set(a->t->fault, FAULT_BOUNDS, a->slot,
                                 "bytes from offset %" PRIi64 " on of the context, but programs may access some fields "
                                 "of %s only, and each by itself",
                                 a->first, def->name);
        return refuse_bounds(a, "the context", 0, def->size);
}

static int resolve_value(struct access *a)
{
        const struct map_def *def = &a->t->program->maps[a->pointer->index];

        if (a->pointer->may_be_null)
                return fault_set(a->t->fault, FAULT_NULL, a->slot,
                                 "r%u may be null: map %s need not have the key; compare it with 0 first", a->reg,
                                 def->name);
        if (!lies_in(a, 0, def->value_size))
                return refuse_bounds(a, "a map's value", 0, def->value_size);
        if (a->is_write && def->is_read_only)
                return fault_set(a->t->fault, FAULT_READ_ONLY, a->slot, "writes to map %s, which is read only",
                                 def->name);
        return 0;
}

static int resolve_stack(struct access *a)
{
        uint32_t *deepest = &a->t->frame_bytes[a->pointer->index];

        if (!lies_in(a, -PROFILE_FRAME_BYTES, 0))
                return refuse_bounds(a, "the stack", -PROFILE_FRAME_BYTES, 0);
        *deepest = MAX(*deepest, (uint32_t)-a->first);
        return 0;
}

static int refuse_kind(const struct access *a)
{
        const char *name = reg_kind_name(a->pointer);

        if (a->pointer->kind == REG_UNINIT)
                return fault_set(a->t->fault, FAULT_UNINIT_REGISTER, a->slot,
                                 "reads r%u, which was not written on every path here", a->reg);
        if (a->is_helper)
                return fault_set(a->t->fault, FAULT_HELPER_ARGUMENT, a->slot,
                                 "r%u is %s; the helper expects a pointer to memory", a->reg, name);
        if (a->pointer->kind == REG_MAP)
                return fault_set(a->t->fault, FAULT_NO_ACCESS, a->slot,
                                 "r%u is the handle of a map; look a value up first", a->reg);
        return fault_set(a->t->fault, FAULT_NOT_POINTER, a->slot, "r%u is %s; expected a pointer", a->reg, name);
}

/* Whether memory may be accessed, and where. Return: 0; 1 with the reason. */
static int resolve(struct access *a)
{
        switch ((enum reg_kind)a->pointer->kind) {
        case REG_CONTEXT:
                return resolve_context(a);
        case REG_STACK:
                return resolve_stack(a);
        case REG_VALUE:
                return resolve_value(a);
        case REG_UNINIT:
        case REG_MIXED:
        case REG_SCALAR:
        case REG_MAP:
                break;
        }
        return refuse_kind(a);
}

/* The slots of the stack that bytes [first, first + size) from r10 lie in, going up: each gives its place and the bits
 * of its bytes. */
struct stack_span {
        unsigned frame;
        int64_t at, end; /* bytes from r10 that are left */
};

static bool stack_next(struct stack_span *span, uint16_t *place, uint8_t *bytes)
{
        int64_t behind = -span->at, index = (behind - 1) / 8, low = 8 * (index + 1) - behind, n;

        if (span->at >= span->end)
                return false;
        n = MIN(8 - low, span->end - span->at);
        *place = STATE_PLACE(span->frame, (unsigned)index);
        *bytes = (uint8_t)(((1u << n) - 1) << low);
        span->at += n;
        return true;
}

static bool holds_pointer(const struct slot *slot)
{
        return slot->size > 0 && slot->value.kind != REG_SCALAR;
}

/* Offset from r10 of the lowest byte of @bytes in the slot at @place. */
static int stack_offset(uint16_t place, uint8_t bytes)
{
        return -8 * (STATE_PLACE_INDEX(place) + 1) + __builtin_ctz(bytes);
}

/* Bytes that are read as data: all initialised, none of a pointer. */
static int check_stack_data(const struct access *a, const struct state *state)
{
        struct stack_span span = {a->pointer->index, a->first, a->last + (int64_t)a->size};
        uint16_t place;
        uint8_t bytes;

        while (stack_next(&span, &place, &bytes)) {
                const struct slot *slot = state_find(state, place);
                uint8_t missing = slot ? bytes & (uint8_t)~slot->init : bytes;

                if (missing)
                        return fault_set(a->t->fault, FAULT_UNINIT_STACK, a->slot,
                                         "%s stack byte r10%+d, which was not written on every path here",
                                         a->is_helper ? "passes to the helper" : "reads", stack_offset(place, missing));
                if (holds_pointer(slot) && a->is_helper)
                        return fault_set(a->t->fault, FAULT_POINTER_LEAK, a->slot,
                                         "passes stack byte r10%+d, which is part of a pointer, to a helper",
                                         stack_offset(place, bytes));
                if (holds_pointer(slot))
                        return fault_set(a->t->fault, FAULT_POINTER_PARTIAL, a->slot,
                                         "reads stack byte r10%+d, which is part of a pointer",
                                         stack_offset(place, bytes));
        }
        return 0;
}

/* Bytes that are overwritten with data, or, with a place that is not known, may be: what was known of numbers there is
 * forgotten, and of a pointer nothing is left. */
static int overwrite_stack(const struct access *a, struct state *state)
{
        struct stack_span span = {a->pointer->index, a->first, a->last + (int64_t)a->size};
        bool is_exact = a->first == a->last;
        uint16_t place;
        uint8_t bytes;

        while (stack_next(&span, &place, &bytes)) {
                struct slot *slot = is_exact ? state_insert(a->t->pool, state, place) : state_find(state, place);

                if (!slot && is_exact)
                        return fault_set(a->t->fault, FAULT_STATE_LIMIT, a->slot, "no memory is left for states");
                if (!slot)
                        continue;
                if (holds_pointer(slot))
                        slot->init = slot->size = 0;
                if (is_exact)
                        slot->init |= bytes;
                if (slot->size > 0 && bytes & ((1u << slot->size) - 1) << slot->at)
                        slot->size = 0;
        }
        return 0;
}

/* The slot that holds all bytes of an access whose place is known; NULL where there is none. */
static struct slot *exact_slot(const struct access *a, const struct state *state, unsigned *ret_at)
{
        unsigned behind = (unsigned)-a->first;

        *ret_at = (8 - behind % 8) % 8;
        if (a->first != a->last || *ret_at + a->size > 8)
                return NULL;
        return state_find(state, STATE_PLACE(a->pointer->index, (behind - 1) / 8));
}

/* dst = bytes of what one store left in a slot. Return: false if the bytes are not all of one store's. */
static bool load_stored(struct state *state, const struct access *a, struct slot *slot, unsigned at, struct reg *dst)
{
        if (slot->size == 0 || at < slot->at || at + a->size > slot->at + slot->size)
                return false;
        if (slot->at == at && slot->size == a->size) {
                transfer_share(state, &slot->value);
                *dst = slot->value;
                return true;
        }
        *dst = slot->value;
        dst->id = 0;
        scalar_alu_const(&dst->value, ALU_RSH, 8 * (at - slot->at), false);
        scalar_zero_extend(&dst->value, (unsigned)a->size * 8);
        return true;
}

static void extend(struct reg *dst, const struct insn *insn)
{
        if (!(insn->flags & INSN_SIGNED))
                return;
        scalar_sign_extend(&dst->value, insn->size * 8u, false);
        dst->id = 0;
}

static struct reg unknown_bytes(unsigned size)
{
        struct scalar any = scalar_bytes(size);

        return reg_scalar(&any);
}

static int load_stack(struct access *a, struct state *state, const struct insn *insn)
{
        unsigned at;
        struct slot *slot = exact_slot(a, state, &at);
        struct reg *dst = &state->regs[insn->dst];
        int r;

        if (slot && holds_pointer(slot) && at == 0 && a->size == 8 && slot->init == 0xff) {
                *dst = slot->value;
                return 0;
        }
        r = check_stack_data(a, state);
        if (r)
                return r;
        if (!slot || !load_stored(state, a, slot, at, dst))
                *dst = unknown_bytes(insn->size);
        extend(dst, insn);
        return 0;
}

int transfer_load(struct transfer *t, struct state *state, uint32_t slot)
{
        const struct insn *insn = &t->program->insns[slot];
        struct access a = {.t = t,
                           .pointer = &state->regs[insn->src],
                           .size = insn->size,
                           .slot = slot,
                           .offset = insn->offset,
                           .reg = insn->src};
        int r;

        r = resolve(&a);
        if (r)
                return r;
        if (a.pointer->kind == REG_STACK)
                return load_stack(&a, state, insn);
        state->regs[insn->dst] = unknown_bytes(insn->size);
        extend(&state->regs[insn->dst], insn);
        return 0;
}

/* A pointer, or what may be one, goes whole into a slot of the stack and nowhere else. */
static int store_pointer(struct access *a, struct state *state, const struct reg *value)
{
        bool may_outlive = value->kind == REG_MIXED || (value->kind == REG_STACK && value->index > a->pointer->index);
        struct slot *slot;
        unsigned at;
        int r;

        if (a->pointer->kind != REG_STACK)
                return fault_set(a->t->fault, FAULT_POINTER_LEAK, a->slot, "stores %s into %s", reg_kind_name(value),
                                 reg_kind_name(a->pointer));
        if (may_outlive && a->pointer->index != state->depth - 1)
                return fault_set(a->t->fault, FAULT_POINTER_LEAK, a->slot,
                                 "stores %s into the frame of a caller, which may outlive what it points to",
                                 reg_kind_name(value));
        if (a->size != 8)
                return fault_set(a->t->fault, FAULT_POINTER_PARTIAL, a->slot,
                                 "stores %" PRIu64 " of a pointer's 8 bytes", a->size);
        if (a->first != a->last || a->first % 8 != 0)
                return fault_set(a->t->fault, FAULT_ALIGNMENT, a->slot,
                                 "stores a pointer at r10%+" PRIi64 "%s; expected a multiple of 8", a->first,
                                 a->first == a->last ? "" : " or above");
        r = overwrite_stack(a, state);
        slot = r == 0 ? exact_slot(a, state, &at) : NULL;
        if (!slot)
                return r;
        slot->at = 0;
        slot->size = 8;
        slot->value = *value;
        return 0;
}

/* Remember the number that a store with a known place left. */
static void remember(struct access *a, struct state *state, struct reg *value)
{
        unsigned at;
        struct slot *slot = exact_slot(a, state, &at);

        if (!slot)
                return;
        slot->at = (uint8_t)at;
        slot->size = (uint8_t)a->size;
        reg_forget_shift(value);
        if (a->size == 8 || value->value.word.umax <= width_mask((unsigned)a->size * 8)) {
                transfer_share(state, value);
                slot->value = *value;
                return;
        }
        slot->value = *value;
        slot->value.id = 0;
        scalar_zero_extend(&slot->value.value, (unsigned)a->size * 8);
}

int transfer_store(struct transfer *t, struct state *state, uint32_t slot)
{
        const struct insn *insn = &t->program->insns[slot];
        struct access a = {.t = t,
                           .pointer = &state->regs[insn->dst],
                           .size = insn->size,
                           .slot = slot,
                           .offset = insn->offset,
                           .reg = insn->dst,
                           .is_write = true};
        struct reg constant, *value = &state->regs[insn->src];
        int r;

        if (insn->flags & INSN_IMM) {
                constant = reg_const((uint64_t)insn->imm);
                value = &constant;
        } else if (value->kind == REG_UNINIT) {
                return fault_set(t->fault, FAULT_UNINIT_REGISTER, slot,
                                 "reads r%u, which was not written on every path here", insn->src);
        }
        r = resolve(&a);
        if (r)
                return r;
        if (value->kind != REG_SCALAR)
                return store_pointer(&a, state, value);
        if (a.pointer->kind != REG_STACK)
                return 0;
        r = overwrite_stack(&a, state);
        if (r == 0)
                remember(&a, state, value);
        return r;
}

static int check_atomic(const struct access *a, const struct state *state, const struct insn *insn)
{
        const unsigned operands[] = {insn->src, 0};
        unsigned n = insn->op == ATOMIC_CMPXCHG ? 2 : 1;

        for (unsigned i = 0; i < n; i++)
                if (state->regs[operands[i]].kind == REG_UNINIT)
                        return fault_set(a->t->fault, FAULT_UNINIT_REGISTER, a->slot,
                                         "reads r%u, which was not written on every path here", operands[i]);
        if (a->pointer->kind == REG_CONTEXT)
                return fault_set(a->t->fault, FAULT_NO_ACCESS, a->slot, "an atomic operation on the context");
        for (unsigned i = 0; i < n; i++)
                if (state->regs[operands[i]].kind != REG_SCALAR)
                        return fault_set(a->t->fault, FAULT_POINTER_LEAK, a->slot, "an atomic operation with r%u, %s",
                                         operands[i], reg_kind_name(&state->regs[operands[i]]));
        return 0;
}

int transfer_atomic(struct transfer *t, struct state *state, uint32_t slot)
{
        const struct insn *insn = &t->program->insns[slot];
        struct access a = {.t = t,
                           .pointer = &state->regs[insn->dst],
                           .size = insn->size,
                           .slot = slot,
                           .offset = insn->offset,
                           .reg = insn->dst,
                           .is_write = true};
        int r;

        r = check_atomic(&a, state, insn);
        if (r == 0)
                r = resolve(&a);
        if (r)
                return r;
        if (!is_aligned(&a))
                return fault_set(t->fault, FAULT_ALIGNMENT, slot,
                                 "an atomic operation on %u bytes at an offset that need not be a multiple of %u",
                                 insn->size, insn->size);
        if (a.pointer->kind == REG_STACK) {
                r = check_stack_data(&a, state);
                if (r == 0)
                        r = overwrite_stack(&a, state);
                if (r)
                        return r;
        }
        if (insn->flags & INSN_FETCH)
                state->regs[insn->op == ATOMIC_CMPXCHG ? 0 : insn->src] = unknown_bytes(insn->size);
        return 0;
}

int transfer_readable(struct transfer *t, const struct state *state, uint32_t slot, unsigned reg, uint64_t size)
{
        struct access a = {.t = t,
                           .pointer = &state->regs[reg],
                           .size = size,
                           .slot = slot,
                           .reg = (uint8_t)reg,
                           .is_helper = true};
        int r;

        r = resolve(&a);
        if (r == 0 && a.pointer->kind == REG_STACK)
                r = check_stack_data(&a, state);
        return r;
}
