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

static const uint8_t kind_classes[INSN_EXIT + 1] = {
        [INSN_ALU] = COST_ALU,         [INSN_SWAP] = COST_ALU,      [INSN_LOAD] = COST_LOAD,
        [INSN_STORE] = COST_STORE,     [INSN_ATOMIC] = COST_ATOMIC, [INSN_WIDE] = COST_ALU,
        [INSN_JUMP] = COST_JUMP,       [INSN_BRANCH] = COST_JUMP,   [INSN_CALL_HELPER] = COST_CALL,
        [INSN_CALL_LOCAL] = COST_CALL, [INSN_EXIT] = COST_RETURN,
};

static const uint8_t alu_classes[ALU_OPS] = {
        [ALU_MUL] = COST_MULTIPLY, [ALU_DIV] = COST_DIVIDE,  [ALU_MOD] = COST_DIVIDE,
        [ALU_SDIV] = COST_DIVIDE,  [ALU_SMOD] = COST_DIVIDE,
};

static inline enum cost_class class_of(const struct insn *insn)
{
        return insn->kind == INSN_ALU ? alu_classes[insn->op] : kind_classes[insn->kind];
}

enum cost_class cost_class_of(const struct insn *insn)
{
        return class_of(insn);
}

uint64_t cost_of_slots(const struct cost_table *table, const struct insn *insns, size_t n)
{
        uint64_t ps = 0;

        for (size_t i = 0; i < n; i++) {
                const struct helper *helper;

                if (insns[i].kind == INSN_TAIL)
                        continue;
                ps += table->class_ps[class_of(&insns[i])];
                if (insns[i].kind != INSN_CALL_HELPER)
                        continue;
                helper = helper_find((uint64_t)insns[i].imm);
                if (helper)
                        ps += table->helper_ps[helper_index(helper)];
        }
        return ps;
}

uint64_t cost_of(const struct cost_table *table, const struct insn *insn)
{
        return cost_of_slots(table, insn, 1);
}
