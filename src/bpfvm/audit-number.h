/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpfvm/insn.h"
#include "bpfvm/scalar.h"

/* The auditor's own arithmetic on sets of words. It shares no code with scalar.c, whose results it checks, and is made
 * to be read: a set is cut into its half below and its half above the sign, where both readings of a word order it the
 * same way; each operation works on such pieces, one shift amount at a time. It is slower, and nowhere less precise. */

/* Bounds of words of some width, in both readings. */
struct audit_bounds {
        uint64_t umin, umax;
        int64_t smin, smax;
};

struct audit_number {
        uint64_t ones, maybe; /* bits that are 1; bits that may be */
        struct audit_bounds word, half;
};

struct audit_number audit_number_const(uint64_t value);
struct audit_number audit_number_any(void);

/* audit_number_bytes - the numbers of @n bytes, zero-extended */
struct audit_number audit_number_bytes(unsigned n);

/* audit_number_of - what a certificate claims. Return: false if no number is like that. */
bool audit_number_of(const struct scalar *claim, struct audit_number *ret);

/* audit_number_within - whether all of @n is what a certificate claims */
bool audit_number_within(const struct audit_number *n, const struct scalar *claim);

static inline bool audit_number_is_const(const struct audit_number *n)
{
        return n->ones == n->maybe;
}

/* audit_number_alu - @a @op @b, with @size 4 in 32 bits; not for ALU_MOVSX */
struct audit_number audit_number_alu(enum alu_op op, const struct audit_number *a, const struct audit_number *b,
                                     uint8_t size);

/* audit_number_extend - the low @from bytes, sign-extended to @size bytes if @is_signed, then zero-extended */
struct audit_number audit_number_extend(const struct audit_number *n, unsigned from, bool is_signed, unsigned size);

/* audit_number_swap - the low @bytes bytes in reverse order */
struct audit_number audit_number_swap(const struct audit_number *n, unsigned bytes);

/* audit_number_branch - narrow both operands by a branch that was @taken or passed. Return: false if it cannot go so.
 */
bool audit_number_branch(enum branch_op op, uint8_t size, bool taken, struct audit_number *a, struct audit_number *b);

/* audit_number_between - signed bounds */
struct audit_number audit_number_between(int64_t least, int64_t most);
