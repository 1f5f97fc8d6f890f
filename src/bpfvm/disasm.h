/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bpfvm/insn.h"

/* Instructions as text, in the notation that LLVM and the Linux kernel use: "r1 = *(u32 *)(r2 + 8)", "w0 += 1",
 * "if r1 s> 5 goto +3". What is printed here, assemble.h reads. */

#define DISASM_SIZE 96 /* bytes that any instruction fits into, NUL included */

/* disasm_insn - the instruction at @slot
 * @buf: at least DISASM_SIZE bytes
 *
 * Return: @buf. INSN_TAIL gives "".
 */
char *disasm_insn(const struct insn *insn, uint32_t slot, char buf[static DISASM_SIZE]);
