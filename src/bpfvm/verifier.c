/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/verifier.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/carve.h"
#include "base/macro.h"
#include "bpfvm/verifier-internal.h"

void verdict_done(struct verdict *verdict)
{
        free(verdict->known);
        free(verdict->path);
        free(verdict->costliest);
        *verdict = (struct verdict){0};
}

static void verifier_done(struct verifier *v)
{
        for (uint32_t i = 0; v->points && i < v->cfg->n_blocks; i++)
                state_release_list(&v->pool, v->points[i].states);
        for (unsigned i = 0; i < ARRAY_SIZE(v->exits); i++)
                state_release_list(&v->pool, v->exits[i].states);
        for (uint32_t l = 0; v->loops && l < v->loops->n; l++)
                state_release_list(&v->pool, v->loops->loops[l].kept);
        state_pool_done(&v->pool);
        loops_free(v->loops);
        cfg_free(v->cfg);
        free(v->points);
        free(v->ways);
}

/* One piece of memory for all that counts by block and by function. */
static int allocate(struct verifier *v)
{
        size_t blocks = v->cfg->n_blocks, subs = v->cfg->n_subs;
        char *memory = carve_alloc(blocks * (sizeof(*v->points) + sizeof(*v->costs) + sizeof(*v->live)) +
                                   subs * sizeof(*v->sub_bytes));

        if (!memory)
                return err_set_nomem(v->err);
        v->points = (struct point *)memory;
        v->costs = (struct block_cost *)(v->points + blocks);
        v->sub_bytes = (uint32_t *)(v->costs + blocks);
        v->live = (uint16_t *)(v->sub_bytes + subs);
        return 0;
}

static struct state *copy_of(struct verifier *v, const struct state *state, uint32_t slot)
{
        struct state *copy = state_copy(&v->pool, state);

        if (!copy)
                verifier_refuse(v, FAULT_STATE_LIMIT, slot, "states take more than %" PRIu64 " bytes",
                                (uint64_t)v->pool.max_bytes);
        return copy;
}

static void note_way(struct verifier *v, uint32_t block, uint8_t way)
{
        v->costs[block].ways |= way;
        v->costs[block].ever |= way;
}

/* An instruction was refused: say what was known there. Takes the state over. Return: 1. */
static int refused(struct verifier *v, struct state *state)
{
        const struct insn *insn = &v->program->insns[v->verdict->fault.slot];

        verifier_explain(v, insn, state);
        state_release(&v->pool, state);
        return 1;
}

/* The two ways out of a branch. */
static int go_branch(struct verifier *v, uint32_t from, struct state *state)
{
        const struct cfg_block *block = &v->cfg->blocks[from];
        struct state *jumps;
        int r = 0;

        if (transfer_branch_check(&v->t, state, block->last))
                return refused(v, state);
        jumps = copy_of(v, state, block->last);
        if (!jumps)
                return refused(v, state);
        if (transfer_branch(&v->t, jumps, block->last, true)) {
                note_way(v, from, WAY_JUMPS);
                r = verifier_flow(v, from, block->next[1], jumps);
        } else {
                state_release(&v->pool, jumps);
        }
        if (r == 0 && transfer_branch(&v->t, state, block->last, false)) {
                note_way(v, from, WAY_FALLS);
                return verifier_flow(v, from, block->next[0], state);
        }
        state_release(&v->pool, state);
        return r;
}

static int go_exit(struct verifier *v, uint32_t from, struct state *state)
{
        uint8_t depth = state->depth;

        if (transfer_exit(&v->t, state, v->cfg->blocks[from].last))
                return refused(v, state);
        if (depth > 1 && !verifier_is_muted(v, from, CFG_NONE))
                return verifier_merge(v, &v->exits[depth], state);
        state_release(&v->pool, state);
        return 0;
}

static int go_call(struct verifier *v, uint32_t from, struct state *state)
{
        const struct cfg_block *block = &v->cfg->blocks[from];
        uint32_t callee = v->cfg->block_of[v->program->insns[block->last].target];

        if (transfer_call(&v->t, state, block->last, v->live[block->next[0]]))
                return refused(v, state);
        return verifier_enter(v, callee, state);
}

/* What follows the last instruction of a block. Takes @state over. */
static int go_on(struct verifier *v, uint32_t from, struct state *state)
{
        const struct cfg_block *block = &v->cfg->blocks[from];

        switch ((enum insn_kind)v->program->insns[block->last].kind) {
        case INSN_BRANCH:
                return go_branch(v, from, state);
        case INSN_EXIT:
                return go_exit(v, from, state);
        case INSN_CALL_LOCAL:
                return go_call(v, from, state);
        case INSN_JUMP:
                note_way(v, from, WAY_JUMPS);
                return verifier_flow(v, from, block->next[1], state);
        default:
                if (transfer_insn(&v->t, state, block->last))
                        return refused(v, state);
                note_way(v, from, WAY_FALLS);
                return verifier_flow(v, from, block->next[0], state);
        }
}

/* What holds before an instruction, once that is final. */
static void observe(struct verifier *v, uint32_t slot, const struct state *state)
{
        if (v->settling > 0)
                return;
        if (v->options->observe && verifier_is_observed(v))
                v->options->observe(v->options->userdata, &v->context, slot, state);
        if (v->loops)
                verifier_note(v, slot, state);
}

/* Carry out a block for one state, which is taken over. */
static int go_block(struct verifier *v, uint32_t number, struct state *state)
{
        const struct cfg_block *block = &v->cfg->blocks[number];
        const struct insn *insns = v->program->insns;
        uint64_t before = v->verdict->transfers;
        uint32_t slot = block->start;

        while (slot != block->last) {
                observe(v, slot, state);
                v->verdict->transfers++;
                if (transfer_insn(&v->t, state, slot))
                        return refused(v, state);
                slot = insn_next(&insns[slot], slot);
        }
        observe(v, slot, state);
        v->verdict->transfers++;
        if (v->apart > 0)
                v->apart_transfers += v->verdict->transfers - before;
        return go_on(v, number, state);
}

/* Go through the function that a block calls, and on behind the call with what it leaves. */
static int finish_call(struct verifier *v, uint32_t from)
{
        const struct cfg_block *block = &v->cfg->blocks[from];
        uint32_t callee = v->cfg->blocks[v->cfg->block_of[v->program->insns[block->last].target]].sub;
        struct point *exits = &v->exits[v->context.n + 2];
        uint64_t ps = 0;
        int r;

        if (!v->points[v->cfg->subs[callee].entry].states)
                return 0;
        v->context.calls[v->context.n++] = block->last;
        r = verifier_sub(v, callee, &ps);
        v->context.n--;
        v->costs[from].callee_ps = MAX(v->costs[from].callee_ps, ps);
        while (r == 0 && exits->states) {
                struct state *state = exits->states;

                exits->states = state->next;
                exits->n--;
                note_way(v, from, WAY_FALLS);
                r = verifier_flow(v, from, block->next[0], state);
        }
        return r;
}

int verifier_block(struct verifier *v, uint32_t number, bool keeps)
{
        struct point *point = &v->points[number];
        struct state *states = point->states;
        int r = 0;

        note_way(v, number, WAY_REACHED);
        if (!keeps)
                *point = (struct point){0};
        while (states && r == 0) {
                struct state *state = states;

                states = state->next;
                if (keeps)
                        state = copy_of(v, state, v->cfg->blocks[number].start);
                r = state ? go_block(v, number, state) : 1;
        }
        if (!keeps)
                state_release_list(&v->pool, states);
        if (r == 0 && v->program->insns[v->cfg->blocks[number].last].kind == INSN_CALL_LOCAL)
                r = finish_call(v, number);
        return r;
}

int verifier_go(struct verifier *v, uint32_t first, uint32_t end)
{
        const uint32_t *order = v->loops ? v->loops->order : v->cfg->order;

        while (first < end) {
                uint32_t block = order[first];
                struct loop *loop = v->cfg->blocks[block].is_loop_head ? loops_of_head(v->loops, block) : NULL;
                int r;

                if (!v->points[block].states) {
                        first = loop ? loop->end : first + 1;
                        continue;
                }
                r = loop ? verifier_loop(v, loop) : verifier_block(v, block, false);
                if (r)
                        return r;
                first = loop ? loop->end : first + 1;
        }
        return 0;
}

/* The loops of a function are begun anew by its next call. */
static void forget_loops(struct verifier *v, const struct cfg_sub *sub)
{
        for (uint32_t i = sub->first_rank; i < sub->first_rank + sub->n_blocks; i++) {
                uint32_t block = v->cfg->order[i];
                struct loop *loop;

                if (!v->cfg->blocks[block].is_loop_head)
                        continue;
                loop = loops_of_head(v->loops, block);
                state_release_list(&v->pool, loop->kept);
                loop->kept = NULL;
                loop->turns = 0;
        }
}

int verifier_sub(struct verifier *v, uint32_t sub, uint64_t *ret_ps)
{
        const struct cfg_sub *s = &v->cfg->subs[sub];
        uint32_t *deepest = &v->t.frame_bytes[v->context.n];
        int r;

        for (uint32_t i = s->first_rank; i < s->first_rank + s->n_blocks; i++)
                v->costs[v->cfg->order[i]] = (struct block_cost){.ever = v->costs[v->cfg->order[i]].ever};
        *deepest = 0;
        r = verifier_go(v, s->first_rank, s->first_rank + s->n_blocks);
        v->sub_bytes[sub] = MAX(v->sub_bytes[sub], *deepest);
        if (r == 0)
                *ret_ps = verifier_cost(v, sub);
        if (v->loops)
                forget_loops(v, s);
        return r;
}

/* The deepest chain of frames. */
static int check_stack(struct verifier *v)
{
        const struct profile *profile = v->options->profile;
        struct cfg *cfg = v->cfg;

        for (uint32_t i = 0; i < cfg->n_subs; i++) {
                const struct cfg_sub *sub = &cfg->subs[cfg->sub_order[i]];
                uint32_t below = 0;

                for (uint32_t c = sub->first_call; c < sub->first_call + sub->n_calls; c++)
                        below = MAX(below, v->sub_bytes[cfg->calls[c].callee]);
                v->sub_bytes[cfg->sub_order[i]] = ((v->sub_bytes[cfg->sub_order[i]] + 7) & ~7u) + below;
        }
        v->verdict->stack_bytes = v->sub_bytes[0];
        if (v->sub_bytes[0] > profile->max_stack_bytes)
                return verifier_refuse(v, FAULT_STACK_LIMIT, FAULT_NO_SLOT,
                                       "the deepest chain of calls takes %" PRIu32 " bytes of stack; profile %s allows "
                                       "%" PRIu32,
                                       v->sub_bytes[0], profile->name, profile->max_stack_bytes);
        return 0;
}

static int check_cost(struct verifier *v)
{
        const struct profile *profile = v->options->profile;

        if (__builtin_add_overflow(v->verdict->cost_ps, v->table->class_ps[COST_ENTRY], &v->verdict->cost_ps))
                v->verdict->cost_ps = UINT64_MAX;
        if (profile->max_cost_ps != 0 && v->verdict->cost_ps > profile->max_cost_ps)
                return verifier_refuse(v, FAULT_COST, FAULT_NO_SLOT,
                                       "costs up to %" PRIu64 " ns by table %s; profile %s allows %" PRIu64 " ns",
                                       v->verdict->cost_ps / 1000, v->table->name, profile->name,
                                       profile->max_cost_ps / 1000);
        return 0;
}

static int keep_costliest(struct verifier *v)
{
        uint32_t entry = v->cfg->subs[0].entry;
        size_t n = 0;

        for (uint32_t block = entry; block != CFG_NONE; block = v->costs[block].next)
                n++;
        v->verdict->costliest = calloc(n, sizeof(*v->verdict->costliest));
        if (!v->verdict->costliest)
                return err_set_nomem(v->err);
        for (uint32_t block = entry; block != CFG_NONE; block = v->costs[block].next)
                v->verdict->costliest[v->verdict->n_costliest++] =
                        (struct verifier_step){.slot = v->cfg->blocks[block].start, .depth = 1};
        return 0;
}

static int start(struct verifier *v)
{
        struct state *entry = state_new(&v->pool);

        if (!entry)
                return verifier_refuse(v, FAULT_STATE_LIMIT, 0, "states take more than %" PRIu64 " bytes",
                                       (uint64_t)v->pool.max_bytes);
        transfer_entry(v->program, entry);
        return verifier_enter(v, v->cfg->subs[0].entry, entry);
}

static int check(struct verifier *v)
{
        int r;

        r = cfg_build(v->program, &v->cfg, &v->verdict->fault, v->err);
        if (r == 0 && v->cfg->n_back_edges > 0 && v->options->profile->allows_loops) {
                v->verdict->has_loops = true;
                r = loops_find(v);
        }
        if (r == 0)
                r = allocate(v);
        if (r == 0)
                r = verifier_limits(v);
        if (r)
                return r;
        if (v->cfg->n_blocks > 1)
                verifier_live(v);
        else
                v->live[0] = UINT16_MAX;
        r = start(v);
        if (r == 0)
                r = verifier_sub(v, 0, &v->verdict->cost_ps);
        if (r == 0)
                r = check_stack(v);
        if (r == 0)
                r = check_cost(v);
        if (r >= 0 && v->options->wants_costliest && v->verdict->cost_ps != 0) {
                int kept = keep_costliest(v);

                r = kept < 0 ? kept : r;
        }
        v->verdict->state_bytes = MAX(v->verdict->state_bytes, (uint64_t)v->pool.peak_bytes);
        return r;
}

/* One run. What it counts is added to what @ret has. */
static int run(const struct program *program, const struct verifier_options *options, unsigned stage,
               enum run_kind kind, struct verdict *ret, struct err *err)
{
        struct verifier v = {
                .program = program,
                .options = options,
                .table = options->costs ? options->costs : cost_default(),
                .verdict = ret,
                .err = err,
                .disjuncts = options->disjuncts ? MIN(options->disjuncts, (unsigned)VERIFIER_DISJUNCTS_MAX)
                                                : VERIFIER_DISJUNCTS,
                .stage = stage,
                .kind = kind,
                .pool = {.max_bytes = options->max_bytes ? options->max_bytes : VERIFIER_BYTES},
        };
        int r;

        v.context.turns = v.turns;
        v.t = (struct transfer){.program = program,
                                .profile = options->profile,
                                .may_actuate = options->may_actuate,
                                .pool = &v.pool,
                                .fault = &ret->fault};
        r = check(&v);
        verifier_done(&v);
        return r;
}

/* A verdict without what it found, for the next run. */
static void forget(struct verdict *verdict)
{
        struct verdict counts = {.transfers = verdict->transfers,
                                 .comparisons = verdict->comparisons,
                                 .state_bytes = verdict->state_bytes};

        verdict_done(verdict);
        *verdict = counts;
}

/* Stage by stage, until the program is accepted; @ret_stage is the last. */
static int decide(const struct program *program, const struct verifier_options *options, struct verdict *verdict,
                  unsigned *ret_stage, struct err *err)
{
        bool is_observed = options->observe || options->observe_ending || options->observe_count;
        unsigned stage = 0;
        int r = run(program, options, stage, RUN_TRY, verdict, err);

        while (r == 1 && verdict->has_loops && stage + 1 < LOOP_STAGES) {
                stage++;
                forget(verdict);
                r = run(program, options, stage, stage + 1 < LOOP_STAGES ? RUN_TRY : RUN_OBSERVED, verdict, err);
        }
        *ret_stage = stage;
        if (r != 0 || !verdict->has_loops || !is_observed || stage + 1 == LOOP_STAGES)
                return r;
        forget(verdict);
        return run(program, options, stage, RUN_OBSERVED, verdict, err);
}

/* The same once more, with how each state was reached. */
static int explain(const struct program *program, const struct verifier_options *options, unsigned stage,
                   struct verdict *verdict, struct err *err)
{
        uint64_t transfers = verdict->transfers, comparisons = verdict->comparisons;
        int r;

        forget(verdict);
        r = run(program, options, stage, RUN_EXPLAINED, verdict, err);
        verdict->transfers = transfers;
        verdict->comparisons = comparisons;
        return r;
}

int verifier_check(const struct program *program, const struct verifier_options *options, struct verdict *ret,
                   struct err *err)
{
        struct verdict verdict = {0};
        unsigned stage;
        int r;

        if (program->fault.kind != FAULT_NONE) {
                *ret = (struct verdict){.fault = program->fault};
                return 1;
        }
        r = decide(program, options, &verdict, &stage, err);
        if (r == 1 && verdict.known)
                r = explain(program, options, stage, &verdict, err);
        if (r < 0) {
                verdict_done(&verdict);
                return r;
        }
        *ret = verdict;
        return r;
}
