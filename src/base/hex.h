/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/* Bytes as hexadecimal text. */

/* hex_digit - value of a hexadecimal digit in either case, or -1 */
int hex_digit(uint8_t c);

/* hex_decode - the bytes that @text spells
 * @text:       pairs of digits; white space may stand between pairs, not inside one; no "0x"
 * @ret, @ret_len: the bytes, which the caller frees (not NULL even for none)
 * @ret_offset: on -EINVAL, where in @text the fault is (its length if a digit is missing at the end)
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
int hex_decode(struct span text, uint8_t **ret, size_t *ret_len, size_t *ret_offset);
