/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bpfvm/audit-number.h"

typedef __int128 audit_wide;

/* Words from first to last, both below the sign or both from it on; none if first is above last. */
struct audit_piece {
        uint64_t first, last;
};

extern const struct audit_piece audit_nothing;

/* audit_all_of - the greatest word of @bits */
uint64_t audit_all_of(unsigned bits);

/* audit_read - a word as the integer that one of its readings makes of it */
static inline audit_wide audit_read(uint64_t word, unsigned bits, bool is_signed)
{
        bool is_negative = is_signed && word >> (bits - 1) & 1;

        return is_negative ? (audit_wide)word - ((audit_wide)1 << bits) : (audit_wide)word;
}

static inline audit_wide audit_abs(audit_wide x)
{
        return x < 0 ? -x : x;
}

/* audit_pieces_of - what lies within bounds, cut at the sign */
void audit_pieces_of(const struct audit_bounds *b, unsigned bits, struct audit_piece ret[2]);

/* audit_bounds_of - the least bounds around both pieces. Return: false if there is nothing in them. */
bool audit_bounds_of(const struct audit_piece p[2], unsigned bits, struct audit_bounds *ret);

/* audit_add_integers - add to pieces all words that the integers from @low to @high are, modulo the width */
void audit_add_integers(struct audit_piece to[2], audit_wide low, audit_wide high, unsigned bits);

/* audit_narrow - keep what lies within other bounds too. Return: false if that is nothing. */
bool audit_narrow(struct audit_bounds *b, const struct audit_bounds *by);

/* audit_number_agree - let all parts narrow each other. Return: false if no number is left. */
bool audit_number_agree(struct audit_number *n);
