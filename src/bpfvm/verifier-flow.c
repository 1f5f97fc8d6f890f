/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/macro.h"
#include "bpfvm/verifier-internal.h"

static void add(struct point *point, struct state *state)
{
        state->next = point->states;
        point->states = state;
        point->n++;
}

static void remove_state(struct verifier *v, struct point *point, struct state **at)
{
        struct state *state = *at;

        *at = state->next;
        point->n--;
        state_release(&v->pool, state);
}

int verifier_merge(struct verifier *v, struct point *point, struct state *state)
{
        unsigned least = UINT32_MAX, distance = 0;
        struct state **at = &point->states, *nearest = NULL;

        while (*at) {
                struct state *there = *at;

                v->verdict->comparisons++;
                switch (state_compare(there, state, &distance)) {
                case STATE_INCLUDES:
                        state_release(&v->pool, state);
                        return 0;
                case STATE_WITHIN:
                        if (nearest == there)
                                nearest = NULL;
                        remove_state(v, point, at);
                        continue;
                case STATE_APART:
                        if (distance < least) {
                                least = distance;
                                nearest = there;
                        }
                        break;
                }
                at = &there->next;
        }
        if (point->n < v->disjuncts || !nearest) {
                add(point, state);
                return 0;
        }
        state_join(nearest, state, NULL);
        state_release(&v->pool, state);
        return 0;
}

int verifier_merge_head(struct verifier *v, struct loop *loop, struct state *state)
{
        struct point *point = &v->points[loop->head];
        unsigned least = UINT32_MAX, distance = 0;
        struct state *nearest = NULL;

        for (struct state *there = point->states; there; there = there->next) {
                v->verdict->comparisons++;
                if (state_compare(there, state, &distance) == STATE_INCLUDES) {
                        state_release(&v->pool, state);
                        return 0;
                }
                if (distance < least) {
                        least = distance;
                        nearest = there;
                }
        }
        loop->has_grown = true;
        if (!nearest || (least >= STATE_DISTANCE_KIND && point->n < v->disjuncts)) {
                add(point, state);
                return 0;
        }
        loop_widen(v, loop, nearest, state);
        state_release(&v->pool, state);
        return 0;
}

bool verifier_is_muted(const struct verifier *v, uint32_t from, uint32_t to)
{
        if (v->settling == 0)
                return false;
        for (uint32_t l = v->loops->loop_of[from]; l != LOOP_NONE; l = v->loops->loops[l].parent) {
                if (loops_have(v->loops, l, to))
                        return false;
                if (v->loops->loops[l].is_settling)
                        return true;
        }
        return false;
}

static int keep_way(struct verifier *v, struct state *state, uint32_t block)
{
        if (v->kind != RUN_EXPLAINED)
                return 0;
        if (v->n_ways == v->ways_allocated) {
                uint32_t n = MAX(v->ways_allocated * 2, 1024u);
                struct way *ways = reallocarray(v->ways, n, sizeof(*ways));

                if (!ways)
                        return verifier_refuse(v, FAULT_STATE_LIMIT, FAULT_NO_SLOT, "no memory is left");
                v->ways = ways;
                v->ways_allocated = n;
                v->n_ways = MAX(v->n_ways, 1u);
        }
        v->ways[v->n_ways] = (struct way){
                .before = state->path,
                .step = {.slot = v->cfg->blocks[block].start, .depth = state->depth},
        };
        state->path = v->n_ways++;
        return 0;
}

int verifier_enter(struct verifier *v, uint32_t block, struct state *state)
{
        const struct cfg_block *b = &v->cfg->blocks[block];
        int r;

        state_keep(state, v->live[block]);
        r = keep_way(v, state, block);
        if (r) {
                state_release(&v->pool, state);
                return r;
        }
        if (b->is_loop_head && loops_of_head(v->loops, block)->is_joined)
                return verifier_merge_head(v, loops_of_head(v->loops, block), state);
        if (b->n_preds > 1 || b->start == v->program->subs[b->sub].start)
                return verifier_merge(v, &v->points[block], state);
        add(&v->points[block], state);
        return 0;
}

int verifier_flow(struct verifier *v, uint32_t from, uint32_t to, struct state *state)
{
        if (verifier_is_muted(v, from, to)) {
                state_release(&v->pool, state);
                return 0;
        }
        return verifier_enter(v, to, state);
}
