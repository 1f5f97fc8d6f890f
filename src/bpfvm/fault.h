/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

/* What can be wrong with a program. One list for the decoder, the graph, the verifier and the interpreter's checks, so
 * that what the verifier refuses and what the interpreter faults on can be compared. Names are stable: they are
 * printed, written to JSON and tested (fault_name()); new kinds go before FAULT_KINDS, none is renamed. */
enum fault_kind {
        FAULT_NONE,

        /* Encoding: found by the decoder, before anything is known of values. */
        FAULT_LENGTH,         /* not a whole number of 8-byte slots, or none, or more than the cap */
        FAULT_OPCODE,         /* no instruction has this opcode */
        FAULT_REGISTER,       /* a register number above 10 */
        FAULT_FRAME_POINTER,  /* the instruction writes r10 */
        FAULT_RESERVED_FIELD, /* a field that the instruction does not use is not zero */
        FAULT_FIELD_VALUE,    /* a field that selects the operation has a value that selects none */
        FAULT_WIDE_TAIL,      /* the second half of a wide load is missing or not all zero around its immediate */
        FAULT_UNSUPPORTED,    /* legal in RFC 9669, but nothing here can give it a meaning */

        /* Graph: found from jumps and calls alone. */
        FAULT_JUMP_RANGE,   /* a jump or call leaves the program, or a jump leaves its subprogram */
        FAULT_JUMP_TAIL,    /* a jump or call into the second half of a wide load */
        FAULT_FALL_THROUGH, /* the last instruction of a subprogram can be passed */
        FAULT_UNREACHABLE,  /* no path of the graph leads here */
        FAULT_RECURSION,    /* a subprogram can call itself */
        FAULT_CALL_DEPTH,   /* more frames than the cap */
        FAULT_LOOP,         /* a back edge where the profile allows none */

        /* Values: refused by the verifier, and found by the checking interpreter when they happen. */
        FAULT_UNINIT_REGISTER, /* a register is read before it was written on this path (or after a call clobbered it)
                                */
        FAULT_UNINIT_STACK,    /* a stack byte is read, or passed to a helper, before it was written */
        FAULT_NOT_POINTER,     /* memory is accessed through a scalar */
        FAULT_NULL,            /* memory is accessed through what may be (is) null */
        FAULT_BOUNDS,          /* an access is not wholly inside what its pointer points into */
        FAULT_READ_ONLY,       /* a write to memory that is read only for programs */
        FAULT_ALIGNMENT,       /* an atomic or a spilled pointer that is not aligned to its size */
        FAULT_POINTER_ARITH,   /* arithmetic on a pointer that is not addition or subtraction of a scalar */
        FAULT_POINTER_COMPARE, /* a comparison of a pointer that would tell its value */
        FAULT_POINTER_LEAK,    /* a pointer reaches the result, a map, the context or a scalar argument */
        FAULT_POINTER_PARTIAL, /* part of a spilled pointer is read, or part of a pointer stored */
        FAULT_NO_ACCESS,       /* the pointer is of a kind that is never accessed directly (a map handle) */
        FAULT_DIVISION,        /* division or modulo by an immediate zero */
        FAULT_SHIFT,           /* a shift by an immediate that is not below the width */

        /* Helpers and maps. */
        FAULT_HELPER_UNKNOWN,   /* no helper has this number */
        FAULT_HELPER_FORBIDDEN, /* the profile, or the right to actuate, does not allow it */
        FAULT_HELPER_ARGUMENT,  /* an argument is not of the kind that the helper's prototype asks for */
        FAULT_MAP,              /* no such map, or a definition that its kind does not allow */

        /* Resources. */
        FAULT_INSN_LIMIT,    /* more instructions than the profile allows */
        FAULT_STACK_LIMIT,   /* more stack than the profile allows */
        FAULT_MAP_LIMIT,     /* more maps, or larger ones, than the profile allows */
        FAULT_CONTEXT_LIMIT, /* more chains of calls, or instructions in all of them, than the verifier goes through */
        FAULT_STATE_LIMIT,   /* the verifier's states would take more memory than it may */
        FAULT_TERMINATION,   /* no argument that a loop ends */
        FAULT_COST,          /* the worst case costs more than the budget */
        FAULT_UTILISATION,   /* cost times rate, summed over what is attached, is above the cap */
        FAULT_CERTIFICATE,   /* a certificate does not show that the program is safe */
        FAULT_STEP_LIMIT,    /* the interpreter's step limit was reached */

        FAULT_KINDS
};

/* The subject of a fault that has no instruction. */
#define FAULT_NO_SLOT UINT32_MAX

/* One fault. @slot counts 8-byte slots of the program from 0, so a wide load counts twice, as in other tools. */
struct fault {
        enum fault_kind kind;
        uint32_t slot;
        char text[256]; /* what is there, what was expected; without kind and slot */
};

/* fault_name - stable name of a kind: lower case with "-", such as "uninit-stack"; "none" for FAULT_NONE */
const char *fault_name(enum fault_kind kind);

/* fault_meaning - one sentence for documentation and `assay bpf check --list-faults` */
const char *fault_meaning(enum fault_kind kind);

/* fault_find - the kind of a name, or FAULT_KINDS if there is none */
enum fault_kind fault_find(const char *name);

/* fault_set - record a fault; NULL records nothing
 * @slot:    instruction, or FAULT_NO_SLOT
 * @format:  what is there and what was expected
 *
 * Return: 1, the outcome "refused", so that a caller can write `return fault_set(...)`.
 */
int fault_set(struct fault *fault, enum fault_kind kind, uint32_t slot, const char *format, ...) _printf_(4, 5);
