/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpfvm/insn.h"

/* What single operations compute on concrete values (RFC 9669, sections 4 and 5.3), written plainly. The checking
 * interpreter runs on these; transfer functions and the fast interpreter are tested against them. */

/* eval_alu - dst OP operand
 * @size: 4 or 8 bytes; with 4 the upper halves of @dst and @operand are ignored, the result's is zero
 * @from: bytes of ALU_MOVSX's source, else ignored
 */
uint64_t eval_alu(enum alu_op op, uint8_t size, uint8_t from, uint64_t dst, uint64_t operand);

/* eval_swap - @value with the bytes of its low @size (2, 4, 8) swapped as @op says on this host, upper bytes zero */
uint64_t eval_swap(enum swap_op op, uint8_t size, uint64_t value);

/* eval_branch - whether dst OP operand holds; with @size 4 on the low halves */
bool eval_branch(enum branch_op op, uint8_t size, uint64_t dst, uint64_t operand);

/* eval_atomic - what memory holds after, given @old (zero-extended), the source register and r0 (for CMPXCHG). Only the
 * low @size bytes count. */
uint64_t eval_atomic(enum atomic_op op, uint8_t size, uint64_t old, uint64_t src, uint64_t r0);

/* eval_extend - the low @size bytes (1, 2, 4, 8) of @value, sign-extended or zero-extended to 64 bits */
uint64_t eval_extend(uint64_t value, uint8_t size, bool is_signed);
