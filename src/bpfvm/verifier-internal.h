/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bpfvm/cfg.h"
#include "bpfvm/transfer.h"
#include "bpfvm/verifier.h"

/* Where states meet: the entry of a block, or the end of a function. */
struct point {
        struct state *states;
        uint32_t n;
};

/* One block on a way from the entry; ways share their beginnings. Number 0 is that of no block. */
struct way {
        uint32_t before; /* the way to the block before */
        struct verifier_step step;
};

/* A loop: blocks that lead back to its head without leaving it. */
struct loop {
        uint32_t head;       /* block */
        uint32_t parent;     /* loop around it, LOOP_NONE */
        uint32_t depth;      /* 1: in no other */
        uint32_t first, end; /* its part of loops->order, head first */
        uint32_t passes;     /* over its blocks so far, with states that had grown */
        bool is_joined;      /* states that come to its head are joined with those there */
        bool is_settling;    /* nothing that leaves it counts yet */
        bool has_grown;      /* the states at its head, since the last pass began */
        struct state *kept;  /* those at its head, for when a loop around it that is settling comes by again */
        uint64_t turns;      /* jumps back, at most, whenever it was entered */
        int64_t *thresholds; /* ascending: where bounds of the states at its head may stop to grow */
        uint32_t n_thresholds;
};

#define LOOP_NONE UINT32_MAX

/* Where states at a loop's head are joined, what grows is widened: the head may grow so often, for each loop that it
 * lies in, since what settles around it makes it grow too. At first states are joined; then bounds that grow jump to
 * constants that the loop compares with, then to the ends of the machine's widths, then to the end of their range. */
#define LOOP_JOINS   2
#define LOOP_NEAR    8
#define LOOP_FAR     4
#define LOOP_PASSES  (LOOP_JOINS + LOOP_NEAR + LOOP_FAR + 4)
#define LOOP_NESTING 8

struct loops {
        uint32_t n;
        struct loop *loops;
        uint32_t *loop_of;  /* innermost loop of a block, LOOP_NONE */
        uint32_t *order;    /* blocks in the order to go through them: as cfg->order, but loops in one piece */
        uint32_t *position; /* of a block in that */
        struct note *notes; /* by slot: what the settled states say of an instruction in a loop */
};

/* What an instruction does that its text does not say. */
struct note {
        bool is_set;
        bool writes_stack;   /* a store or an atomic: may */
        int64_t least, most; /* the number that the other register of an addition or subtraction holds */
};

/* What the cost of a function is made of. */
struct block_cost {
        uint64_t callee_ps; /* most that the function costs which it calls at its end */
        uint64_t rest_ps;   /* most from its start to the function's end */
        uint32_t next;      /* block that follows on the way that costs that, or CFG_NONE */
        uint8_t ways;       /* that states went: WAY_* */
        uint8_t ever;       /* as ways, in all calls of the function */
};

enum { WAY_REACHED = 1, WAY_FALLS = 2, WAY_JUMPS = 4 };

/* A program with loops is gone through in stages, until one accepts it. In the first all states that come to a loop's
 * head are joined, which takes a few passes however often the loop turns, and is enough for most. In the next, turns
 * are kept apart as long as that takes no more than so many transfers, since then no bound is lost that one variable
 * has by another. What is only tried is not observed. */
enum run_kind { RUN_TRY, RUN_OBSERVED, RUN_EXPLAINED };

#define LOOP_STAGES 3
static const uint64_t loop_apart[LOOP_STAGES] = {0, 4096, 262144};

struct verifier {
        const struct program *program;
        const struct verifier_options *options;
        const struct cost_table *table; /* of costs */
        struct verdict *verdict;
        struct err *err;
        struct cfg *cfg;
        struct loops *loops; /* NULL: none */
        struct transfer t;
        struct state_pool pool;
        uint32_t disjuncts;
        unsigned settling;        /* loops around here that are */
        unsigned apart;           /* loops around here whose turns are kept apart, in all frames */
        uint64_t apart_transfers; /* made in those */

        struct point *points;                       /* by block */
        struct point exits[PROFILE_CALL_DEPTH + 1]; /* by frames of the function that ended */
        struct verifier_context context;
        struct verifier_turn turns[VERIFIER_TURNS_MAX]; /* what context.turns is */
        uint16_t *live;           /* by block: registers that it, or what follows, reads before writing them */
        struct block_cost *costs; /* by block, of the running call of its function */
        uint32_t *sub_bytes;      /* by function: stack that its frame needs */

        unsigned stage;
        enum run_kind kind;
        struct way *ways; /* with RUN_EXPLAINED */
        uint32_t n_ways, ways_allocated;
};

/* verifier_is_observed - whether observers are to be called; without loops nothing is ever only tried */
static inline bool verifier_is_observed(const struct verifier *v)
{
        return v->kind == RUN_OBSERVED || (v->kind == RUN_TRY && !v->loops);
}

/* verifier_refuse - Return: 1, with the reason in the verdict. */
#define verifier_refuse(v, kind, slot, ...) fault_set(&(v)->verdict->fault, kind, slot, __VA_ARGS__)

/* verifier_live - fill v->live. Return: 0 or -ENOMEM. */
int verifier_live(struct verifier *v);

/* verifier_limits - check the profile's caps, and compute the bounds on the work. Return: 0; 1 refused; -ENOMEM. */
int verifier_limits(struct verifier *v);

/* verifier_enter - a state comes to a block's entry; takes @state over. Return: 0; 1 refused. */
int verifier_enter(struct verifier *v, uint32_t block, struct state *state);

/* verifier_flow - a state at the end of block @from goes on to block @to; takes @state over. Return: 0; 1 refused. */
int verifier_flow(struct verifier *v, uint32_t from, uint32_t to, struct state *state);

/* verifier_is_muted - whether going from a block to another (CFG_NONE: out of the function) leaves a loop that has not
 * settled, so that it does not count yet */
bool verifier_is_muted(const struct verifier *v, uint32_t from, uint32_t to);

/* verifier_merge - add a state to a point that is no loop's head; takes @state over. Return: 0; 1 refused. */
int verifier_merge(struct verifier *v, struct point *point, struct state *state);

/* verifier_merge_head - add a state to those at the head of a loop; takes @state over. Return: 0; 1 refused. */
int verifier_merge_head(struct verifier *v, struct loop *loop, struct state *state);

/* verifier_go - go through the blocks at positions [first, end) of the order. Return: 0; 1 refused; -ENOMEM. */
int verifier_go(struct verifier *v, uint32_t first, uint32_t end);

/* verifier_block - carry out a block for all states at its entry, which are released unless @keeps. Return: 0; 1. */
int verifier_block(struct verifier *v, uint32_t block, bool keeps);

/* verifier_sub - go through a function, whose entry has states; what is left is in v->exits
 * @ret_ps: its worst case
 *
 * Return: 0; 1 refused; -ENOMEM.
 */
int verifier_sub(struct verifier *v, uint32_t sub, uint64_t *ret_ps);

/* verifier_cost - worst case of a function that has just been gone through, in picoseconds; UINT64_MAX: too large */
uint64_t verifier_cost(struct verifier *v, uint32_t sub);

/* verifier_explain - record what @state knows of what a refused instruction needs, and how the state was reached */
void verifier_explain(struct verifier *v, const struct insn *insn, const struct state *state);

/* loops_find - the loops of v->cfg, and an order in which each lies in one piece
 *
 * Return: 0; 1 refused (a loop that can be entered other than at its head, or nested too deeply); -ENOMEM.
 */
int loops_find(struct verifier *v);
void loops_free(struct loops *loops);

/* loops_of_head - the loop with that head */
static inline struct loop *loops_of_head(const struct loops *loops, uint32_t head)
{
        return &loops->loops[loops->loop_of[head]];
}

/* loops_have - whether block @block lies in loop number @loop */
static inline bool loops_have(const struct loops *loops, uint32_t loop, uint32_t block)
{
        uint32_t l = block == CFG_NONE ? LOOP_NONE : loops->loop_of[block];

        while (l != LOOP_NONE && l != loop)
                l = loops->loops[l].parent;
        return l == loop;
}

/* verifier_loop - go through a loop, whose head has states, until it is left. Return: 0; 1 refused; -ENOMEM. */
int verifier_loop(struct verifier *v, struct loop *loop);

/* verifier_turns - how often a settled loop jumps back at most. Return: 0; 1 refused; -ENOMEM. */
int verifier_turns(struct verifier *v, const struct loop *loop, uint64_t *ret);

/* verifier_note - record what a settled state says of the instruction at @slot */
void verifier_note(struct verifier *v, uint32_t slot, const struct state *state);

/* loop_widen - a state at a loop's head becomes one that includes @src too, in steps that come to an end */
void loop_widen(struct verifier *v, struct loop *loop, struct state *dst, const struct state *src);
