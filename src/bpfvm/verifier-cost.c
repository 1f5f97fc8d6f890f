/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/macro.h"
#include "bpfvm/verifier-internal.h"

/* The costliest way through a function: the longest path over the edges that states went, in a graph where each loop is
 * one node that costs its costliest turn as often as it may turn, and once more. Sums stick at the end of their range.
 */

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

static uint64_t own_ps(const struct verifier *v, uint32_t block)
{
        const struct cfg_block *b = &v->cfg->blocks[block];

        return add_up(cost_of_slots(v->table, v->program->insns + b->start, b->end - b->start),
                      v->costs[block].callee_ps);
}

/* The part of the order that is looked at: all of a function, or one loop. */
struct stretch {
        uint32_t loop; /* LOOP_NONE: the function */
        uint32_t first, end;
};

/* The costliest block to go on with behind @block, among those of the stretch; what leads to @inner's own blocks, or
 * back to the stretch's head, is left out. */
static void choose(struct verifier *v, const struct stretch *stretch, uint32_t block, uint32_t inner, uint64_t *ret_ps,
                   uint32_t *ret_next)
{
        const struct cfg_block *b = &v->cfg->blocks[block];

        for (unsigned i = 0; i < 2; i++) {
                uint32_t next = b->next[i];

                if (next == CFG_NONE || !(v->costs[block].ways & (i == 0 ? WAY_FALLS : WAY_JUMPS)))
                        continue;
                if (inner != LOOP_NONE && loops_have(v->loops, inner, next))
                        continue;
                if (stretch->loop != LOOP_NONE &&
                    (!loops_have(v->loops, stretch->loop, next) || next == v->loops->loops[stretch->loop].head))
                        continue;
                if (*ret_next == CFG_NONE || v->costs[next].rest_ps > *ret_ps) {
                        *ret_ps = v->costs[next].rest_ps;
                        *ret_next = next;
                }
        }
}

static void measure_block(struct verifier *v, const struct stretch *stretch, uint32_t block)
{
        struct block_cost *cost = &v->costs[block];
        uint64_t rest = 0;

        cost->next = CFG_NONE;
        choose(v, stretch, block, LOOP_NONE, &rest, &cost->next);
        cost->rest_ps = add_up(own_ps(v, block), rest);
}

static uint64_t measure(struct verifier *v, const struct stretch *stretch);

/* A loop inside a stretch, as one node. */
static void measure_loop(struct verifier *v, const struct stretch *stretch, uint32_t number)
{
        const struct loop *loop = &v->loops->loops[number];
        const struct stretch inside = {number, loop->first, loop->end};
        uint64_t turn = measure(v, &inside), rest = 0;
        uint32_t next = CFG_NONE;

        for (uint32_t i = loop->first; i < loop->end; i++)
                choose(v, stretch, v->loops->order[i], number, &rest, &next);
        v->costs[loop->head].rest_ps = add_up(times(turn, add_up(loop->turns, 1)), rest);
        v->costs[loop->head].next = next;
}

/* The outermost loop of a block below the one that the stretch is. */
static uint32_t loop_below(const struct verifier *v, const struct stretch *stretch, uint32_t block)
{
        uint32_t loop = v->loops ? v->loops->loop_of[block] : LOOP_NONE;

        if (loop == stretch->loop)
                return LOOP_NONE;
        while (loop != LOOP_NONE && v->loops->loops[loop].parent != stretch->loop)
                loop = v->loops->loops[loop].parent;
        return loop;
}

static uint64_t measure(struct verifier *v, const struct stretch *stretch)
{
        const uint32_t *order = v->loops ? v->loops->order : v->cfg->order;

        for (uint32_t i = stretch->end; i > stretch->first; i--) {
                uint32_t block = order[i - 1], loop = loop_below(v, stretch, block);

                if (loop != LOOP_NONE) {
                        measure_loop(v, stretch, loop);
                        i = v->loops->loops[loop].first + 1;
                } else if (v->costs[block].ways & WAY_REACHED) {
                        measure_block(v, stretch, block);
                }
        }
        return v->costs[order[stretch->first]].rest_ps;
}

uint64_t verifier_cost(struct verifier *v, uint32_t sub)
{
        const struct cfg_sub *s = &v->cfg->subs[sub];
        const struct stretch whole = {LOOP_NONE, s->first_rank, s->first_rank + s->n_blocks};

        return measure(v, &whole);
}
