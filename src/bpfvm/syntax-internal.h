/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bpfvm/insn.h"

/* How operations are written, for the disassembler and the assembler. */
extern const char *const syntax_alu[ALU_OPS];       /* "+=", ...; "" for those that are not written dst OP operand */
extern const char *const syntax_branch[BRANCH_OPS]; /* "==", ... */
extern const char *const syntax_atomic[];           /* by enum atomic_op: "add", ... */
extern const char *const syntax_swap[];             /* by enum swap_op: "le", "be", "bswap" */
