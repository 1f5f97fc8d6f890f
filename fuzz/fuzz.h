/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* LLVMFuzzerTestOneInput - what each fuzz-NAME.c defines: give @size bytes at @data to a parser, release all that came
 * out of it, and abort() where a promise of the parser is broken. Return: 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
