/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/insn.h"

#define BIT(reg) (uint16_t)(1u << (reg))

bool insn_has_operand(const struct insn *insn)
{
        switch (insn->kind) {
        case INSN_ALU:
                return insn->op != ALU_NEG;
        case INSN_STORE:
        case INSN_BRANCH:
        case INSN_ATOMIC:
                return true;
        default:
                return false;
        }
}

static uint16_t operand_reads(const struct insn *insn)
{
        return insn_has_operand(insn) && !(insn->flags & INSN_IMM) ? BIT(insn->src) : 0;
}

uint16_t insn_reads(const struct insn *insn)
{
        switch (insn->kind) {
        case INSN_ALU:
                if (insn->op == ALU_MOV || insn->op == ALU_MOVSX)
                        return operand_reads(insn);
                return BIT(insn->dst) | operand_reads(insn);
        case INSN_SWAP:
                return BIT(insn->dst);
        case INSN_LOAD:
                return BIT(insn->src);
        case INSN_STORE:
        case INSN_BRANCH:
                return BIT(insn->dst) | operand_reads(insn);
        case INSN_ATOMIC:
                return BIT(insn->dst) | BIT(insn->src) | (insn->op == ATOMIC_CMPXCHG ? BIT(0) : 0);
        case INSN_EXIT:
                return BIT(0);
        default:
                return 0;
        }
}

uint16_t insn_writes(const struct insn *insn)
{
        switch (insn->kind) {
        case INSN_ALU:
        case INSN_SWAP:
        case INSN_LOAD:
        case INSN_WIDE:
                return BIT(insn->dst);
        case INSN_ATOMIC:
                if (!(insn->flags & INSN_FETCH))
                        return 0;
                return insn->op == ATOMIC_CMPXCHG ? BIT(0) : BIT(insn->src);
        case INSN_CALL_HELPER:
        case INSN_CALL_LOCAL:
                return BIT(0);
        default:
                return 0;
        }
}
