/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "bpfvm/insn.h"
#include "bpfvm/profile.h"
#include "bpfvm/scalar.h"

/* What is known at a point of a program: an abstract state stands for all concrete states in which each register and
 * each byte of the stack is what it says. */

enum reg_kind {
        REG_UNINIT,  /* may hold anything, and is not to be read */
        REG_MIXED,   /* initialised, but a number on one path and a pointer on another, or different pointers */
        REG_SCALAR,  /* a number: @value */
        REG_CONTEXT, /* pointer, @value bytes behind the start of the context */
        REG_STACK,   /* pointer into frame @index, @value bytes from its r10 (so below 0) */
        REG_VALUE,   /* pointer, @value bytes behind the start of a value of map @index, or null with @may_be_null */
        REG_MAP,     /* handle of map @index */
};

struct reg {
        uint8_t kind;
        /* REG_VALUE: a lookup's result that was not compared with 0 yet, or the number 0. Its offset is 0. */
        bool may_be_null;
        /* REG_SCALAR: 0, or REG_SHIFTED_*, within a block: the number is that with @id, shifted left by 32 bits, which
         * shifted back is that number again. Compilers extend numbers of 32 bits so. */
        uint16_t index;
        /* Not 0: equal for copies of one number, or of one lookup's result: what a branch says of one holds for all. */
        uint32_t id;
        struct scalar value;
};

#define REG_SHIFTED_UNSIGNED 1 /* it fits 32 bits without a sign */
#define REG_SHIFTED_SIGNED   2 /* it fits 32 bits with one */

/* reg_forget_shift - only a shift back makes use of it */
static inline void reg_forget_shift(struct reg *reg)
{
        if (reg->kind == REG_SCALAR && reg->index != 0)
                reg->id = reg->index = 0;
}

static inline bool reg_is_pointer(const struct reg *reg)
{
        return reg->kind >= REG_CONTEXT;
}

/* reg_scalar - a number; reg_const - a known one */
static inline struct reg reg_scalar(const struct scalar *value)
{
        return (struct reg){.kind = REG_SCALAR, .value = *value};
}

static inline struct reg reg_const(uint64_t value)
{
        return (struct reg){.kind = REG_SCALAR, .value = scalar_const(value)};
}

/* The eight bytes of the stack at a multiple of 8, or a register that a caller keeps over a call. What no slot stands
 * for is not initialised. */
struct slot {
        uint16_t place; /* STATE_PLACE() or STATE_SAVED() */
        uint8_t init;   /* bit n: byte n is initialised */
        /* Bytes [at, at + size) were stored together and hold @value, zero-extended; size 0: nothing is known of them.
         * A pointer and REG_MIXED have all eight. */
        uint8_t at, size;
        struct reg value;
};

/* The stack slot of @frame whose bytes are at r10 - 8 * (@index + 1), and where register 6 + @index is kept. */
#define STATE_FRAME_PLACES       128
#define STATE_PLACE(frame, n)    ((uint16_t)((frame)*STATE_FRAME_PLACES + (n)))
#define STATE_SAVED(frame, n)    ((uint16_t)((frame)*STATE_FRAME_PLACES + 64 + (n)))
#define STATE_PLACE_FRAME(place) ((place) / STATE_FRAME_PLACES)
#define STATE_PLACE_INDEX(place) ((place) % STATE_FRAME_PLACES)
#define STATE_SAVED_REGISTERS    4

struct state {
        struct state *next; /* of a list */
        uint32_t path;      /* how it was reached: see verifier-internal.h */
        uint32_t last_id;   /* ids up to here may be in use */
        uint8_t depth;      /* frames; the running one is depth - 1 */
        uint16_t n_slots, n_allocated;
        struct slot *slots; /* ascending by place */
        struct reg regs[INSN_REGISTERS];
};

/* States come and go at every block; they are kept for use again, and counted. */
struct state_pool {
        struct state *spare;
        size_t bytes, peak_bytes; /* allocated now, and at most */
        size_t max_bytes;         /* no more than this is allocated */
};

void state_pool_done(struct state_pool *pool);

/* state_new - a state without frames, everything uninitialised; NULL if memory ran out or the pool is at its limit */
struct state *state_new(struct state_pool *pool);

/* state_copy - a copy, not in any list; NULL as above */
struct state *state_copy(struct state_pool *pool, const struct state *state);

/* state_release - give a state (or NULL) back to its pool; state_release_list - all of a list */
void state_release(struct state_pool *pool, struct state *state);
void state_release_list(struct state_pool *pool, struct state *list);

/* state_find - the slot of a place, or NULL */
struct slot *state_find(const struct state *state, uint16_t place);

/* state_insert - the slot of a place, made (with no byte initialised) where there is none
 *
 * Return: NULL if memory ran out; pointers to other slots are invalid afterwards.
 */
struct slot *state_insert(struct state_pool *pool, struct state *state, uint16_t place);

/* state_drop_frame - forget the slots of the running frame and leave it */
void state_drop_frame(struct state *state);

/* state_keep - at the end of a block: registers that are not in the set @live become uninitialised; r10 stays */
static inline void state_keep(struct state *state, uint16_t live)
{
        for (unsigned reg = 0; reg < INSN_FRAME_POINTER; reg++) {
                if (!(live >> reg & 1))
                        state->regs[reg].kind = REG_UNINIT;
                else
                        reg_forget_shift(&state->regs[reg]);
        }
}

/* How two states of one point compare. */
enum state_order {
        STATE_INCLUDES, /* the first includes the second */
        STATE_WITHIN,   /* the second includes the first */
        STATE_APART,
};

/* What state_compare() counts for a register or slot whose kinds differ: the join loses it, or what it points to. */
#define STATE_DISTANCE_KIND 65536

/* state_compare - whether one state includes the other
 * @ret_distance: for STATE_APART, how much their join would lose, as a rough count; else 0
 */
enum state_order state_compare(const struct state *a, const struct state *b, unsigned *ret_distance);

/* state_includes - whether every concrete state of @b is one of @a, as far as can be shown */
bool state_includes(const struct state *a, const struct state *b);

/* Bounds to jump to when those of a loop's state do not settle: ascending; see verifier-loop.c. */
struct state_thresholds {
        const int64_t *values;
        size_t n;
};

/* state_join - @dst becomes a state that includes both
 * @thresholds: NULL, or: bounds of @dst that grow, grow to one of these at least (widening)
 */
void state_join(struct state *dst, const struct state *src, const struct state_thresholds *thresholds);

/* reg_kind_name - what a register holds, without its value: "a number", "a pointer to the stack", ... */
const char *reg_kind_name(const struct reg *reg);

struct program;

/* reg_format - what a register holds, for people: "a number from 0 to 255", "r10-16"
 * @depth: frames of its state, to tell frames of callers; names of maps are @program's
 */
void reg_format(const struct reg *reg, const struct program *program, unsigned depth, struct text *out);

/* slot_format - where a slot of @state is and what it holds: "[r10-8]: 5" */
void slot_format(const struct slot *slot, const struct state *state, const struct program *program, struct text *out);

/* state_format - all that is initialised, on one line: "r0: a number 5; r10-8: r1 ..." */
void state_format(const struct state *state, const struct program *program, struct text *out);
