/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/disasm.h"

#include <inttypes.h>
#include <stdio.h>

#include "bpfvm/helper.h"
#include "bpfvm/syntax-internal.h"

const char *const syntax_alu[ALU_OPS] = {
        [ALU_ADD] = "+=",    [ALU_SUB] = "-=",   [ALU_MUL] = "*=",   [ALU_DIV] = "/=",
        [ALU_MOD] = "%=",    [ALU_SDIV] = "s/=", [ALU_SMOD] = "s%=", [ALU_OR] = "|=",
        [ALU_AND] = "&=",    [ALU_XOR] = "^=",   [ALU_LSH] = "<<=",  [ALU_RSH] = ">>=",
        [ALU_ARSH] = "s>>=", [ALU_MOV] = "=",    [ALU_MOVSX] = "",   [ALU_NEG] = "",
};

const char *const syntax_branch[BRANCH_OPS] = {
        [BRANCH_EQ] = "==",  [BRANCH_NE] = "!=",   [BRANCH_GT] = ">",   [BRANCH_GE] = ">=",
        [BRANCH_LT] = "<",   [BRANCH_LE] = "<=",   [BRANCH_SGT] = "s>", [BRANCH_SGE] = "s>=",
        [BRANCH_SLT] = "s<", [BRANCH_SLE] = "s<=", [BRANCH_SET] = "&",
};

const char *const syntax_atomic[] = {
        [ATOMIC_ADD] = "add", [ATOMIC_OR] = "or",     [ATOMIC_AND] = "and",
        [ATOMIC_XOR] = "xor", [ATOMIC_XCHG] = "xchg", [ATOMIC_CMPXCHG] = "cmpxchg",
};

const char *const syntax_swap[] = {[SWAP_LE] = "le", [SWAP_BE] = "be", [SWAP_ALWAYS] = "bswap"};

/* The second operand: a register of the operation's width, or the immediate as a signed number. */
static void format_operand(const struct insn *insn, char prefix, char *buf, size_t size)
{
        if (insn->flags & INSN_IMM)
                snprintf(buf, size, "%" PRIi32, (int32_t)insn->imm);
        else
                snprintf(buf, size, "%c%u", prefix, insn->src);
}

/* What stands in memory at a register and an offset: "(u32 *)(r1 + 8)". */
static void format_place(const struct insn *insn, unsigned reg, char *buf, size_t size)
{
        snprintf(buf, size, "(%c%u *)(r%u %c %d)", insn->flags & INSN_SIGNED ? 's' : 'u', 8u * insn->size, reg,
                 insn->offset < 0 ? '-' : '+', insn->offset < 0 ? -insn->offset : insn->offset);
}

static void format_alu(const struct insn *insn, char *buf, size_t size)
{
        char prefix = insn->size == 4 ? 'w' : 'r', operand[16];

        format_operand(insn, prefix, operand, sizeof(operand));
        if (insn->op == ALU_NEG)
                snprintf(buf, size, "%c%u = -%c%u", prefix, insn->dst, prefix, insn->dst);
        else if (insn->op == ALU_MOVSX)
                snprintf(buf, size, "%c%u = (s%u)%s", prefix, insn->dst, 8u * insn->from, operand);
        else
                snprintf(buf, size, "%c%u %s %s", prefix, insn->dst, syntax_alu[insn->op], operand);
}

static void format_atomic(const struct insn *insn, char *buf, size_t size)
{
        const char *op = syntax_atomic[insn->op];
        char place[48];

        format_place(insn, insn->dst, place, sizeof(place));
        if (insn->op == ATOMIC_CMPXCHG)
                snprintf(buf, size, "r0 = atomic_%s(%s, r0, r%u)", op, place, insn->src);
        else if (insn->op == ATOMIC_XCHG)
                snprintf(buf, size, "r%u = atomic_%s(%s, r%u)", insn->src, op, place, insn->src);
        else if (insn->flags & INSN_FETCH)
                snprintf(buf, size, "r%u = atomic_fetch_%s(%s, r%u)", insn->src, op, place, insn->src);
        else
                snprintf(buf, size, "lock *%s %s r%u", place,
                         insn->op == ATOMIC_ADD   ? "+="
                         : insn->op == ATOMIC_OR  ? "|="
                         : insn->op == ATOMIC_AND ? "&="
                                                  : "^=",
                         insn->src);
}

static void format_memory(const struct insn *insn, char *buf, size_t size)
{
        char place[48], operand[16];

        format_place(insn, insn->kind == INSN_LOAD ? insn->src : insn->dst, place, sizeof(place));
        format_operand(insn, 'r', operand, sizeof(operand));
        if (insn->kind == INSN_LOAD)
                snprintf(buf, size, "r%u = *%s", insn->dst, place);
        else
                snprintf(buf, size, "*%s = %s", place, operand);
}

static void format_wide(const struct insn *insn, char *buf, size_t size)
{
        if (insn->op == WIDE_CONSTANT)
                snprintf(buf, size, "r%u = 0x%" PRIx64 " ll", insn->dst, (uint64_t)insn->imm);
        else if (insn->op == WIDE_MAP)
                snprintf(buf, size, "r%u = map[%" PRIu32 "]", insn->dst, insn->map);
        else if (insn->imm == 0)
                snprintf(buf, size, "r%u = map_value[%" PRIu32 "]", insn->dst, insn->map);
        else
                snprintf(buf, size, "r%u = map_value[%" PRIu32 "] + %" PRIi64, insn->dst, insn->map, insn->imm);
}

static void format_call(const struct insn *insn, char *buf, size_t size)
{
        const struct helper *helper = helper_find((uint64_t)insn->imm);

        if (helper)
                snprintf(buf, size, "call %s", helper->name);
        else
                snprintf(buf, size, "call %" PRIu32, (uint32_t)insn->imm);
}

char *disasm_insn(const struct insn *insn, uint32_t slot, char buf[static DISASM_SIZE])
{
        int32_t distance = (int32_t)(insn->target - slot - 1);
        char prefix = insn->size == 4 ? 'w' : 'r', operand[16];

        buf[0] = 0;
        switch ((enum insn_kind)insn->kind) {
        case INSN_TAIL:
                break;
        case INSN_ALU:
                format_alu(insn, buf, DISASM_SIZE);
                break;
        case INSN_SWAP:
                snprintf(buf, DISASM_SIZE, "r%u = %s%u r%u", insn->dst, syntax_swap[insn->op], 8u * insn->size,
                         insn->dst);
                break;
        case INSN_LOAD:
        case INSN_STORE:
                format_memory(insn, buf, DISASM_SIZE);
                break;
        case INSN_ATOMIC:
                format_atomic(insn, buf, DISASM_SIZE);
                break;
        case INSN_WIDE:
                format_wide(insn, buf, DISASM_SIZE);
                break;
        case INSN_JUMP:
                snprintf(buf, DISASM_SIZE, "%s %+" PRIi32, insn->size == 4 ? "gotol" : "goto", distance);
                break;
        case INSN_BRANCH:
                format_operand(insn, prefix, operand, sizeof(operand));
                snprintf(buf, DISASM_SIZE, "if %c%u %s %s goto %+" PRIi32, prefix, insn->dst, syntax_branch[insn->op],
                         operand, distance);
                break;
        case INSN_CALL_HELPER:
                format_call(insn, buf, DISASM_SIZE);
                break;
        case INSN_CALL_LOCAL:
                snprintf(buf, DISASM_SIZE, "call %+" PRIi32, distance);
                break;
        case INSN_EXIT:
                snprintf(buf, DISASM_SIZE, "exit");
                break;
        }
        return buf;
}
