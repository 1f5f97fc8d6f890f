/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "bpfvm/assemble.h"
#include "bpfvm/cfg.h"
#include "bpfvm/disasm.h"
#include "bpfvm/interp.h"
#include "bpfvm/oracle.h"

/* What holds for any program, legal or not: used by the targets that make programs of bytes. */

#define EXERCISE_STEPS     3000
#define EXERCISE_MAP_BYTES (1 << 20)

/* One of every kind. */
static const struct map_def exercise_maps[] = {
        {.name = "array", .kind = MAP_ARRAY, .key_size = 4, .value_size = 12, .max_entries = 4},
        {.name = "hash", .kind = MAP_HASH, .key_size = 8, .value_size = 8, .max_entries = 2},
        {.name = "ring", .kind = MAP_RING, .max_entries = 4096},
        {.name = "global", .kind = MAP_ARRAY, .key_size = 4, .value_size = 16, .max_entries = 1, .is_global = true},
        {.name = "ro", .kind = MAP_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1, .is_read_only = true},
};

static uint64_t exercise_time(void *userdata)
{
        return 1000;
}

static uint32_t exercise_random(void *userdata)
{
        return 7;
}

static const struct embed exercise_embed = {.time_ns = exercise_time, .random_u32 = exercise_random};

static void exercise_require(bool holds)
{
        if (!holds)
                abort();
}

/* What the disassembler prints, the assembler turns into the same bytes. */
static inline void exercise_text(const struct program *program)
{
        _cleanup_text_ struct text text = {0};
        _cleanup_free_ uint8_t *bytes = NULL;
        size_t len;

        for (uint32_t slot = 0; slot < program->n_insns; slot++) {
                char line[DISASM_SIZE];

                text_addf(&text, "%s\n", disasm_insn(&program->insns[slot], slot, line));
        }
        exercise_require(!text.failed);
        if (program->n_insns > 60000)
                return;
        exercise_require(assemble_text(span_of(text.data, text.len), "fuzz", &bytes, &len, NULL) == 0);
        exercise_require(len == (size_t)program->n_insns * INSN_SLOT_BYTES && memcmp(bytes, program->slots, len) == 0);
}

static inline void exercise_graph(const struct program *program)
{
        _cleanup_cfg_ struct cfg *cfg = NULL;
        struct fault fault = {0};

        if (cfg_build(program, &cfg, &fault, NULL) != 0) {
                exercise_require(fault.kind != FAULT_NONE && fault.text[0] != 0);
                return;
        }
        for (uint32_t b = 0; b < cfg->n_blocks; b++) {
                const struct cfg_block *block = &cfg->blocks[b];

                exercise_require(cfg->order[block->rank] == b && block->start <= block->last &&
                                 block->last < block->end);
                exercise_require(block->n_preds > 0 || block->start == program->subs[block->sub].start);
        }
        /* without its back edges the order is topological */
        for (uint32_t b = 0; b < cfg->n_blocks; b++)
                for (unsigned e = 0; e < 2; e++) {
                        uint32_t to = cfg->blocks[b].next[e];

                        if (to != CFG_NONE && cfg->blocks[to].rank <= cfg->blocks[b].rank)
                                exercise_require(cfg->blocks[to].is_loop_head);
                }
}

/* A run that the checking interpreter finds nothing wrong with gives the same everywhere. */
static inline void exercise_runs(const struct program *program)
{
        _cleanup_store_ struct store *store = NULL;
        _cleanup_interp_ struct interp *interp = NULL;
        struct oracle_options options = {.max_steps = EXERCISE_STEPS, .embed = &exercise_embed};
        struct oracle_result strict, lax;
        struct fault fault = {0};
        uint64_t bytes = 0, r0;
        _cleanup_free_ uint8_t *context = NULL, *after = NULL;
        size_t size = program->context.size;

        for (uint32_t i = 0; i < program->n_maps; i++)
                bytes += map_bytes(&program->maps[i]);
        if (bytes > EXERCISE_MAP_BYTES || size > EXERCISE_MAP_BYTES)
                return;
        context = calloc(1, size + 1);
        after = calloc(1, size + 1);
        exercise_require(context && after && store_new(program->maps, program->n_maps, &store, NULL) == 0);

        int r = oracle_run(program, store, context, &options, &strict, &fault, NULL);
        exercise_require(r == 0 || (r == 1 && fault.kind != FAULT_NONE && fault.text[0] != 0));
        memcpy(after, context, size);

        memset(context, 0, size);
        store_clear(store);
        options.is_lax = true;
        int r_lax = oracle_run(program, store, context, &options, &lax, &fault, NULL);
        if (r != 0)
                return;
        exercise_require(r_lax == 0 && lax.r0 == strict.r0 && lax.steps == strict.steps);
        exercise_require(memcmp(context, after, size) == 0);

        memset(context, 0, size);
        store_clear(store);
        exercise_require(interp_new(program, store, &exercise_embed, &interp, NULL) == 0);
        exercise_require(interp_run(interp, size > 0 ? context : NULL, UINT64_MAX, &r0, &fault) == 0);
        exercise_require(r0 == strict.r0 && memcmp(context, after, size) == 0);
}

static inline void exercise_program(const struct program *program)
{
        if (program->fault.kind != FAULT_NONE) {
                exercise_require(!program->insns && program->fault.text[0] != 0);
                return;
        }
        exercise_text(program);
        exercise_graph(program);
        exercise_runs(program);
}
