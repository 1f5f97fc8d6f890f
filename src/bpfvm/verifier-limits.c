/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/carve.h"
#include "base/macro.h"
#include "bpfvm/verifier-internal.h"

/* Work that one call of a function may be, with all that it calls. Sums stick at the end of their range. */
struct work {
        uint64_t insns, edges, contexts;
        uint64_t length; /* instructions if loops were passed through once */
};

static uint64_t add_up(uint64_t a, uint64_t b)
{
        uint64_t sum;

        return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t times(uint64_t a, uint64_t b)
{
        uint64_t product;

        return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* How often a block may be gone through for one call of its function: once when all around it has settled, and for each
 * loop around it as often as that loop's head may grow. */
static uint64_t passes(const struct verifier *v, uint32_t block)
{
        uint32_t loop = v->loops ? v->loops->loop_of[block] : LOOP_NONE;
        uint64_t depth = loop == LOOP_NONE ? 0 : v->loops->loops[loop].depth;

        return 1 + LOOP_PASSES * depth * (depth + 1) / 2;
}

static uint32_t count_insns(const struct program *program, const struct cfg_block *block)
{
        uint32_t n = 0;

        for (uint32_t slot = block->start; slot < block->end; slot++)
                n += program->insns[slot].kind != INSN_TAIL;
        return n;
}

/* Edges where states are compared: to the blocks behind, into a function and out of it. */
static uint32_t count_edges(const struct program *program, const struct cfg_block *block)
{
        uint8_t kind = program->insns[block->last].kind;

        return (block->next[0] != CFG_NONE) + (block->next[1] != CFG_NONE) + (kind == INSN_CALL_LOCAL) +
               (kind == INSN_EXIT);
}

static struct work work_of(const struct verifier *v, const struct work *subs, uint32_t sub)
{
        struct work work = {.contexts = 1};
        uint32_t first = v->cfg->subs[sub].first_rank;

        for (uint32_t i = first; i < first + v->cfg->subs[sub].n_blocks; i++) {
                const struct cfg_block *block = &v->cfg->blocks[v->cfg->order[i]];
                const struct insn *last = &v->program->insns[block->last];
                uint64_t insns = count_insns(v->program, block), edges = count_edges(v->program, block);
                uint64_t n = passes(v, v->cfg->order[i]), length = insns;

                if (last->kind == INSN_CALL_LOCAL) {
                        const struct work *callee = &subs[v->cfg->blocks[v->cfg->block_of[last->target]].sub];

                        insns = add_up(insns, callee->insns);
                        edges = add_up(edges, callee->edges);
                        length = add_up(length, callee->length);
                        work.contexts = add_up(work.contexts, callee->contexts);
                }
                work.insns = add_up(work.insns, times(n, insns));
                work.edges = add_up(work.edges, times(n, edges));
                work.length = add_up(work.length, length);
        }
        return work;
}

/* All stages of a program with loops, given the bounds of the first. In the others an instruction in turns that are
 * kept apart leads to two blocks at most, and a turn's states are compared with others; then so much again may be to be
 * done in one turn of each loop when the limit is reached, before the rest is joined. */
static void bound_stages(struct verdict *verdict, uint64_t k)
{
        uint64_t transfers = verdict->transfers_bound, comparisons = verdict->comparisons_bound;

        for (unsigned stage = 1; stage < LOOP_STAGES; stage++) {
                verdict->transfers_bound =
                        add_up(verdict->transfers_bound, add_up(times(transfers, 2), loop_apart[stage]));
                verdict->comparisons_bound =
                        add_up(verdict->comparisons_bound,
                               add_up(times(comparisons, 2), times(k * k + 2 * k, loop_apart[stage])));
        }
}

static int check_work(struct verifier *v)
{
        _cleanup_free_ struct work *subs = carve_alloc(v->cfg->n_subs * sizeof(*subs));
        const struct work *all;
        uint64_t k = v->disjuncts;

        if (!subs)
                return err_set_nomem(v->err);
        for (uint32_t i = 0; i < v->cfg->n_subs; i++)
                subs[v->cfg->sub_order[i]] = work_of(v, subs, v->cfg->sub_order[i]);
        all = &subs[0];
        v->verdict->contexts = (uint32_t)MIN(all->contexts, (uint64_t)UINT32_MAX);
        v->verdict->transfers_bound = times(all->insns, v->disjuncts);
        v->verdict->comparisons_bound = times(all->edges, k * k);
        if (v->loops)
                bound_stages(v->verdict, k);
        if (all->contexts > VERIFIER_CONTEXTS_MAX)
                return verifier_refuse(v, FAULT_CONTEXT_LIMIT, FAULT_NO_SLOT,
                                       "%" PRIu64 " chains of calls; at most %d are gone through", all->contexts,
                                       VERIFIER_CONTEXTS_MAX);
        if (all->length > VERIFIER_INSNS_MAX)
                return verifier_refuse(v, FAULT_CONTEXT_LIMIT, FAULT_NO_SLOT,
                                       "%" PRIu64 " instructions in all chains of calls; at most %" PRIu64
                                       " are gone through",
                                       all->length, VERIFIER_INSNS_MAX);
        return 0;
}

static int check_maps(struct verifier *v, const struct profile *profile)
{
        const struct program *program = v->program;

        if (program->n_maps > profile->max_maps)
                return verifier_refuse(v, FAULT_MAP_LIMIT, FAULT_NO_SLOT,
                                       "%" PRIu32 " maps; profile %s allows %" PRIu32, program->n_maps, profile->name,
                                       profile->max_maps);
        for (uint32_t i = 0; i < program->n_maps; i++)
                if (map_bytes(&program->maps[i]) > profile->max_map_bytes)
                        return verifier_refuse(v, FAULT_MAP_LIMIT, FAULT_NO_SLOT,
                                               "map %s takes %" PRIu64 " bytes; profile %s allows %" PRIu64,
                                               program->maps[i].name, map_bytes(&program->maps[i]), profile->name,
                                               profile->max_map_bytes);
        return 0;
}

/* Immediates that mean nothing a program can want. The encoding allows them, and registers may hold the same: division
 * by zero gives 0, and amounts of shifts are taken modulo the width. */
static int check_immediates(struct verifier *v)
{
        for (uint32_t slot = 0; slot < v->program->n_insns; slot++) {
                const struct insn *insn = &v->program->insns[slot];

                if (insn->kind != INSN_ALU || !(insn->flags & INSN_IMM))
                        continue;
                if (insn->imm == 0 && insn->op >= ALU_DIV && insn->op <= ALU_SMOD)
                        return verifier_refuse(v, FAULT_DIVISION, slot, "divides by 0");
                if (insn->op >= ALU_LSH && insn->op <= ALU_ARSH && (uint64_t)insn->imm >= insn->size * 8u)
                        return verifier_refuse(v, FAULT_SHIFT, slot, "shifts by %" PRIi64 "; the operand has %u bits",
                                               insn->imm, insn->size * 8u);
        }
        return 0;
}

int verifier_limits(struct verifier *v)
{
        const struct profile *profile = v->options->profile;
        int r;

        if (v->program->n_insns > profile->max_slots)
                return verifier_refuse(v, FAULT_INSN_LIMIT, FAULT_NO_SLOT,
                                       "%" PRIu32 " slots; profile %s allows %" PRIu32, v->program->n_insns,
                                       profile->name, profile->max_slots);
        if (v->cfg->n_back_edges > 0 && !profile->allows_loops) {
                const struct cfg_edge *edge = &v->cfg->back_edges[0];

                return verifier_refuse(v, FAULT_LOOP, v->cfg->blocks[edge->from].last,
                                       "leads back to slot %" PRIu32 "; profile %s allows no loops",
                                       v->cfg->blocks[edge->to].start, profile->name);
        }
        r = check_immediates(v);
        if (r == 0)
                r = check_maps(v, profile);
        return r ? r : check_work(v);
}
