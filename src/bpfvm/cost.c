/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/cost.h"

#include "base/macro.h"

/* Six nanoseconds for a plain instruction is what an in-order core at about 1.5 GHz needs with a cold branch predictor;
 * memory and division twice that. Helpers stand in the order of helper_table(). */
static const struct cost_table assumed = {
        .name = "assumed",
        .class_ps = {[COST_ALU] = 6000,
                     [COST_MULTIPLY] = 6000,
                     [COST_DIVIDE] = 12000,
                     [COST_LOAD] = 12000,
                     [COST_STORE] = 12000,
                     [COST_ATOMIC] = 24000,
                     [COST_JUMP] = 6000,
                     [COST_CALL] = 24000,
                     [COST_RETURN] = 12000,
                     [COST_ENTRY] = 570000},
        .helper_ps = {/* map lookup, update, delete */ 120000, 120000, 120000,
                      /* time, trace, random */ 60000, 1200000, 24000,
                      /* ring */ 120000,
                      /* gpio set and get, pwm, motors */ 60000, 60000, 60000, 120000},
};

const char *cost_class_name(enum cost_class c)
{
        static const char *const names[COST_CLASSES] = {"alu",    "multiply", "divide", "load",   "store",
                                                        "atomic", "jump",     "call",   "return", "entry"};

        return c >= 0 && c < COST_CLASSES ? names[c] : "unknown";
}

const struct cost_table *cost_default(void)
{
        return &assumed;
}

static enum cost_class class_of_alu(uint8_t op)
{
        switch (op) {
        case ALU_MUL:
                return COST_MULTIPLY;
        case ALU_DIV:
        case ALU_MOD:
        case ALU_SDIV:
        case ALU_SMOD:
                return COST_DIVIDE;
        default:
                return COST_ALU;
        }
}

enum cost_class cost_class_of(const struct insn *insn)
{
        switch (insn->kind) {
        case INSN_ALU:
                return class_of_alu(insn->op);
        case INSN_LOAD:
                return COST_LOAD;
        case INSN_STORE:
                return COST_STORE;
        case INSN_ATOMIC:
                return COST_ATOMIC;
        case INSN_JUMP:
        case INSN_BRANCH:
                return COST_JUMP;
        case INSN_CALL_HELPER:
        case INSN_CALL_LOCAL:
                return COST_CALL;
        case INSN_EXIT:
                return COST_RETURN;
        default:
                return COST_ALU;
        }
}

uint64_t cost_of(const struct cost_table *table, const struct insn *insn)
{
        uint64_t ps = table->class_ps[cost_class_of(insn)];

        if (insn->kind == INSN_CALL_HELPER) {
                const struct helper *helper = helper_find((uint64_t)insn->imm);
                if (helper)
                        ps += table->helper_ps[helper_index(helper)];
        }
        return ps;
}
