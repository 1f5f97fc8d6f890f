/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "bpfvm/program.h"

/* Programs of known shape, on which the time of verification is measured: the ten of a published benchmark, of any
 * length, and one with as many paths as branching can give. They need no maps, and r1 is a __sk_buff, so that the
 * running kernel verifies the same bytes as a socket filter. */

#define SPECIMEN_SIZE_MAX 20000 /* the N of add:N and diamonds:N */

/* What a name may be, for messages. */
#define SPECIMEN_EXPECTED                                                                                              \
        "minimal, arithmetic, add:N (3 or more), linear, one-branch, multi-branch or diamonds:N (1 or more), N at "    \
        "most 20000"

/* specimen_is - whether there is a specimen of that name */
bool specimen_is(const char *name);

/* specimen_new - an object with one program
 * @name:  add:N has N instructions in a row, which add the numbers from 1 on modulo 100; diamonds:N has N branches in a
 *         row, the i-th on bit i modulo 31 of the context's first word, with or without adding 2^(i modulo 31) to what
 *         is returned
 *
 * Return: 0; -EINVAL (kind usage) where there is no such specimen; -ENOMEM.
 */
int specimen_new(const char *name, struct object **ret, struct err *err);
