/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/macro.h"
#include "bpfvm/verifier-internal.h"

void loops_free(struct loops *loops)
{
        if (!loops)
                return;
        for (uint32_t l = 0; l < loops->n; l++)
                free(loops->loops[l].thresholds);
        free(loops->loops);
        free(loops->position);
        free(loops->notes);
        free(loops->loop_of);
        free(loops->order);
        free(loops);
}

/* Number the loops by their heads, in ascending order of rank: a loop comes after those around it. */
static void number_loops(const struct cfg *cfg, struct loops *loops)
{
        for (uint32_t i = 0; i < cfg->n_blocks; i++) {
                uint32_t block = cfg->order[i];

                loops->loop_of[block] = LOOP_NONE;
                if (cfg->blocks[block].is_loop_head)
                        loops->loops[loops->n++] = (struct loop){.head = block, .parent = LOOP_NONE};
        }
}

/* Loops that are gathered already, as pieces: top[l] leads to the outermost piece that l is part of. */
static uint32_t piece_of(const struct loops *loops, uint32_t *top, uint32_t block)
{
        uint32_t loop = loops->loop_of[block];

        if (loop == LOOP_NONE)
                return LOOP_NONE;
        while (top[loop] != loop)
                loop = top[loop] = top[top[loop]];
        return loop;
}

static int refuse_entry(struct verifier *v, uint32_t block, uint32_t head)
{
        return verifier_refuse(v, FAULT_TERMINATION, v->cfg->blocks[block].last,
                               "leads into the loop that begins at slot %" PRIu32 ", past its beginning; loops are "
                               "entered at one place",
                               v->cfg->blocks[head].start);
}

/* Gather the blocks of a loop, going back from the jumps to its head. What was gathered into an inner loop is one
 * piece, entered at that loop's head. @todo has room for all edges. Return: 0; 1 refused. */
static int gather(struct verifier *v, struct loops *loops, uint32_t number, uint32_t *top, uint32_t *todo)
{
        const struct cfg *cfg = v->cfg;
        uint32_t head = loops->loops[number].head, n = 0;
        const struct cfg_block *h = &cfg->blocks[head];

        loops->loop_of[head] = number;
        for (uint32_t i = h->first_pred; i < h->first_pred + h->n_preds; i++)
                if (cfg->blocks[cfg->preds[i]].rank >= h->rank)
                        todo[n++] = cfg->preds[i];
        while (n > 0) {
                uint32_t block = todo[--n], piece = piece_of(loops, top, block);

                if (piece == number)
                        continue;
                if (piece != LOOP_NONE) {
                        loops->loops[piece].parent = number;
                        top[piece] = number;
                        block = loops->loops[piece].head;
                } else {
                        loops->loop_of[block] = number;
                }
                if (cfg->blocks[block].rank < h->rank)
                        return refuse_entry(v, block, head);
                for (uint32_t i = 0; i < cfg->blocks[block].n_preds; i++)
                        todo[n++] = cfg->preds[cfg->blocks[block].first_pred + i];
        }
        return 0;
}

/* Blocks of each loop, those of inner ones included, and how deep loops are nested. Return: 0; 1 refused. */
static int measure(struct verifier *v, struct loops *loops, uint32_t *sizes)
{
        for (uint32_t i = 0; i < v->cfg->n_blocks; i++)
                if (loops->loop_of[i] != LOOP_NONE)
                        sizes[loops->loop_of[i]]++;
        for (uint32_t l = loops->n; l-- > 0;)
                if (loops->loops[l].parent != LOOP_NONE)
                        sizes[loops->loops[l].parent] += sizes[l];
        for (uint32_t l = 0; l < loops->n; l++) {
                uint32_t parent = loops->loops[l].parent;

                loops->loops[l].depth = parent == LOOP_NONE ? 1 : loops->loops[parent].depth + 1;
                if (loops->loops[l].depth > LOOP_NESTING)
                        return verifier_refuse(v, FAULT_TERMINATION, v->cfg->blocks[loops->loops[l].head].start,
                                               "begins a loop inside of %d others, one too many", LOOP_NESTING);
        }
        return 0;
}

/* Lay the blocks out: in the order of their ranks, but a loop keeps room for all its blocks where its head stands. (No
 * edge but those back to heads leads against this order: a head stands before, in rank, all that its loop leads to.) */
static void arrange(const struct cfg *cfg, struct loops *loops, const uint32_t *sizes, uint32_t *cursors)
{
        uint32_t outside = 0;

        for (uint32_t i = 0; i < cfg->n_blocks; i++) {
                uint32_t block = cfg->order[i], number = loops->loop_of[block];
                struct loop *loop = &loops->loops[number];

                if (number != LOOP_NONE && loop->head == block) {
                        uint32_t *around = loop->parent == LOOP_NONE ? &outside : &cursors[loop->parent];

                        loop->first = cursors[number] = *around;
                        loop->end = loop->first + sizes[number];
                        *around = loop->end;
                }
                loops->order[number == LOOP_NONE ? outside++ : cursors[number]++] = block;
        }
}

int loops_find(struct verifier *v)
{
        const struct cfg *cfg = v->cfg;
        struct loops *loops = v->loops = calloc(1, sizeof(*loops));
        _cleanup_free_ uint32_t *todo = calloc(2 * (size_t)cfg->n_edges + 1, sizeof(*todo));
        _cleanup_free_ uint32_t *numbers = calloc(2 * (size_t)cfg->n_blocks, sizeof(*numbers));
        int r = 0;

        if (!loops || !todo || !numbers)
                return err_set_nomem(v->err);
        loops->loops = calloc(cfg->n_back_edges, sizeof(*loops->loops));
        loops->loop_of = calloc(cfg->n_blocks, sizeof(*loops->loop_of));
        loops->order = calloc(cfg->n_blocks, sizeof(*loops->order));
        loops->notes = calloc(v->program->n_insns, sizeof(*loops->notes));
        loops->position = calloc(cfg->n_blocks, sizeof(*loops->position));
        if (!loops->loops || !loops->loop_of || !loops->order || !loops->position || !loops->notes)
                return err_set_nomem(v->err);

        number_loops(cfg, loops);
        for (uint32_t l = 0; l < loops->n; l++)
                numbers[l] = l;
        for (uint32_t l = loops->n; l-- > 0 && r == 0;)
                r = gather(v, loops, l, numbers, todo);
        for (uint32_t l = 0; l < loops->n; l++)
                numbers[l] = 0;
        if (r == 0)
                r = measure(v, loops, numbers);
        if (r == 0)
                arrange(cfg, loops, numbers, numbers + cfg->n_blocks);
        for (uint32_t i = 0; i < cfg->n_blocks; i++)
                loops->position[loops->order[i]] = i;
        return r;
}

/* Once through the loop's blocks. */
static int pass(struct verifier *v, struct loop *loop, bool keeps)
{
        int r = verifier_block(v, loop->head, keeps);

        return r ? r : verifier_go(v, loop->first + 1, loop->end);
}

/* Whether every state at a loop's head is one that was there before: then turns kept apart would never end. */
static bool is_round(struct verifier *v, const struct point *now, const struct state *before)
{
        for (const struct state *state = now->states; state; state = state->next) {
                const struct state *other = before;

                while (other && !(v->verdict->comparisons++, state_includes(other, state)))
                        other = other->next;
                if (!other)
                        return false;
        }
        return before != NULL;
}

static int remember(struct verifier *v, const struct point *point, struct state **before)
{
        state_release_list(&v->pool, *before);
        *before = NULL;
        for (const struct state *state = point->states; state; state = state->next) {
                struct state *copy = state_copy(&v->pool, state);

                if (!copy)
                        return verifier_refuse(v, FAULT_STATE_LIMIT, FAULT_NO_SLOT, "no memory is left for states");
                copy->next = *before;
                *before = copy;
        }
        return 0;
}

/* Turn by turn, as long as there is something left of it to spend, and the states at the head (remembered at every
 * power of two of turns) have not been there before. What is left there then is for the other way. Return: 0; 1
 * refused. */
static int keep_apart(struct verifier *v, struct loop *loop, struct verifier_turn *turn)
{
        struct point *head = &v->points[loop->head];
        uint64_t limit = loop_apart[v->stage];
        struct state *before = NULL;
        int r = 0;

        while (r == 0 && head->states && v->apart_transfers < limit && !is_round(v, head, before)) {
                if ((turn->turn & (turn->turn - 1)) == 0)
                        r = remember(v, head, &before);
                if (r)
                        break;
                v->apart++;
                r = pass(v, loop, false);
                v->apart--;
                turn->turn++;
        }
        state_release_list(&v->pool, before);
        return r;
}

/* Pass after pass, until the states at the head have not grown in one. Return: 0; 1 refused; -ENOMEM. */
static int grow(struct verifier *v, struct loop *loop)
{
        int r = 0;

        loop->is_settling = true;
        v->settling++;
        while (loop->has_grown && r == 0) {
                loop->has_grown = false;
                if (loop->passes++ == LOOP_PASSES * loop->depth)
                        r = verifier_refuse(v, FAULT_TERMINATION, v->cfg->blocks[loop->head].start,
                                            "begins a loop of which nothing holds in every turn, after %" PRIu32
                                            " passes",
                                            loop->passes - 1);
                if (r == 0)
                        r = pass(v, loop, true);
        }
        loop->is_settling = false;
        v->settling--;
        return r;
}

/* Join and widen until nothing grows, then once more with what leaves the loop. That may make the head grow after all,
 * where an inner loop could be looked at less closely this time. */
static int settle(struct verifier *v, struct loop *loop)
{
        int r = 0;

        loop->is_joined = true;
        loop->has_grown = true;
        while (loop->has_grown && r == 0) {
                r = grow(v, loop);
                if (r == 0)
                        r = pass(v, loop, true);
        }
        loop->is_joined = false;
        return r;
}

/* States that a loop's head had when a loop around it, which is settling, came by before: they are where it goes on. */
static int take_kept(struct verifier *v, struct loop *loop)
{
        int r = 0;

        while (loop->kept && r == 0) {
                struct state *state = loop->kept;

                loop->kept = state->next;
                r = verifier_merge(v, &v->points[loop->head], state);
        }
        return r;
}

/* What is kept of the loops inside one is of no use when that is entered anew. */
static void forget_inside(struct verifier *v, const struct loop *loop)
{
        for (uint32_t i = loop->first + 1; i < loop->end; i++) {
                uint32_t block = v->loops->order[i];
                struct loop *inner;

                if (!v->cfg->blocks[block].is_loop_head)
                        continue;
                inner = loops_of_head(v->loops, block);
                state_release_list(&v->pool, inner->kept);
                inner->kept = NULL;
                inner->passes = 0;
        }
}

/* What was not left turn by turn. @ret_turns: jumps back from here on. Return: 0; 1 refused; -ENOMEM. */
static int go_joined(struct verifier *v, struct loop *loop, uint64_t *ret_turns)
{
        struct point *head = &v->points[loop->head];
        bool goes_on = loop->kept;
        int r;

        if (!goes_on) {
                loop->passes = 0;
                forget_inside(v, loop);
        }
        r = take_kept(v, loop);
        if (r == 0)
                r = settle(v, loop);
        if (r == 0 && v->settling == 0)
                r = verifier_turns(v, loop, ret_turns);
        if (r == 0 && v->settling > 0) {
                loop->kept = head->states;
        } else {
                state_release_list(&v->pool, head->states);
                forget_inside(v, loop);
        }
        *head = (struct point){0};
        return r;
}

int verifier_loop(struct verifier *v, struct loop *loop)
{
        struct verifier_turn *turn = &v->turns[v->context.n_turns++];
        uint64_t turns = 0;
        bool is_left;
        int r;

        *turn = (struct verifier_turn){.frame = v->context.n, .head = v->cfg->blocks[loop->head].start};
        r = keep_apart(v, loop, turn);
        is_left = !v->points[loop->head].states;
        if (r == 0 && !is_left)
                r = go_joined(v, loop, &turns);
        /* Every turn that was kept apart led back, but for one that was the last. */
        if (__builtin_add_overflow(turns, turn->turn - is_left, &turns))
                turns = UINT64_MAX;
        loop->turns = MAX(loop->turns, turns);
        v->context.n_turns--;
        return r;
}
