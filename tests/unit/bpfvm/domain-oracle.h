/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an operation gives for words of a few bits, written from RFC 9669 with plain integers and apart from the code
 * under test; and sets of such words as bit masks. */

#include <stdbool.h>
#include <stdint.h>

#include "bpfvm/insn.h"

static inline int oracle_signed(int x, unsigned bits)
{
        return x >= 1 << (bits - 1) ? x - (1 << bits) : x;
}

/* floor(x / 2^n), by repeated halving that does not lean on how the compiler shifts */
static inline int oracle_halve(int x, int n)
{
        for (; n > 0; n--)
                x = x >= 0 ? x / 2 : -((1 - x) / 2);
        return x;
}

static inline int oracle_alu(enum alu_op op, int a, int b, unsigned bits)
{
        int size = 1 << bits, sa = oracle_signed(a, bits), sb = oracle_signed(b, bits);
        /* Widths that are no power of two are only used for amounts below the width. */
        int amount = b % (int)bits, r = 0;

        switch (op) {
        case ALU_ADD:
                r = a + b;
                break;
        case ALU_SUB:
                r = a - b;
                break;
        case ALU_MUL:
                r = a * b;
                break;
        case ALU_DIV:
                r = b == 0 ? 0 : a / b;
                break;
        case ALU_MOD:
                r = b == 0 ? a : a % b;
                break;
        case ALU_SDIV:
                r = sb == 0 ? 0 : sa / sb;
                break;
        case ALU_SMOD:
                r = sb == 0 ? sa : sa % sb;
                break;
        case ALU_OR:
                r = a | b;
                break;
        case ALU_AND:
                r = a & b;
                break;
        case ALU_XOR:
                r = a ^ b;
                break;
        case ALU_LSH:
                r = a * (1 << amount);
                break;
        case ALU_RSH:
                r = a / (1 << amount);
                break;
        case ALU_ARSH:
                r = oracle_halve(sa, amount);
                break;
        case ALU_MOV:
                r = b;
                break;
        case ALU_NEG:
                r = -a;
                break;
        case ALU_MOVSX:
        case ALU_OPS:
                break;
        }
        return ((r % size) + size) % size;
}

static inline bool oracle_branch(enum branch_op op, int a, int b, unsigned bits)
{
        int sa = oracle_signed(a, bits), sb = oracle_signed(b, bits);

        switch (op) {
        case BRANCH_EQ:
                return a == b;
        case BRANCH_NE:
                return a != b;
        case BRANCH_GT:
                return a > b;
        case BRANCH_GE:
                return a >= b;
        case BRANCH_LT:
                return a < b;
        case BRANCH_LE:
                return a <= b;
        case BRANCH_SGT:
                return sa > sb;
        case BRANCH_SGE:
                return sa >= sb;
        case BRANCH_SLT:
                return sa < sb;
        case BRANCH_SLE:
                return sa <= sb;
        case BRANCH_SET:
                return (a & b) != 0;
        case BRANCH_OPS:
                break;
        }
        return false;
}

/* The operations that take two operands of one width. */
static const enum alu_op oracle_ops[] = {ALU_ADD, ALU_SUB, ALU_MUL, ALU_DIV, ALU_MOD,  ALU_SDIV, ALU_SMOD, ALU_OR,
                                         ALU_AND, ALU_XOR, ALU_LSH, ALU_RSH, ALU_ARSH, ALU_MOV,  ALU_NEG};
