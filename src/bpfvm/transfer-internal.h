/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bpfvm/transfer.h"

/* transfer_load, transfer_store, transfer_atomic - one access. Return: 0; 1 with the reason in t->fault. */
int transfer_load(struct transfer *t, struct state *state, uint32_t slot);
int transfer_store(struct transfer *t, struct state *state, uint32_t slot);
int transfer_atomic(struct transfer *t, struct state *state, uint32_t slot);

/* transfer_readable - whether a helper may read @size bytes at register @reg. Return: 0; 1 with the reason. */
int transfer_readable(struct transfer *t, const struct state *state, uint32_t slot, unsigned reg, uint64_t size);

/* transfer_helper - check a helper's arguments by its prototype and set what it leaves. Return: 0; 1 with the reason.
 */
int transfer_helper(struct transfer *t, struct state *state, uint32_t slot);

/* transfer_new_id - an id that nothing in @state has */
static inline uint32_t transfer_new_id(struct state *state)
{
        return ++state->last_id;
}

/* transfer_share - make @reg, of which a copy is being made, known by an id, unless its value is known anyway */
static inline void transfer_share(struct state *state, struct reg *reg)
{
        if (reg->kind == REG_SCALAR && reg->id == 0 && !scalar_is_const(&reg->value))
                reg->id = transfer_new_id(state);
}
