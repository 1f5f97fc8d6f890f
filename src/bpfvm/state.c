/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

static bool pool_take(struct state_pool *pool, size_t bytes)
{
        if (bytes > pool->max_bytes - MIN(pool->bytes, pool->max_bytes))
                return false;
        pool->bytes += bytes;
        pool->peak_bytes = MAX(pool->peak_bytes, pool->bytes);
        return true;
}

void state_pool_done(struct state_pool *pool)
{
        while (pool->spare) {
                struct state *state = pool->spare;

                pool->spare = state->next;
                free(state->slots);
                free(state);
        }
}

/* A state whose registers and header are not set, but for its memory of slots. */
static struct state *pool_get(struct state_pool *pool)
{
        struct state *state = pool->spare;

        if (state) {
                pool->spare = state->next;
                return state;
        }
        if (!pool_take(pool, sizeof(*state)))
                return NULL;
        state = malloc(sizeof(*state));
        if (!state)
                return NULL;
        state->slots = NULL;
        state->n_allocated = 0;
        return state;
}

struct state *state_new(struct state_pool *pool)
{
        struct state *state = pool_get(pool);

        if (!state)
                return NULL;
        state->next = NULL;
        state->path = 0;
        state->last_id = 0;
        state->depth = 0;
        state->n_slots = 0;
        for (unsigned reg = 0; reg < INSN_REGISTERS; reg++)
                state->regs[reg].kind = REG_UNINIT;
        return state;
}

static bool reserve_slots(struct state_pool *pool, struct state *state, size_t n)
{
        size_t wanted = MAX(n, (size_t)state->n_allocated * 2);
        struct slot *slots;

        if (n <= state->n_allocated)
                return true;
        if (!pool_take(pool, (wanted - state->n_allocated) * sizeof(*slots)))
                return false;
        slots = realloc(state->slots, wanted * sizeof(*slots));
        if (!slots)
                return false;
        state->slots = slots;
        state->n_allocated = (uint16_t)wanted;
        return true;
}

/* Registers that are not initialised are not worth their bytes. */
static void copy_regs(struct reg *dst, const struct reg *src)
{
        for (unsigned reg = 0; reg < INSN_REGISTERS; reg++) {
                if (src[reg].kind == REG_UNINIT)
                        dst[reg].kind = REG_UNINIT;
                else
                        dst[reg] = src[reg];
        }
}

struct state *state_copy(struct state_pool *pool, const struct state *state)
{
        struct state *copy = pool_get(pool);

        if (!copy)
                return NULL;
        if (!reserve_slots(pool, copy, state->n_slots)) {
                state_release(pool, copy);
                return NULL;
        }
        copy->next = NULL;
        copy->path = state->path;
        copy->last_id = state->last_id;
        copy->depth = state->depth;
        copy->n_slots = state->n_slots;
        if (state->n_slots > 0)
                memcpy(copy->slots, state->slots, state->n_slots * sizeof(*state->slots));
        copy_regs(copy->regs, state->regs);
        return copy;
}

void state_release(struct state_pool *pool, struct state *state)
{
        if (!state)
                return;
        state->next = pool->spare;
        pool->spare = state;
}

void state_release_list(struct state_pool *pool, struct state *list)
{
        while (list) {
                struct state *state = list;

                list = state->next;
                state_release(pool, state);
        }
}

/* Position of the first slot at @place or above. */
static size_t slot_position(const struct state *state, uint16_t place)
{
        size_t low = 0, high = state->n_slots;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (state->slots[middle].place < place)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

struct slot *state_find(const struct state *state, uint16_t place)
{
        size_t i = slot_position(state, place);

        return i < state->n_slots && state->slots[i].place == place ? &state->slots[i] : NULL;
}

struct slot *state_insert(struct state_pool *pool, struct state *state, uint16_t place)
{
        size_t i = slot_position(state, place);

        if (i < state->n_slots && state->slots[i].place == place)
                return &state->slots[i];
        if (!reserve_slots(pool, state, state->n_slots + 1u))
                return NULL;
        memmove(state->slots + i + 1, state->slots + i, (state->n_slots - i) * sizeof(*state->slots));
        state->n_slots++;
        state->slots[i].place = place;
        state->slots[i].init = 0;
        state->slots[i].at = 0;
        state->slots[i].size = 0;
        return &state->slots[i];
}

void state_drop_frame(struct state *state)
{
        state->depth--;
        state->n_slots = (uint16_t)slot_position(state, STATE_PLACE(state->depth, 0));
}
