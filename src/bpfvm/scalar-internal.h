/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bpfvm/scalar.h"

/* A word of one width without a half: what the operations of a scalar are made of. */
struct scalar_part {
        struct tnum tnum;
        struct range range;
};

struct scalar_part scalar_part_alu(enum alu_op op, const struct scalar_part *a, const struct scalar_part *b,
                                   unsigned bits);

/* Return: false if the branch cannot go that way. */
bool scalar_part_refine(enum branch_op op, bool taken, struct scalar_part *a, struct scalar_part *b, unsigned bits);
