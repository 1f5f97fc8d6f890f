/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/cfg.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/macro.h"
#include "bpfvm/profile.h"

/* A search's stack: a node, and how many of its edges have been followed. */
struct frame {
        uint32_t node, edge;
};

enum colour { WHITE, GREY, BLACK }; /* not met, on the path, done */

void cfg_free(struct cfg *cfg)
{
        if (!cfg)
                return;
        free(cfg->blocks);
        free(cfg->block_of);
        free(cfg->preds);
        free(cfg->order);
        free(cfg->back_edges);
        free(cfg->subs);
        free(cfg->calls);
        free(cfg->sub_order);
        free(cfg);
}

static bool ends_block(const struct insn *insn)
{
        return insn->kind == INSN_JUMP || insn->kind == INSN_BRANCH || insn->kind == INSN_EXIT ||
               insn->kind == INSN_CALL_LOCAL;
}

/* Which slots a block begins at. Targets are instructions of the program (decode.c), jumps stay in their function. */
static uint32_t mark_starts(const struct program *program, uint8_t *starts)
{
        uint32_t n = 0;

        for (uint32_t s = 0; s < program->n_subs; s++)
                starts[program->subs[s].start] = 1;
        for (uint32_t i = 0; i < program->n_insns; i++) {
                const struct insn *insn = &program->insns[i];

                if (!ends_block(insn))
                        continue;
                if (i + 1 < program->n_insns)
                        starts[i + 1] = 1;
                if (insn->kind == INSN_JUMP || insn->kind == INSN_BRANCH)
                        starts[insn->target] = 1;
        }
        for (uint32_t i = 0; i < program->n_insns; i++)
                n += starts[i];
        return n;
}

static void number_blocks(const struct program *program, const uint8_t *starts, struct cfg *cfg)
{
        uint32_t sub = 0;

        for (uint32_t i = 0; i < program->n_insns; i++) {
                if (starts[i]) {
                        if (i >= program->subs[sub].end)
                                sub++;
                        cfg->blocks[cfg->n_blocks++] =
                                (struct cfg_block){.start = i, .sub = sub, .next = {CFG_NONE, CFG_NONE}};
                }
                struct cfg_block *block = &cfg->blocks[cfg->n_blocks - 1];
                block->end = i + 1;
                if (program->insns[i].kind != INSN_TAIL)
                        block->last = i;
                cfg->block_of[i] = cfg->n_blocks - 1;
        }
}

static int connect_blocks(const struct program *program, struct cfg *cfg, struct fault *fault)
{
        for (uint32_t b = 0; b < cfg->n_blocks; b++) {
                struct cfg_block *block = &cfg->blocks[b];
                const struct insn *last = &program->insns[block->last];

                if (last->kind == INSN_JUMP || last->kind == INSN_BRANCH)
                        block->next[1] = cfg->block_of[last->target];
                if (last->kind != INSN_JUMP && last->kind != INSN_EXIT) {
                        if (block->end == program->subs[block->sub].end)
                                return fault_set(
                                        fault, FAULT_FALL_THROUGH, block->last,
                                        "execution runs past the last instruction of its function; end it with "
                                        "exit or a jump");
                        block->next[0] = b + 1;
                }
                for (unsigned e = 0; e < 2; e++)
                        if (block->next[e] != CFG_NONE) {
                                cfg->blocks[block->next[e]].n_preds++;
                                cfg->n_edges++;
                        }
        }
        return 0;
}

static int list_preds(struct cfg *cfg, struct err *err)
{
        uint32_t first = 0;

        cfg->preds = calloc(cfg->n_edges + 1, sizeof(*cfg->preds));
        if (!cfg->preds)
                return err_set_nomem(err);

        for (uint32_t b = 0; b < cfg->n_blocks; b++) {
                cfg->blocks[b].first_pred = first;
                first += cfg->blocks[b].n_preds;
                cfg->blocks[b].n_preds = 0;
        }
        for (uint32_t b = 0; b < cfg->n_blocks; b++)
                for (unsigned e = 0; e < 2; e++)
                        if (cfg->blocks[b].next[e] != CFG_NONE) {
                                struct cfg_block *to = &cfg->blocks[cfg->blocks[b].next[e]];
                                cfg->preds[to->first_pred + to->n_preds++] = b;
                        }
        return 0;
}

/* Depth first from a subprogram's entry, the jump before the fall-through, so that in reverse post-order the
 * fall-through comes first where it can. @last is the rank after the subprogram's last block. Returns its first rank.
 */
static uint32_t search_blocks(struct cfg *cfg, uint32_t entry, uint32_t last, uint8_t *colours, struct frame *stack)
{
        uint32_t depth = 0;

        stack[depth++] = (struct frame){.node = entry};
        colours[entry] = GREY;
        while (depth > 0) {
                struct frame *top = &stack[depth - 1];
                uint32_t from = top->node, to;

                if (top->edge == 2) {
                        colours[from] = BLACK;
                        cfg->blocks[from].rank = --last;
                        cfg->order[last] = from;
                        depth--;
                        continue;
                }
                to = cfg->blocks[from].next[1 - top->edge++];
                if (to == CFG_NONE || colours[to] == BLACK)
                        continue;
                if (colours[to] == GREY) {
                        cfg->blocks[to].is_loop_head = true;
                        cfg->back_edges[cfg->n_back_edges++] = (struct cfg_edge){.from = from, .to = to};
                        continue;
                }
                colours[to] = GREY;
                stack[depth++] = (struct frame){.node = to};
        }
        return last;
}

static int order_blocks(const struct program *program, struct cfg *cfg, struct fault *fault, struct err *err)
{
        _cleanup_free_ uint8_t *colours = calloc(cfg->n_blocks, 1);
        _cleanup_free_ struct frame *stack = calloc(cfg->n_blocks, sizeof(*stack));
        uint32_t first = 0;

        cfg->order = calloc(cfg->n_blocks, sizeof(*cfg->order));
        cfg->back_edges = calloc(cfg->n_edges + 1, sizeof(*cfg->back_edges));
        if (!colours || !stack || !cfg->order || !cfg->back_edges)
                return err_set_nomem(err);

        for (uint32_t s = 0; s < cfg->n_subs; s++) {
                struct cfg_sub *sub = &cfg->subs[s];

                sub->entry = cfg->block_of[program->subs[s].start];
                sub->n_blocks = cfg->block_of[program->subs[s].end - 1] - sub->entry + 1;
                sub->first_rank = first;
                first += sub->n_blocks;
                if (search_blocks(cfg, sub->entry, first, colours, stack) == sub->first_rank)
                        continue;
                for (uint32_t b = sub->entry; b < sub->entry + sub->n_blocks; b++)
                        if (colours[b] == WHITE)
                                return fault_set(fault, FAULT_UNREACHABLE, cfg->blocks[b].start,
                                                 "no path leads here from slot %" PRIu32
                                                 ", where its function starts; remove it or jump to it",
                                                 program->subs[s].start);
        }
        return 0;
}

static int list_calls(const struct program *program, struct cfg *cfg, struct err *err)
{
        for (uint32_t i = 0; i < program->n_insns; i++)
                cfg->n_calls += program->insns[i].kind == INSN_CALL_LOCAL;

        cfg->calls = calloc(cfg->n_calls + 1, sizeof(*cfg->calls));
        if (!cfg->calls)
                return err_set_nomem(err);

        cfg->n_calls = 0;
        for (uint32_t s = 0; s < cfg->n_subs; s++) {
                cfg->subs[s].first_call = cfg->n_calls;
                for (uint32_t i = program->subs[s].start; i < program->subs[s].end; i++)
                        if (program->insns[i].kind == INSN_CALL_LOCAL)
                                cfg->calls[cfg->n_calls++] =
                                        (struct cfg_call){.slot = i,
                                                          .callee = program_sub_at(program, program->insns[i].target)};
                cfg->subs[s].n_calls = cfg->n_calls - cfg->subs[s].first_call;
        }
        return 0;
}

/* Depth first over who calls whom, from the program's entry: callees come before their callers. */
static int search_calls(struct cfg *cfg, uint8_t *colours, struct frame *stack, struct fault *fault)
{
        uint32_t depth = 0, done = 0;

        stack[depth++] = (struct frame){.node = 0};
        colours[0] = GREY;
        while (depth > 0) {
                struct frame *top = &stack[depth - 1];
                struct cfg_sub *sub = &cfg->subs[top->node];
                const struct cfg_call *call;

                if (top->edge == sub->n_calls) {
                        colours[top->node] = BLACK;
                        cfg->sub_order[done++] = top->node;
                        depth--;
                        continue;
                }
                call = &cfg->calls[sub->first_call + top->edge++];
                if (colours[call->callee] == GREY)
                        return fault_set(fault, FAULT_RECURSION, call->slot,
                                         "calls a function that is already running; functions may not call themselves, "
                                         "directly or through others");
                if (colours[call->callee] == WHITE) {
                        colours[call->callee] = GREY;
                        stack[depth++] = (struct frame){.node = call->callee};
                }
        }
        return 0;
}

/* The call, if any, that would need one frame too many; callers first, each with the deepest frame it can run in. */
static int check_depth(struct cfg *cfg, uint32_t *levels, struct fault *fault)
{
        levels[0] = 1;
        for (uint32_t i = cfg->n_subs; i-- > 0;) {
                const struct cfg_sub *sub = &cfg->subs[cfg->sub_order[i]];
                uint32_t level = levels[cfg->sub_order[i]];

                for (uint32_t c = sub->first_call; c < sub->first_call + sub->n_calls; c++) {
                        if (level == PROFILE_CALL_DEPTH)
                                return fault_set(fault, FAULT_CALL_DEPTH, cfg->calls[c].slot,
                                                 "is a call from frame %" PRIu32 "; there are no more than %d frames",
                                                 level, PROFILE_CALL_DEPTH);
                        levels[cfg->calls[c].callee] = MAX(levels[cfg->calls[c].callee], level + 1);
                }
        }
        for (uint32_t i = 0; i < cfg->n_subs; i++) {
                struct cfg_sub *sub = &cfg->subs[cfg->sub_order[i]];

                sub->depth = 1;
                for (uint32_t c = sub->first_call; c < sub->first_call + sub->n_calls; c++)
                        sub->depth = MAX(sub->depth, cfg->subs[cfg->calls[c].callee].depth + 1);
        }
        return 0;
}

static int order_subs(const struct program *program, struct cfg *cfg, struct fault *fault, struct err *err)
{
        _cleanup_free_ uint8_t *colours = calloc(cfg->n_subs, 1);
        _cleanup_free_ struct frame *stack = calloc(cfg->n_subs, sizeof(*stack));
        _cleanup_free_ uint32_t *levels = calloc(cfg->n_subs, sizeof(*levels));
        int r;

        cfg->sub_order = calloc(cfg->n_subs, sizeof(*cfg->sub_order));
        if (!colours || !stack || !levels || !cfg->sub_order)
                return err_set_nomem(err);

        r = search_calls(cfg, colours, stack, fault);
        if (r)
                return r;
        for (uint32_t s = 0; s < cfg->n_subs; s++)
                if (colours[s] == WHITE)
                        return fault_set(fault, FAULT_UNREACHABLE, program->subs[s].start,
                                         "no call that can be reached leads to this function; remove it");
        return check_depth(cfg, levels, fault);
}

int cfg_build(const struct program *program, struct cfg **ret, struct fault *fault, struct err *err)
{
        _cleanup_free_ uint8_t *starts = calloc(program->n_insns + 1, 1);
        _cleanup_cfg_ struct cfg *cfg = calloc(1, sizeof(*cfg));
        int r;

        if (!starts || !cfg)
                return err_set_nomem(err);

        cfg->n_subs = program->n_subs;
        cfg->blocks = calloc(mark_starts(program, starts), sizeof(*cfg->blocks));
        cfg->block_of = calloc(program->n_insns, sizeof(*cfg->block_of));
        cfg->subs = calloc(cfg->n_subs, sizeof(*cfg->subs));
        if (!cfg->blocks || !cfg->block_of || !cfg->subs)
                return err_set_nomem(err);

        number_blocks(program, starts, cfg);
        r = connect_blocks(program, cfg, fault);
        if (r == 0)
                r = list_preds(cfg, err);
        if (r == 0)
                r = order_blocks(program, cfg, fault, err);
        if (r == 0)
                r = list_calls(program, cfg, err);
        if (r == 0)
                r = order_subs(program, cfg, fault, err);
        if (r)
                return r;

        *ret = TAKE_PTR(cfg);
        return 0;
}
