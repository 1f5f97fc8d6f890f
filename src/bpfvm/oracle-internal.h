/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bpfvm/oracle.h"

/* One run of the checking interpreter. */
struct run {
        const struct program *program;
        struct store *store;
        uint8_t *context;
        struct oracle_options options;
        struct embed embed;
        struct fault *fault;

        struct oracle_frame *frames; /* PROFILE_CALL_DEPTH of them */
        uint32_t depth;
        uint32_t slot;
        uint64_t steps;
        uint32_t n_lookups;
};

static inline struct oracle_frame *run_frame(struct run *run)
{
        return &run->frames[run->depth - 1];
}

static inline struct value *run_reg(struct run *run, unsigned reg)
{
        return &run_frame(run)->regs[reg];
}

static inline struct value value_scalar(uint64_t bits)
{
        return (struct value){.kind = VALUE_SCALAR, .bits = bits};
}

static inline bool value_is_pointer(const struct value *value)
{
        return value->kind != VALUE_UNINIT && value->kind != VALUE_SCALAR;
}

/* oracle_value_name - "a number", "the context", ... for the text of a fault */
const char *oracle_value_name(const struct value *value);

/* oracle_load, oracle_store, oracle_atomic - carry out one access. Return: 0; 1 with a fault. */
int oracle_load(struct run *run, const struct insn *insn);
int oracle_store(struct run *run, const struct insn *insn);
int oracle_atomic(struct run *run, const struct insn *insn);

/* oracle_readable - memory that a helper may read
 * Return: 0 with its address in @ret; 1 with a fault.
 */
int oracle_readable(struct run *run, unsigned reg, uint64_t size, const uint8_t **ret);

/* oracle_call_helper - check the arguments by the prototype and carry out the call. Return: 0; 1 with a fault. */
int oracle_call_helper(struct run *run, const struct insn *insn);
