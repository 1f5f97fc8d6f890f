/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/cfg.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/carve.h"
#include "base/macro.h"
#include "bpfvm/profile.h"

/* A search's stack: a node, and how many of its edges have been followed. */
struct frame {
        uint32_t node, edge;
};

enum colour { WHITE, GREY, BLACK }; /* not met, on the path, done */

/* What only the searches need. */
struct scratch {
        uint8_t *colours;
        struct frame *stack;
        uint32_t *levels;
};

void cfg_free(struct cfg *cfg)
{
        free(cfg); /* its arrays lie behind it */
}

/* Where the arrays of a graph are; a call of this one is in one of its blocks. */
static size_t place(struct cfg *cfg, uint32_t n_insns, uint32_t n_blocks, uint32_t n_calls, void *memory)
{
        size_t used = 0;

        (void)carve(memory, &used, 1, sizeof(*cfg));
        cfg->blocks = carve(memory, &used, n_blocks, sizeof(*cfg->blocks));
        cfg->block_of = carve(memory, &used, n_insns, sizeof(*cfg->block_of));
        cfg->preds = carve(memory, &used, 2 * (size_t)n_blocks, sizeof(*cfg->preds));
        cfg->order = carve(memory, &used, n_blocks, sizeof(*cfg->order));
        cfg->subs = carve(memory, &used, cfg->n_subs, sizeof(*cfg->subs));
        cfg->calls = carve(memory, &used, n_calls, sizeof(*cfg->calls));
        cfg->sub_order = carve(memory, &used, cfg->n_subs, sizeof(*cfg->sub_order));
        cfg->back_edges = carve(memory, &used, 2 * (size_t)n_blocks, sizeof(*cfg->back_edges));
        return used;
}

static size_t place_scratch(struct scratch *s, uint32_t n_subs, uint32_t n_blocks, void *memory)
{
        size_t used = 0;

        s->colours = carve(memory, &used, n_blocks + n_subs, sizeof(*s->colours));
        s->stack = carve(memory, &used, MAX(n_blocks, n_subs), sizeof(*s->stack));
        s->levels = carve(memory, &used, n_subs, sizeof(*s->levels));
        return used;
}

static bool ends_block(const struct insn *insn)
{
        return insn->kind == INSN_JUMP || insn->kind == INSN_BRANCH || insn->kind == INSN_EXIT ||
               insn->kind == INSN_CALL_LOCAL;
}

static uint32_t mark(uint8_t *starts, uint32_t slot)
{
        uint32_t is_new = !starts[slot];

        starts[slot] = 1;
        return is_new;
}

/* Which slots a block begins at, and how many there are. Targets are instructions of the program (decode.c), jumps stay
 * in their function. */
static uint32_t mark_starts(const struct program *program, uint8_t *starts, uint32_t *ret_calls)
{
        uint32_t n = 0, calls = 0;

        for (uint32_t s = 0; s < program->n_subs; s++)
                n += mark(starts, program->subs[s].start);
        for (uint32_t i = 0; i < program->n_insns; i++) {
                const struct insn *insn = &program->insns[i];

                if (!ends_block(insn))
                        continue;
                calls += insn->kind == INSN_CALL_LOCAL;
                if (i + 1 < program->n_insns)
                        n += mark(starts, i + 1);
                if (insn->kind == INSN_JUMP || insn->kind == INSN_BRANCH)
                        n += mark(starts, insn->target);
        }
        *ret_calls = calls;
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

static void list_preds(struct cfg *cfg)
{
        uint32_t first = 0;

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

static int order_blocks(const struct program *program, struct cfg *cfg, const struct scratch *scratch,
                        struct fault *fault)
{
        uint32_t first = 0;

        for (uint32_t s = 0; s < cfg->n_subs; s++) {
                struct cfg_sub *sub = &cfg->subs[s];

                sub->entry = cfg->block_of[program->subs[s].start];
                sub->n_blocks = cfg->block_of[program->subs[s].end - 1] - sub->entry + 1;
                sub->first_rank = first;
                first += sub->n_blocks;
                if (search_blocks(cfg, sub->entry, first, scratch->colours, scratch->stack) == sub->first_rank)
                        continue;
                for (uint32_t b = sub->entry; b < sub->entry + sub->n_blocks; b++)
                        if (scratch->colours[b] == WHITE)
                                return fault_set(fault, FAULT_UNREACHABLE, cfg->blocks[b].start,
                                                 "no path leads here from slot %" PRIu32
                                                 ", where its function starts; remove it or jump to it",
                                                 program->subs[s].start);
        }
        return 0;
}

/* Calls end blocks, and blocks are in the order of their functions. */
static void list_calls(const struct program *program, struct cfg *cfg)
{
        for (uint32_t s = 0; s < cfg->n_subs; s++) {
                struct cfg_sub *sub = &cfg->subs[s];

                sub->first_call = cfg->n_calls;
                for (uint32_t b = sub->entry; b < sub->entry + sub->n_blocks; b++) {
                        const struct insn *last = &program->insns[cfg->blocks[b].last];

                        if (last->kind == INSN_CALL_LOCAL)
                                cfg->calls[cfg->n_calls++] =
                                        (struct cfg_call){.slot = cfg->blocks[b].last,
                                                          .callee = program_sub_at(program, last->target)};
                }
                sub->n_calls = cfg->n_calls - sub->first_call;
        }
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

static int order_subs(const struct program *program, struct cfg *cfg, const struct scratch *scratch,
                      struct fault *fault)
{
        uint8_t *colours = scratch->colours + cfg->n_blocks;
        int r = search_calls(cfg, colours, scratch->stack, fault);

        if (r)
                return r;
        for (uint32_t s = 0; s < cfg->n_subs; s++)
                if (colours[s] == WHITE)
                        return fault_set(fault, FAULT_UNREACHABLE, program->subs[s].start,
                                         "no call that can be reached leads to this function; remove it");
        return check_depth(cfg, scratch->levels, fault);
}

/* The graph's memory, with the blocks in it. */
static int start(const struct program *program, struct cfg **ret, struct err *err)
{
        _cleanup_free_ uint8_t *starts = carve_alloc(program->n_insns);
        struct cfg sizes = {.n_subs = program->n_subs}, *cfg;
        uint32_t n_blocks, n_calls;

        if (!starts)
                return err_set_nomem(err);
        n_blocks = mark_starts(program, starts, &n_calls);
        cfg = carve_alloc(place(&sizes, program->n_insns, n_blocks, n_calls, NULL));
        if (!cfg)
                return err_set_nomem(err);
        cfg->n_subs = program->n_subs;
        place(cfg, program->n_insns, n_blocks, n_calls, cfg);
        number_blocks(program, starts, cfg);
        *ret = cfg;
        return 0;
}

int cfg_build(const struct program *program, struct cfg **ret, struct fault *fault, struct err *err)
{
        _cleanup_cfg_ struct cfg *cfg = NULL;
        _cleanup_free_ void *memory = NULL;
        struct scratch scratch;
        int r = start(program, &cfg, err);

        if (r < 0)
                return r;
        memory = carve_alloc(place_scratch(&scratch, cfg->n_subs, cfg->n_blocks, NULL));
        if (!memory)
                return err_set_nomem(err);
        place_scratch(&scratch, cfg->n_subs, cfg->n_blocks, memory);

        r = connect_blocks(program, cfg, fault);
        if (r)
                return r;
        list_preds(cfg);
        r = order_blocks(program, cfg, &scratch, fault);
        if (r)
                return r;
        list_calls(program, cfg);
        r = order_subs(program, cfg, &scratch, fault);
        if (r)
                return r;
        *ret = TAKE_PTR(cfg);
        return 0;
}
