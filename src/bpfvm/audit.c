/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/audit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "bpfvm/audit-state.h"
#include "bpfvm/cfg.h"

struct audit {
        const struct program *program;
        const struct certificate *certificate;
        const struct verifier_options *options;
        struct cfg *cfg;
        struct fault *fault;
        struct audit_rules rules;
        struct audit_state *now, *jumps; /* two are enough: one goes on while the other waits */

        const struct certificate_context *context; /* the one that is gone through */
        uint32_t *frames;                          /* by function: bytes below r10 */
        struct way *ways;                          /* by block, of the context */
        uint64_t *costs;                           /* by context, picoseconds; contexts with longer chains come first */

        /* By point, where its search for a claim begins: at the one found last. Those of a loop's turns mostly are
         * found in their order, so that the search takes a step where it could take thousands. */
        const struct certificate_state **hints;
        size_t *first_hints; /* by context: that of its first point */
        uint64_t comparisons;
};

#define COMPARISONS_MAX UINT64_C(50000000) /* for all claims; certificates that were made take a few of each */

/* Where claimed states go on from a block, and what the rest of the function costs at most from there. */
struct way {
        bool is_reached, goes[2];
        uint64_t rest_ps;
};

#define refuse(a, slot, ...) fault_set((a)->fault, FAULT_CERTIFICATE, slot, __VA_ARGS__)

static uint32_t block_at(const struct audit *a, uint32_t slot)
{
        return a->cfg->block_of[slot];
}

static const struct verifier_ending *ending_at(const struct certificate_context *context, uint32_t head)
{
        for (uint32_t i = 0; i < context->n_loops; i++)
                if (context->loops[i].head == head)
                        return &context->loops[i];
        return NULL;
}

/* The bounds that a claim at a loop's head sets to its counter. Return: false if it is no number there. */
static bool counter_bounds(const struct state *claim, const struct verifier_ending *ending, struct audit_bounds *ret)
{
        const struct verifier_place *at = &ending->counter;
        const struct reg *found = at->reg < INSN_FRAME_POINTER ? &claim->regs[at->reg] : NULL;
        struct audit_number n;

        for (size_t i = 0; i < claim->n_slots && at->reg == VERIFIER_STACK; i++) {
                const struct slot *slot = &claim->slots[i];
                int offset = -8 * (STATE_PLACE_INDEX(slot->place) + 1) + slot->at;

                if (STATE_PLACE_FRAME(slot->place) + 1u == claim->depth && offset == at->offset &&
                    slot->size == at->size)
                        found = &slot->value;
        }
        if (!found || found->kind != REG_SCALAR || !audit_number_of(&found->value, &n))
                return false;
        *ret = ending->is_low ? n.half : n.word;
        return true;
}

static bool are_of_one_turn(const struct certificate_state *x, const struct certificate_state *y)
{
        for (uint32_t i = 0; i < x->n_turns && i < y->n_turns; i++)
                if (x->turns[i].frame != y->turns[i].frame || x->turns[i].head != y->turns[i].head ||
                    x->turns[i].turn != y->turns[i].turn)
                        return false;
        return x->n_turns == y->n_turns;
}

/* Whether the claims at a loop's head that are of the same turns as @claim bound its counter, so that it can move only
 * so often before a later turn begins. */
static bool is_bounded(struct audit *a, const struct verifier_ending *ending, const struct certificate_state *claim)
{
        const struct certificate_point *point = certificate_point_at(a->context, ending->head);
        struct audit_bounds b = {UINT64_MAX, 0, INT64_MAX, INT64_MIN};
        const __int128 limit = ending->is_low ? UINT32_MAX : UINT64_MAX;
        const __int128 signed_limit = ending->is_low ? INT32_MAX : INT64_MAX;

        for (const struct certificate_state *other = point->states; other; other = other->next) {
                struct audit_bounds own;

                a->comparisons++;
                if (!are_of_one_turn(other, claim))
                        continue;
                if (!counter_bounds(&other->state, ending, &own))
                        return false;
                b = (struct audit_bounds){MIN(b.umin, own.umin), MAX(b.umax, own.umax), MIN(b.smin, own.smin),
                                          MAX(b.smax, own.smax)};
        }
        if (ending->least >= 1 && ending->most >= ending->least)
                return (__int128)b.umax + ending->most <= limit || (__int128)b.smax + ending->most <= signed_limit;
        if (ending->most <= -1 && ending->least <= ending->most)
                return (__int128)b.umin + ending->least >= 0 || (__int128)b.smin + ending->least >= -signed_limit - 1;
        return false;
}

/* Whether a jump against the order, back to @head and in the turns of @claim there, moves the counter of that loop. */
static bool moves_counter(struct audit *a, uint32_t head, const struct audit_state *state,
                          const struct certificate_state *claim)
{
        const struct verifier_ending *ending = ending_at(a->context, head);
        struct verifier_count moved;

        if (!ending)
                return false;
        moved = (struct verifier_count){head, head, ending->counter, ending->is_low, ending->least, ending->most};
        return audit_state_counts(state, &moved) && is_bounded(a, ending, claim);
}

/* Whether a state, coming to the block at @to, is in the turns of loops that a claim says. At a loop's head any turn
 * may begin from outside; from inside (@returns) a later one, or the same where the loop's counter was moved. */
static bool in_claimed_turns(struct audit *a, const struct audit_state *state, const struct certificate_state *claim,
                             uint32_t to, bool returns)
{
        uint32_t frame = state->depth - 1;
        const struct verifier_turn *from, *there;

        for (uint32_t i = 0; i < claim->n_turns; i++) {
                const struct verifier_turn *turn = &claim->turns[i];

                if (turn->frame == frame && turn->head == to)
                        continue;
                from = audit_turn(state->turns, state->n_turns, turn->frame, turn->head);
                if (!from || from->turn != turn->turn)
                        return false;
        }
        if (!returns)
                return true;
        from = audit_turn(state->turns, state->n_turns, frame, to);
        there = audit_turn(claim->turns, claim->n_turns, frame, to);
        return from && there &&
               (there->turn > from->turn || (there->turn == from->turn && moves_counter(a, to, state, claim)));
}

/* A state that comes to a block has to be one that is claimed there. */
static int check_claimed(struct audit *a, const struct certificate_context *context, uint32_t from, uint32_t to,
                         const struct audit_state *state, bool returns)
{
        const struct certificate_point *point = context ? certificate_point_at(context, to) : NULL;
        const struct certificate_state **hint, *claim;
        bool is_claimed = false;

        if (!point || point->n_states == 0)
                return refuse(a, from, "nothing is claimed at slot %" PRIu32 ", where it leads", to);
        hint = &a->hints[a->first_hints[context - a->certificate->contexts] + (size_t)(point - context->points)];
        claim = *hint;
        for (uint32_t i = 0; i < point->n_states; i++, claim = claim->next) {
                if (!claim)
                        claim = point->states;
                if (a->comparisons++ >= COMPARISONS_MAX)
                        return refuse(a, from, "more than %" PRIu64 " comparisons of claims", COMPARISONS_MAX);
                if (!audit_state_within(state, &claim->state))
                        continue;
                is_claimed = true;
                if (in_claimed_turns(a, state, claim, to, returns)) {
                        *hint = claim;
                        return 0;
                }
        }
        if (!is_claimed)
                return refuse(a, from, "what holds behind it is not claimed at slot %" PRIu32, to);
        return refuse(a, from,
                      "it leads to slot %" PRIu32
                      " in no turn of a loop that is claimed there, or in one that no bounded "
                      "counter ends",
                      to);
}

/* What a block's claims say of counters has to be known there; of its own loop's counter it begins anew. */
static int check_counts(struct audit *a, uint32_t from, uint32_t to, const struct audit_state *state)
{
        const struct certificate_point *point = certificate_point_at(a->context, to);

        for (uint32_t i = 0; point && i < point->n_counts; i++)
                if (point->counts[i].head != to && !audit_state_counts(state, &point->counts[i]))
                        return refuse(a, from, "a counter that slot %" PRIu32 " claims is not known", to);
        return 0;
}

static int go_to(struct audit *a, uint32_t block, unsigned way, const struct audit_state *state)
{
        const struct cfg_block *from = &a->cfg->blocks[block], *to = &a->cfg->blocks[from->next[way]];
        int r;

        a->ways[block].goes[way] = true;
        r = check_claimed(a, a->context, from->last, to->start, state, from->rank >= to->rank);
        return r ? r : check_counts(a, from->last, to->start, state);
}

static int go_branch(struct audit *a, uint32_t block)
{
        uint32_t slot = a->cfg->blocks[block].last;
        int r = 0;

        if (audit_check_branch(&a->rules, a->now, slot))
                return 1;
        audit_state_copy(a->jumps, a->now);
        if (audit_branch(&a->rules, a->jumps, slot, true))
                r = go_to(a, block, 1, a->jumps);
        if (r == 0 && audit_branch(&a->rules, a->now, slot, false))
                r = go_to(a, block, 0, a->now);
        return r;
}

/* Into the function: its context is the chain with this call. Counters do not change in it, but for those on the stack.
 */
static int go_call(struct audit *a, uint32_t block)
{
        const struct cfg_block *from = &a->cfg->blocks[block];
        struct verifier_context chain = a->context->chain;
        uint32_t slot = from->last, behind = a->cfg->blocks[from->next[0]].start;
        int r;

        audit_step_counts(&a->rules, a->now, slot);
        r = check_counts(a, slot, behind, a->now);
        if (r == 0)
                r = audit_call(&a->rules, a->now, slot);
        if (r)
                return r;
        chain.calls[chain.n++] = slot;
        a->now->n_counts = 0;
        return check_claimed(a, certificate_find(a->certificate, &chain), slot, a->program->insns[slot].target, a->now,
                             false);
}

/* Of the frame that was left. */
static void forget_turns(struct audit_state *state)
{
        for (uint32_t i = state->n_turns; i-- > 0;)
                if (state->turns[i].frame >= state->depth)
                        state->turns[i] = state->turns[--state->n_turns];
}

static int go_exit(struct audit *a, uint32_t block)
{
        uint32_t slot = a->cfg->blocks[block].last;
        struct verifier_context chain = a->context->chain;

        if (audit_exit(&a->rules, a->now, slot))
                return 1;
        if (a->now->depth == 0)
                return 0;
        chain.n--;
        forget_turns(a->now);
        return check_claimed(a, certificate_find(a->certificate, &chain), slot, chain.calls[chain.n] + 1, a->now,
                             false);
}

/* One state at the start of a block, to the block's end and on. */
static int go_block(struct audit *a, uint32_t block)
{
        const struct cfg_block *b = &a->cfg->blocks[block];
        const struct insn *insns = a->program->insns;
        uint32_t slot = b->start;

        for (;;) {
                uint8_t kind = insns[slot].kind;

                if (kind == INSN_BRANCH || kind == INSN_JUMP || kind == INSN_CALL_LOCAL || kind == INSN_EXIT)
                        audit_end_block(a->now);
                if (kind == INSN_BRANCH)
                        return go_branch(a, block);
                if (kind == INSN_JUMP)
                        return go_to(a, block, 1, a->now);
                if (kind == INSN_CALL_LOCAL)
                        return go_call(a, block);
                if (kind == INSN_EXIT)
                        return go_exit(a, block);
                audit_step_counts(&a->rules, a->now, slot);
                if (audit_step(&a->rules, a->now, slot))
                        return 1;
                if (slot == b->last) {
                        audit_end_block(a->now);
                        return go_to(a, block, 0, a->now);
                }
                slot = insn_next(&insns[slot], slot);
        }
}

/* Begin a turn: at its head, a loop's counter is what it is there. */
static int begin_turn(struct audit *a, uint32_t slot)
{
        const struct verifier_ending *ending = ending_at(a->context, slot);
        struct audit_state *state = a->now;

        for (uint32_t i = state->n_counts; i-- > 0;)
                if (state->counts[i].head == slot)
                        state->counts[i] = state->counts[--state->n_counts];
        if (!ending)
                return 0;
        if (state->n_counts == AUDIT_COUNTS)
                return refuse(a, slot, "too many counters");
        state->counts[state->n_counts++] = (struct verifier_count){.head = slot, .slot = slot, .at = ending->counter};
        return 0;
}

static int check_point(struct audit *a, uint32_t sub, const struct certificate_point *point)
{
        uint32_t block;

        if (point->slot >= a->program->n_insns)
                return refuse(a, FAULT_NO_SLOT, "claims for slot %" PRIu32 ", behind the program", point->slot);
        block = block_at(a, point->slot);
        if (a->cfg->blocks[block].start != point->slot || a->cfg->blocks[block].sub != sub)
                return refuse(a, point->slot, "claims for a slot at which no block of the function begins");
        a->ways[block].is_reached = true;
        for (const struct certificate_state *claim = point->states; claim; claim = claim->next) {
                int r;

                if (claim->state.depth != a->context->chain.n + 1 ||
                    !audit_state_of(&a->rules, claim, point->counts, point->n_counts, a->now))
                        return refuse(a, point->slot, "a claim that makes no sense");
                r = begin_turn(a, point->slot);
                if (r == 0)
                        r = go_block(a, block);
                if (r)
                        return r;
        }
        return 0;
}

/* The functions that run in the frames of a chain of calls. Return: false if it leads nowhere. */
static bool follow_chain(const struct audit *a, const struct verifier_context *chain, uint32_t subs[PROFILE_CALL_DEPTH])
{
        if (chain->n >= PROFILE_CALL_DEPTH)
                return false;
        subs[0] = 0;
        for (uint32_t i = 0; i < chain->n; i++) {
                uint32_t slot = chain->calls[i];

                if (slot >= a->program->n_insns || a->program->insns[slot].kind != INSN_CALL_LOCAL ||
                    a->cfg->blocks[block_at(a, slot)].sub != subs[i])
                        return false;
                subs[i + 1] = a->cfg->blocks[block_at(a, a->program->insns[slot].target)].sub;
        }
        return true;
}

static uint64_t add_up(uint64_t x, uint64_t y)
{
        uint64_t sum;

        return __builtin_add_overflow(x, y, &sum) ? UINT64_MAX : sum;
}

/* The worst case of a function in the context, along the ways that claimed states go. Only for graphs without loops,
 * where the order of the graph is that of time. */
static uint64_t worst_case(const struct audit *a, uint32_t sub)
{
        const struct cfg_sub *s = &a->cfg->subs[sub];
        const struct cost_table *table = a->options->costs ? a->options->costs : cost_default();

        for (uint32_t i = s->first_rank + s->n_blocks; i-- > s->first_rank;) {
                const struct cfg_block *block = &a->cfg->blocks[a->cfg->order[i]];
                struct way *way = &a->ways[a->cfg->order[i]];
                struct verifier_context chain = a->context->chain;
                const struct certificate_context *callee;
                uint64_t behind = 0;

                for (uint32_t slot = block->start; slot < block->end; slot++)
                        if (a->program->insns[slot].kind != INSN_TAIL)
                                way->rest_ps = add_up(way->rest_ps, cost_of(table, &a->program->insns[slot]));
                for (unsigned n = 0; n < 2; n++)
                        if (way->goes[n] && a->ways[block->next[n]].rest_ps > behind)
                                behind = a->ways[block->next[n]].rest_ps;
                if (a->program->insns[block->last].kind == INSN_CALL_LOCAL) {
                        chain.calls[chain.n++] = block->last;
                        callee = certificate_find(a->certificate, &chain);
                        if (callee)
                                behind = add_up(a->costs[callee - a->certificate->contexts],
                                                a->ways[block->next[0]].rest_ps);
                }
                way->rest_ps = way->is_reached ? add_up(way->rest_ps, behind) : 0;
        }
        return a->ways[s->entry].rest_ps;
}

static int check_context(struct audit *a, uint32_t number)
{
        const struct certificate_context *context = &a->certificate->contexts[number];
        uint32_t subs[PROFILE_CALL_DEPTH];
        int r = 0;

        if (!follow_chain(a, &context->chain, subs))
                return refuse(a, FAULT_NO_SLOT, "claims for a chain of calls that there is not");
        a->context = context;
        memset(a->rules.deepest, 0, sizeof(a->rules.deepest));
        memset(a->ways, 0, a->cfg->n_blocks * sizeof(*a->ways));
        for (uint32_t i = 0; i < context->n_points && r == 0; i++)
                r = check_point(a, subs[context->chain.n], &context->points[i]);
        for (uint32_t frame = 0; frame <= context->chain.n; frame++)
                a->frames[subs[frame]] = MAX(a->frames[subs[frame]], a->rules.deepest[frame]);
        if (r == 0 && a->cfg->n_back_edges == 0)
                a->costs[number] = worst_case(a, subs[context->chain.n]);
        return r;
}

static int check_entry(struct audit *a)
{
        const struct verifier_context none = {0};

        audit_state_enter(&a->rules, a->now);
        return check_claimed(a, certificate_find(a->certificate, &none), 0, 0, a->now, false);
}

static int check_digests(struct audit *a, struct err *err)
{
        uint8_t digests[CERTIFICATE_PARTS][CERTIFICATE_DIGEST];
        int r = certificate_digests(a->program, a->options, digests, err);

        for (unsigned part = 0; part < CERTIFICATE_PARTS && r == 0; part++)
                if (memcmp(digests[part], a->certificate->digests[part], CERTIFICATE_DIGEST) != 0)
                        r = refuse(a, FAULT_NO_SLOT, "it is for another %s",
                                   certificate_part_name((enum certificate_part)part));
        return r;
}

/* What the profile limits and can be seen without any claim. */
static int check_limits(struct audit *a)
{
        const struct program *program = a->program;
        const struct profile *profile = a->options->profile;

        if (program->n_insns > profile->max_slots)
                return fault_set(a->fault, FAULT_INSN_LIMIT, FAULT_NO_SLOT, "too many instructions");
        if (program->n_maps > profile->max_maps)
                return fault_set(a->fault, FAULT_MAP_LIMIT, FAULT_NO_SLOT, "too many maps");
        for (uint32_t i = 0; i < program->n_maps; i++)
                if (map_bytes(&program->maps[i]) > profile->max_map_bytes)
                        return fault_set(a->fault, FAULT_MAP_LIMIT, FAULT_NO_SLOT, "map %s is too large",
                                         program->maps[i].name);
        if (a->cfg->n_back_edges > 0 && !profile->allows_loops)
                return fault_set(a->fault, FAULT_LOOP, FAULT_NO_SLOT, "a loop");
        if (a->cfg->n_back_edges > 0 && profile->max_cost_ps != 0)
                return fault_set(a->fault, FAULT_COST, FAULT_NO_SLOT,
                                 "the auditor bounds what programs cost only where they have no loops");
        return 0;
}

/* What the claims say of stack and cost. */
static int check_budgets(struct audit *a)
{
        const struct profile *profile = a->options->profile;
        const struct cost_table *table = a->options->costs ? a->options->costs : cost_default();
        const struct verifier_context none = {0};
        const struct certificate_context *entry = certificate_find(a->certificate, &none);
        const struct cfg *cfg = a->cfg;

        for (uint32_t i = 0; i < cfg->n_subs; i++) {
                const struct cfg_sub *sub = &cfg->subs[cfg->sub_order[i]];
                uint32_t deepest = 0;

                for (uint32_t c = sub->first_call; c < sub->first_call + sub->n_calls; c++)
                        deepest = MAX(deepest, a->frames[cfg->calls[c].callee]);
                a->frames[cfg->sub_order[i]] = (a->frames[cfg->sub_order[i]] + 7) / 8 * 8 + deepest;
        }
        if (a->frames[0] > profile->max_stack_bytes)
                return fault_set(a->fault, FAULT_STACK_LIMIT, FAULT_NO_SLOT, "%" PRIu32 " bytes of stack",
                                 a->frames[0]);
        if (profile->max_cost_ps != 0 &&
            add_up(a->costs[entry - a->certificate->contexts], table->class_ps[COST_ENTRY]) > profile->max_cost_ps)
                return fault_set(a->fault, FAULT_COST, FAULT_NO_SLOT, "more than the budget");
        return 0;
}

static int check_all(struct audit *a, struct err *err)
{
        int r = check_digests(a, err);

        if (r == 0)
                r = check_limits(a);
        if (r == 0)
                r = check_entry(a);
        /* Callees' chains are longer than their callers' and come behind them. */
        for (uint32_t i = a->certificate->n_contexts; i-- > 0 && r == 0;)
                r = check_context(a, i);
        return r ? r : check_budgets(a);
}

/* Return: false if memory ran out. */
static bool make_hints(struct audit *a)
{
        size_t n = 0;

        a->first_hints = calloc(a->certificate->n_contexts + 1, sizeof(*a->first_hints));
        for (uint32_t i = 0; a->first_hints && i < a->certificate->n_contexts; i++) {
                a->first_hints[i] = n;
                n += a->certificate->contexts[i].n_points;
        }
        a->hints = calloc(n + 1, sizeof(struct certificate_state *));
        return a->first_hints && a->hints;
}

static void audit_done(struct audit *a)
{
        free(a->first_hints);
        free(a->hints);
}

int audit_check(const struct program *program, const struct certificate *certificate,
                const struct verifier_options *options, struct fault *fault, struct err *err)
{
        _cleanup_free_ struct audit_state *now = calloc(1, sizeof(*now)), *jumps = calloc(1, sizeof(*jumps));
        _cleanup_free_ uint64_t *costs = calloc(certificate->n_contexts + 1, sizeof(*costs));
        _cleanup_free_ uint32_t *frames = NULL;
        _cleanup_free_ struct way *ways = NULL;
        _cleanup_cfg_ struct cfg *cfg = NULL;
        _cleanup_(audit_done) struct audit a = {.program = program,
                                                .certificate = certificate,
                                                .options = options,
                                                .fault = fault};
        int r;

        if (program->fault.kind != FAULT_NONE) {
                *fault = program->fault;
                return 1;
        }
        r = cfg_build(program, &cfg, fault, err);
        if (r)
                return r;
        frames = calloc(cfg->n_subs, sizeof(*frames));
        ways = calloc(cfg->n_blocks, sizeof(*ways));
        if (!now || !jumps || !costs || !frames || !ways || !make_hints(&a))
                return err_set_nomem(err);

        a.cfg = cfg;
        a.now = now;
        a.jumps = jumps;
        a.costs = costs;
        a.frames = frames;
        a.ways = ways;
        a.rules = (struct audit_rules){.program = program,
                                       .profile = options->profile,
                                       .may_actuate = options->may_actuate,
                                       .fault = fault};
        r = check_all(&a, err);
        if (r == 0)
                *fault = (struct fault){0};
        return r;
}
