/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/macro.h"
#include "bpfvm/eval.h"
#include "bpfvm/oracle-internal.h"

/* One access: bytes [offset, offset + size) from where a pointer points. */
struct access {
        const struct value *pointer;
        unsigned reg;
        int32_t offset;
        uint64_t size;
        bool is_write;
        bool is_helper; /* on behalf of a helper: no field of the context */
};

static uint64_t bytes_get(const uint8_t *at, uint8_t size)
{
        uint64_t value = 0;

        memcpy(&value, at, size); /* the host is little endian, as programs are */
        return value;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "programs are decoded as little endian");

static int fault_bounds(struct run *run, const struct access *a, const char *what, int64_t first, int64_t from,
                        int64_t to)
{
        return fault_set(run->fault, FAULT_BOUNDS, run->slot,
                         "%s %" PRIu64 " byte%s at offset %" PRIi64 " of %s, which has offsets %" PRIi64 " to %" PRIi64,
                         a->is_write ? "writes" : "reads", a->size, a->size == 1 ? "" : "s", first, what, from, to - 1);
}

/* Whether [first, first + size) lies in [from, to), for any values. */
static bool lies_in(int64_t first, uint64_t size, int64_t from, int64_t to)
{
        return first >= from && first <= to && size <= (uint64_t)(to - first);
}

static int resolve_context(struct run *run, const struct access *a, uint8_t **ret)
{
        const struct context_def *def = &run->program->context;
        int64_t first = (int64_t)((uint64_t)value_offset(a->pointer) + (uint64_t)(int64_t)a->offset);

        for (size_t i = 0; i < def->n_ranges; i++) {
                const struct context_range *range = &def->ranges[i];

                if (!lies_in(first, a->size, range->offset, (int64_t)range->offset + range->size))
                        continue;
                if (a->is_helper && range->is_aligned)
                        return fault_set(run->fault, FAULT_HELPER_ARGUMENT, run->slot,
                                         "r%u is the context, whose fields no helper may read as memory", a->reg);
                if (range->is_aligned && (uint64_t)first % a->size != 0)
                        return fault_set(run->fault, FAULT_ALIGNMENT, run->slot,
                                         "%" PRIu64 " bytes at offset %" PRIi64
                                         " of the context; expected a multiple of "
                                         "%" PRIu64,
                                         a->size, first, a->size);
                if (a->is_write && !range->is_writable)
                        return fault_set(run->fault, FAULT_READ_ONLY, run->slot,
                                         "writes offset %" PRIi64 " of the context, which is read only", first);
                *ret = run->context + first;
                return 0;
        }
        if (def->n_ranges > 1 && lies_in(first, a->size, 0, def->size))
                return fault_set(run->fault, FAULT_BOUNDS, run->slot,
                                 "bytes from offset %" PRIi64 " on of the context, but programs may access some fields "
                                 "of %s only, and each by itself",
                                 first, def->name);
        return fault_bounds(run, a, "the context", first, 0, def->size);
}

static int resolve_value(struct run *run, const struct access *a, uint8_t **ret)
{
        const struct map_def *def = store_def(run->store, a->pointer->index);
        int64_t first = (int64_t)((uint64_t)value_offset(a->pointer) + (uint64_t)(int64_t)a->offset);

        if (a->pointer->may_be_null && a->pointer->bits == 0)
                return fault_set(run->fault, FAULT_NULL, run->slot, "r%u is null: map %s has no such key", a->reg,
                                 def->name);
        if (!lies_in(first, a->size, 0, def->value_size))
                return fault_bounds(run, a, "a map's value", first, 0, def->value_size);
        if (a->is_write && def->is_read_only)
                return fault_set(run->fault, FAULT_READ_ONLY, run->slot, "writes to map %s, which is read only",
                                 def->name);
        *ret = (uint8_t *)(uintptr_t)a->pointer->origin + first;
        return 0;
}

static int resolve_stack(struct run *run, const struct access *a, uint8_t **ret)
{
        int64_t first = (int64_t)((uint64_t)value_offset(a->pointer) + (uint64_t)(int64_t)a->offset);

        if (!lies_in(first, a->size, -PROFILE_FRAME_BYTES, 0))
                return fault_bounds(run, a, "the stack", first, -PROFILE_FRAME_BYTES, 0);
        *ret = run->frames[a->pointer->index].bytes + PROFILE_FRAME_BYTES + first;
        return 0;
}

/* By address alone, in what the program may see. */
static int resolve_lax(struct run *run, const struct access *a, uint8_t **ret)
{
        uint64_t address = a->pointer->bits + (uint64_t)(int64_t)a->offset;

        if (address - (uintptr_t)run->context < run->program->context.size) {
                uint64_t first = address - (uintptr_t)run->context;

                if (!lies_in((int64_t)first, a->size, 0, run->program->context.size))
                        return fault_bounds(run, a, "the context", (int64_t)first, 0, run->program->context.size);
                *ret = run->context + first;
                return 0;
        }
        for (uint32_t i = 0; i < run->depth; i++) {
                uint64_t first = address - (uintptr_t)run->frames[i].bytes;

                if (first >= PROFILE_FRAME_BYTES)
                        continue;
                if (a->size > PROFILE_FRAME_BYTES - first)
                        return fault_bounds(run, a, "the stack", (int64_t)first - PROFILE_FRAME_BYTES,
                                            -PROFILE_FRAME_BYTES, 0);
                *ret = run->frames[i].bytes + first;
                return 0;
        }
        for (uint32_t i = 0; i < store_count(run->store); i++) {
                uint8_t *entry = store_entry_at(run->store, i, address);
                const struct map_def *def = store_def(run->store, i);

                if (!entry)
                        continue;
                if (!lies_in((int64_t)(address - (uintptr_t)entry), a->size, 0, def->value_size))
                        return fault_bounds(run, a, "a map's value", (int64_t)(address - (uintptr_t)entry), 0,
                                            def->value_size);
                if (a->is_write && def->is_read_only)
                        return fault_set(run->fault, FAULT_READ_ONLY, run->slot, "writes to map %s, which is read only",
                                         def->name);
                *ret = entry + (address - (uintptr_t)entry);
                return 0;
        }
        return fault_set(run->fault, address < 4096 ? FAULT_NULL : FAULT_BOUNDS, run->slot,
                         "%s %" PRIu64 " bytes at an address outside the context, the stack and all maps",
                         a->is_write ? "writes" : "reads", a->size);
}

static int resolve(struct run *run, const struct access *a, uint8_t **ret)
{
        if (run->options.is_lax)
                return resolve_lax(run, a, ret);
        switch (a->pointer->kind) {
        case VALUE_CONTEXT:
                return resolve_context(run, a, ret);
        case VALUE_STACK:
                return resolve_stack(run, a, ret);
        case VALUE_MAP_VALUE:
                return resolve_value(run, a, ret);
        default:
                if (a->is_helper)
                        return fault_set(run->fault, FAULT_HELPER_ARGUMENT, run->slot,
                                         "r%u is %s; the helper expects a pointer to memory", a->reg,
                                         oracle_value_name(a->pointer));
                if (a->pointer->kind == VALUE_MAP)
                        return fault_set(run->fault, FAULT_NO_ACCESS, run->slot,
                                         "r%u is the handle of a map; look a value up first", a->reg);
                return fault_set(run->fault, FAULT_NOT_POINTER, run->slot,
                                 "r%u is the number 0x%" PRIx64 ", not a pointer", a->reg, a->pointer->bits);
        }
}

/* What the stack knows of bytes at @at: NULL if they are not on the stack, or nothing is tracked. */
static struct oracle_frame *stack_frame_of(struct run *run, const struct access *a)
{
        return !run->options.is_lax && a->pointer->kind == VALUE_STACK ? &run->frames[a->pointer->index] : NULL;
}

/* Stack bytes that are read as data: all initialised, none of a pointer. */
static int check_stack_data(struct run *run, const struct oracle_frame *frame, size_t first, uint64_t size,
                            bool is_helper)
{
        for (size_t i = first; i < first + size; i++) {
                if (frame->states[i] == STACK_UNINIT)
                        return fault_set(run->fault, FAULT_UNINIT_STACK, run->slot,
                                         "%s stack byte r10%+d, which was not written",
                                         is_helper ? "passes to the helper" : "reads", (int)i - PROFILE_FRAME_BYTES);
                if (frame->states[i] == STACK_POINTER)
                        return fault_set(run->fault, is_helper ? FAULT_POINTER_LEAK : FAULT_POINTER_PARTIAL, run->slot,
                                         is_helper ? "passes stack byte r10%+d, which is part of a pointer, to a helper"
                                                   : "reads stack byte r10%+d, which is part of a pointer",
                                         (int)i - PROFILE_FRAME_BYTES);
        }
        return 0;
}

/* Stack bytes that are overwritten with data: of a pointer that keeps some of its bytes, those are lost. */
static void overwrite_stack(struct oracle_frame *frame, size_t first, uint64_t size)
{
        size_t begin = first & ~(size_t)7, end = (first + size + 7) & ~(size_t)7;

        for (size_t slot = begin; slot < end; slot += 8)
                if (frame->states[slot] == STACK_POINTER)
                        memset(frame->states + slot, STACK_UNINIT, 8);
        memset(frame->states + first, STACK_DATA, size);
}

int oracle_load(struct run *run, const struct insn *insn)
{
        const struct access a = {.pointer = run_reg(run, insn->src), insn->src, insn->offset, insn->size};
        struct oracle_frame *frame = stack_frame_of(run, &a);
        uint8_t *at;
        int r;

        r = resolve(run, &a, &at);
        if (r)
                return r;
        if (frame) {
                size_t first = (size_t)(at - frame->bytes);

                if (insn->size == 8 && first % 8 == 0 && frame->states[first] == STACK_POINTER) {
                        *run_reg(run, insn->dst) = frame->spills[first / 8];
                        return 0;
                }
                r = check_stack_data(run, frame, first, insn->size, false);
                if (r)
                        return r;
        }
        *run_reg(run, insn->dst) =
                value_scalar(eval_extend(bytes_get(at, insn->size), insn->size, insn->flags & INSN_SIGNED));
        return 0;
}

static int store_pointer(struct run *run, const struct access *a, const struct value *value, uint8_t *at)
{
        struct oracle_frame *frame = stack_frame_of(run, a);
        size_t first;

        if (!frame)
                return fault_set(run->fault, FAULT_POINTER_LEAK, run->slot, "stores %s into %s",
                                 oracle_value_name(value), oracle_value_name(a->pointer));
        if (value->kind == VALUE_STACK && value->index > a->pointer->index)
                return fault_set(run->fault, FAULT_POINTER_LEAK, run->slot,
                                 "stores a pointer to a frame into the frame of a caller, which outlives it");
        first = (size_t)(at - frame->bytes);
        if (a->size != 8)
                return fault_set(run->fault, FAULT_POINTER_PARTIAL, run->slot,
                                 "stores %" PRIu64 " of a pointer's 8 bytes", a->size);
        if (first % 8 != 0)
                return fault_set(run->fault, FAULT_ALIGNMENT, run->slot,
                                 "stores a pointer at r10%+d; expected a multiple of 8",
                                 (int)first - PROFILE_FRAME_BYTES);

        memcpy(at, &value->bits, 8);
        memset(frame->states + first, STACK_POINTER, 8);
        frame->spills[first / 8] = *value;
        return 0;
}

int oracle_store(struct run *run, const struct insn *insn)
{
        const struct access a = {
                .pointer = run_reg(run, insn->dst), insn->dst, insn->offset, insn->size, .is_write = true};
        struct value value = insn->flags & INSN_IMM ? value_scalar((uint64_t)insn->imm) : *run_reg(run, insn->src);
        struct oracle_frame *frame = stack_frame_of(run, &a);
        uint8_t *at;
        int r;

        r = resolve(run, &a, &at);
        if (r)
                return r;
        if (value_is_pointer(&value))
                return store_pointer(run, &a, &value, at);
        if (frame)
                overwrite_stack(frame, (size_t)(at - frame->bytes), insn->size);
        memcpy(at, &value.bits, insn->size);
        return 0;
}

static int check_atomic(struct run *run, const struct insn *insn, const struct access *a)
{
        if (run->options.is_lax)
                return 0;
        if (a->pointer->kind == VALUE_CONTEXT)
                return fault_set(run->fault, FAULT_NO_ACCESS, run->slot, "an atomic operation on the context");
        if (value_is_pointer(run_reg(run, insn->src)) ||
            (insn->op == ATOMIC_CMPXCHG && value_is_pointer(run_reg(run, 0))))
                return fault_set(run->fault, FAULT_POINTER_LEAK, run->slot, "an atomic operation with a pointer");
        return 0;
}

int oracle_atomic(struct run *run, const struct insn *insn)
{
        const struct access a = {
                .pointer = run_reg(run, insn->dst), insn->dst, insn->offset, insn->size, .is_write = true};
        struct oracle_frame *frame = stack_frame_of(run, &a);
        uint64_t old, new;
        uint8_t *at;
        int r;

        r = check_atomic(run, insn, &a);
        if (r)
                return r;
        r = resolve(run, &a, &at);
        if (r)
                return r;
        if ((uintptr_t)at % insn->size != 0)
                return fault_set(run->fault, FAULT_ALIGNMENT, run->slot,
                                 "an atomic operation on %u bytes at an address that is not a multiple of %u",
                                 insn->size, insn->size);
        if (frame) {
                r = check_stack_data(run, frame, (size_t)(at - frame->bytes), insn->size, false);
                if (r)
                        return r;
        }

        old = bytes_get(at, insn->size);
        new = eval_atomic(insn->op, insn->size, old, run_reg(run, insn->src)->bits, run_reg(run, 0)->bits);
        memcpy(at, &new, insn->size);
        if (insn->flags & INSN_FETCH)
                *run_reg(run, insn->op == ATOMIC_CMPXCHG ? 0 : insn->src) = value_scalar(old);
        return 0;
}

int oracle_readable(struct run *run, unsigned reg, uint64_t size, const uint8_t **ret)
{
        const struct access a = {.pointer = run_reg(run, reg), .reg = reg, .size = size, .is_helper = true};
        struct oracle_frame *frame = stack_frame_of(run, &a);
        uint8_t *at;
        int r;

        r = resolve(run, &a, &at);
        if (r == 0 && frame)
                r = check_stack_data(run, frame, (size_t)(at - frame->bytes), size, true);
        if (r)
                return r;
        *ret = at;
        return 0;
}
