/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/eval.h"

uint64_t eval_extend(uint64_t value, uint8_t size, bool is_signed)
{
        switch (size) {
        case 1:
                return is_signed ? (uint64_t)(int64_t)(int8_t)value : (uint8_t)value;
        case 2:
                return is_signed ? (uint64_t)(int64_t)(int16_t)value : (uint16_t)value;
        case 4:
                return is_signed ? (uint64_t)(int64_t)(int32_t)value : (uint32_t)value;
        default:
                return value;
        }
}

/* Division and modulo. Signed operands come sign-extended, so that the one overflow, the least value by -1, is met in
 * 64 bits only; there it wraps to itself. */
static uint64_t divide(enum alu_op op, uint64_t a, uint64_t b)
{
        switch (op) {
        case ALU_DIV:
                return b == 0 ? 0 : a / b;
        case ALU_MOD:
                return b == 0 ? a : a % b;
        case ALU_SDIV:
                if (b == 0)
                        return 0;
                return b == UINT64_MAX ? -a : (uint64_t)((int64_t)a / (int64_t)b);
        default: /* ALU_SMOD */
                if (b == 0)
                        return a;
                return b == UINT64_MAX ? 0 : (uint64_t)((int64_t)a % (int64_t)b);
        }
}

uint64_t eval_alu(enum alu_op op, uint8_t size, uint8_t from, uint64_t dst, uint64_t operand)
{
        bool is_signed = op == ALU_SDIV || op == ALU_SMOD || op == ALU_ARSH;
        uint64_t a = eval_extend(dst, size, is_signed), b = eval_extend(operand, size, is_signed), r = 0;
        unsigned shift = (unsigned)(operand & (8u * size - 1));

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
        case ALU_MOD:
        case ALU_SDIV:
        case ALU_SMOD:
                r = divide(op, a, b);
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
                r = a << shift;
                break;
        case ALU_RSH:
                r = a >> shift;
                break;
        case ALU_ARSH:
                r = (uint64_t)((int64_t)a >> shift);
                break;
        case ALU_MOV:
                r = b;
                break;
        case ALU_MOVSX:
                r = eval_extend(operand, from, true);
                break;
        case ALU_NEG:
                r = -a;
                break;
        case ALU_OPS:
                break;
        }
        return eval_extend(r, size, false);
}

uint64_t eval_swap(enum swap_op op, uint8_t size, uint64_t value)
{
        bool is_host_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

        if ((op == SWAP_LE && !is_host_big) || (op == SWAP_BE && is_host_big))
                return eval_extend(value, size, false);
        switch (size) {
        case 2:
                return __builtin_bswap16((uint16_t)value);
        case 4:
                return __builtin_bswap32((uint32_t)value);
        default:
                return __builtin_bswap64(value);
        }
}

bool eval_branch(enum branch_op op, uint8_t size, uint64_t dst, uint64_t operand)
{
        uint64_t a = eval_extend(dst, size, false), b = eval_extend(operand, size, false);
        int64_t sa = (int64_t)eval_extend(dst, size, true), sb = (int64_t)eval_extend(operand, size, true);

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

uint64_t eval_atomic(enum atomic_op op, uint8_t size, uint64_t old, uint64_t src, uint64_t r0)
{
        uint64_t r = old;

        switch (op) {
        case ATOMIC_ADD:
                r = old + src;
                break;
        case ATOMIC_OR:
                r = old | src;
                break;
        case ATOMIC_AND:
                r = old & src;
                break;
        case ATOMIC_XOR:
                r = old ^ src;
                break;
        case ATOMIC_XCHG:
                r = src;
                break;
        case ATOMIC_CMPXCHG:
                r = eval_extend(r0, size, false) == eval_extend(old, size, false) ? src : old;
                break;
        }
        return eval_extend(r, size, false);
}
