/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "bpfvm/helper.h"
#include "bpfvm/verifier-internal.h"

/* What is never read again need not agree where paths meet. A register counts as read wherever the checks look at it,
 * so that dropping the others changes no verdict. */

#define CLOBBERED 0x3f /* r0 to r5, by a call */
#define ARGUMENTS 0x3e /* r1 to r5 */

static uint16_t helper_reads(const struct insn *insn)
{
        const struct helper *helper = helper_find((uint64_t)insn->imm);
        unsigned n = 0;

        while (helper && n < HELPER_ARGS && helper->args[n] != HELPER_ARG_NONE)
                n++;
        return (uint16_t)((2u << n) - 2);
}

static uint16_t step_back(const struct insn *insn, uint16_t live)
{
        switch ((enum insn_kind)insn->kind) {
        case INSN_TAIL:
                return live;
        case INSN_CALL_HELPER:
                return (uint16_t)((live & ~CLOBBERED) | helper_reads(insn));
        case INSN_CALL_LOCAL:
                return (uint16_t)((live & ~CLOBBERED) | ARGUMENTS);
        case INSN_EXIT:
                return 1;
        default:
                return (uint16_t)((live & ~insn_writes(insn)) | insn_reads(insn));
        }
}

static uint16_t live_at_end(const struct verifier *v, const struct cfg_block *block)
{
        uint16_t live = 0;

        for (unsigned i = 0; i < 2; i++)
                if (block->next[i] != CFG_NONE)
                        live |= v->live[block->next[i]];
        return live;
}

static uint16_t live_at_start(const struct verifier *v, const struct cfg_block *block)
{
        uint16_t live = live_at_end(v, block);

        for (uint32_t slot = block->end; slot-- > block->start;)
                live = step_back(&v->program->insns[slot], live);
        return live;
}

int verifier_live(struct verifier *v)
{
        bool has_changed = true;

        /* Backwards through the order one round is enough, but for what comes round a loop. */
        while (has_changed) {
                has_changed = false;
                for (uint32_t i = v->cfg->n_blocks; i-- > 0;) {
                        uint32_t block = v->cfg->order[i];
                        uint16_t live = live_at_start(v, &v->cfg->blocks[block]);

                        has_changed = has_changed || (live != v->live[block] && v->cfg->n_back_edges > 0);
                        v->live[block] = live;
                }
        }
        return 0;
}
