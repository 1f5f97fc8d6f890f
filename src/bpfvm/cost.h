/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bpfvm/helper.h"
#include "bpfvm/insn.h"

/* What running an instruction costs at most, in picoseconds of the interpreter. The default table is an assumption for
 * a slow core; `assay bpf calibrate` fits one to a machine. */

enum cost_class {
        COST_ALU,
        COST_MULTIPLY,
        COST_DIVIDE,
        COST_LOAD,
        COST_STORE,
        COST_ATOMIC,
        COST_JUMP,   /* jumps and branches, taken or not */
        COST_CALL,   /* local call with its frame, without the callee */
        COST_RETURN, /* exit of a subprogram or of the program */
        COST_ENTRY,  /* once an invocation */
        COST_CLASSES
};

#define COST_HELPERS_MAX 16

struct cost_table {
        char name[32];
        uint32_t class_ps[COST_CLASSES];
        uint32_t helper_ps[COST_HELPERS_MAX]; /* by helper_index() */
};

/* cost_class_name - stable name: "alu", "multiply", ... */
const char *cost_class_name(enum cost_class c);

/* cost_class_of - the class of an instruction; a helper call is COST_CALL and costs helper_ps besides */
enum cost_class cost_class_of(const struct insn *insn);

/* cost_default - the table that is used when none is given; static */
const struct cost_table *cost_default(void);

/* cost_of - picoseconds of one instruction: its class, and the helper's own for a known helper's call */
uint64_t cost_of(const struct cost_table *table, const struct insn *insn);

/* cost_of_slots - picoseconds of @n slots one after the other */
uint64_t cost_of_slots(const struct cost_table *table, const struct insn *insns, size_t n);
