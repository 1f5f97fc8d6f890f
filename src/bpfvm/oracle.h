/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "bpfvm/embed.h"
#include "bpfvm/fault.h"
#include "bpfvm/profile.h"
#include "bpfvm/program.h"
#include "bpfvm/store.h"

/* The checking interpreter: runs any legal program, verified or not, and knows of every value what it is. It stops with
 * a fault (kinds FAULT_UNINIT_REGISTER to FAULT_HELPER_ARGUMENT) at the instruction that breaks a rule, which makes it
 * the judge of the verifier: an accepted program never faults here, and a counterexample is one if it faults here.
 *
 * The rules, beside those that fault.h states:
 * - At entry r1 is the context (the scalar 0 without one) and r10 the frame; all else is uninitialised. A called
 *   function gets r1..r5 as they are and a frame of its own; on return r0 is its result, r1..r5 are uninitialised,
 *   r6..r9 as before the call. r0 may be uninitialised at a function's exit, not at the program's.
 * - A lookup's result may be null until it, or a copy, is compared with the immediate 0 for (in)equality in 64 bits;
 *   then all copies are pointers, or the scalar 0. Until then arithmetic on it is FAULT_POINTER_ARITH; access is
 *   FAULT_NULL if it is null.
 * - Pointers are moved in 64 bits, added to scalars in 64 bits (either order) and have scalars subtracted; every other
 *   operation on them, in 32 bits any, is FAULT_POINTER_ARITH. Map handles allow none.
 * - A pointer compares for (in)equality with the immediate 0 in 64 bits; every other comparison is
 * FAULT_POINTER_COMPARE.
 * - Pointers are stored only into the stack, 8 bytes at once (else FAULT_POINTER_PARTIAL), at a multiple of 8 from r10
 *   (else FAULT_ALIGNMENT). Read back whole at the same place they are pointers again; any other read of those bytes is
 *   FAULT_POINTER_PARTIAL. Bytes of one that a write leaves are uninitialised. Storing one elsewhere, by an atomic, or
 *   passing one, or memory that holds one, to a helper that wants data is FAULT_POINTER_LEAK.
 * - A pointer into a frame must not outlive it: returning it, or storing it into an older frame, is FAULT_POINTER_LEAK.
 * - Atomics are aligned to their size (FAULT_ALIGNMENT), and work on the stack and on map values, not on the context
 *   (FAULT_NO_ACCESS). On the stack the bytes have to be initialised. Other accesses may be unaligned.
 * - Memory for a helper is in the stack, a map's value, or a context without aligned ranges; a scalar or a handle there
 *   is FAULT_HELPER_ARGUMENT, as are sizes out of range and handles of the wrong kind of map.
 */

enum value_kind {
        VALUE_UNINIT,
        VALUE_SCALAR,
        VALUE_CONTEXT,
        VALUE_STACK,     /* into frame number @index */
        VALUE_MAP_VALUE, /* into one value of map number @index */
        VALUE_MAP,       /* handle of map number @index */
};

struct value {
        uint8_t kind;     /* enum value_kind */
        bool may_be_null; /* VALUE_MAP_VALUE: a lookup's result that was not compared with 0 yet; null if @bits is 0 */
        uint32_t index;
        uint32_t lookup; /* which lookup it came from: equal for copies; 0 otherwise */
        uint64_t bits;   /* the 64 bits of the register */
        uint64_t origin; /* pointers: where offset 0 is; of a frame, its end (r10) */
};

/* value_offset - of a pointer, bytes from the start of what it points into; of a frame, from r10 (so -8 is a slot) */
static inline int64_t value_offset(const struct value *value)
{
        return (int64_t)(value->bits - value->origin);
}

enum stack_byte {
        STACK_UNINIT,
        STACK_DATA,
        STACK_POINTER, /* part of a pointer; the value is in spills */
};

struct oracle_frame {
        struct value regs[INSN_REGISTERS];
        uint8_t bytes[PROFILE_FRAME_BYTES] __attribute__((aligned(8))); /* bytes[512 + offset] */
        uint8_t states[PROFILE_FRAME_BYTES];                            /* enum stack_byte */
        struct value spills[PROFILE_FRAME_BYTES / 8];                   /* of the 8 bytes at 8 * index */
        uint32_t call_slot;                                             /* of the call that made it */
};

/* What an observer sees before each instruction. */
struct oracle_view {
        uint32_t slot;
        uint32_t depth; /* frames; the running one is frames[depth - 1] */
        const struct oracle_frame *frames;
        uint64_t steps; /* instructions run before this one, in all frames */
};

struct oracle_options {
        uint64_t max_steps;            /* 0: a million */
        const struct embed *embed;     /* NULL: the defaults */
        const struct profile *profile; /* helpers that it forbids are FAULT_HELPER_FORBIDDEN; NULL allows all */
        bool may_actuate;              /* with a profile: the right to call actuating helpers */

        /* Only memory safety: accesses are checked by address against context, frames and map values, everything
         * starts as 0, and no rule about kinds of values holds. r2 is the context's size. For programs of which only
         * the result matters. */
        bool is_lax;

        /* Called before each instruction; non-zero stops the run. May be NULL. */
        int (*observe)(void *userdata, const struct oracle_view *view);
        void *userdata;
};

struct oracle_result {
        uint64_t r0;
        uint64_t steps; /* instructions run, the faulting one not included */
};

/* oracle_run - run a legal program once
 * @store:   maps, made from the program's definitions; changed by the run
 * @context: program->context.size bytes, read and written by the program; NULL where that is 0
 * @options: NULL for the defaults
 *
 * Return: 0 with @ret; 1 with @fault (and @ret's steps); 2 if the observer stopped it; -EINVAL if @program is not legal
 * or the store is not for it; -ENOMEM.
 */
int oracle_run(const struct program *program, struct store *store, uint8_t *context,
               const struct oracle_options *options, struct oracle_result *ret, struct fault *fault, struct err *err);
