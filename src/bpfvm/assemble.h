/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

/* assemble_text - encoded slots from text
 * @text: one instruction a line, as disasm.h and LLVM print them; "name:" alone on a line, or before an instruction, is
 * a label, which goto, if and call may name; "call NAME" is a helper where no label has that name; ".slot" and 16
 *        hexadecimal digits is a slot as it is, for what is no instruction; "#" and ";" begin a comment
 * @name: what to call the text in an error
 * @ret, @ret_len: the bytes, which the caller frees
 *
 * What it writes may still be refused by the decoder: a jump may lead anywhere, a register of a store may be any.
 * Return: 0; -EINVAL with line and column in @err; -ENOMEM.
 */
int assemble_text(struct span text, const char *name, uint8_t **ret, size_t *ret_len, struct err *err);
