/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/text.h"
#include "bpfvm/helper.h"
#include "bpfvm/verifier-internal.h"

/* Registers whose content decides whether an instruction is allowed. */
static uint16_t looked_at(const struct insn *insn)
{
        const struct helper *helper;
        uint16_t regs = insn_reads(insn);

        if (insn->kind != INSN_CALL_HELPER)
                return regs;
        helper = helper_find((uint64_t)insn->imm);
        for (unsigned i = 0; helper && i < HELPER_ARGS; i++)
                if (helper->args[i] != HELPER_ARG_NONE)
                        regs |= (uint16_t)(2u << i);
        return regs;
}

/* The slots of a frame, where it is one of the stack's bytes that was refused. */
static void add_stack(const struct verifier *v, const struct state *state, struct text *out)
{
        enum fault_kind kind = v->verdict->fault.kind;

        if (kind != FAULT_UNINIT_STACK && kind != FAULT_POINTER_PARTIAL && kind != FAULT_POINTER_LEAK)
                return;
        for (size_t i = 0; i < state->n_slots; i++) {
                text_add(out, out->len > 0 ? "; " : "");
                slot_format(&state->slots[i], state, v->program, out);
        }
}

static void keep_path(struct verifier *v, uint32_t way)
{
        size_t n = 0;

        for (uint32_t w = way; w != 0; w = v->ways[w].before)
                n++;
        v->verdict->path = calloc(n + 1, sizeof(*v->verdict->path));
        if (!v->verdict->path)
                return;
        v->verdict->n_path = n;
        for (uint32_t w = way; w != 0; w = v->ways[w].before)
                v->verdict->path[--n] = v->ways[w].step;
}

void verifier_explain(struct verifier *v, const struct insn *insn, const struct state *state)
{
        _cleanup_text_ struct text known = {0};
        enum fault_kind kind = v->verdict->fault.kind;
        uint16_t regs = looked_at(insn);

        for (unsigned reg = 0; reg < INSN_FRAME_POINTER; reg++) {
                if (!(regs >> reg & 1) || (state->regs[reg].kind == REG_UNINIT && kind != FAULT_UNINIT_REGISTER))
                        continue;
                text_addf(&known, "%sr%u: ", known.len > 0 ? "; " : "", reg);
                reg_format(&state->regs[reg], v->program, state->depth, &known);
        }
        add_stack(v, state, &known);
        free(v->verdict->known);
        v->verdict->known = text_take(&known);
        if (v->kind == RUN_EXPLAINED)
                keep_path(v, state->path);
}
