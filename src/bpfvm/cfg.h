/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "bpfvm/program.h"

/* The control flow graph of a program: basic blocks of each subprogram, edges, an order, back edges, and who calls
 * whom. Built in time and memory linear in the instructions, without recursion. */

#define CFG_NONE UINT32_MAX

struct cfg_block {
        uint32_t start, end; /* slots [start, end) */
        uint32_t last;       /* slot of the last instruction (end - 1, or end - 2 for a wide load) */
        uint32_t sub;
        /* Successors as block numbers, CFG_NONE where there is none: [0] by falling through (also from a local call, to
         * the instruction after it), [1] by jumping. A branch to the next instruction has both, equal. */
        uint32_t next[2];
        uint32_t first_pred, n_preds; /* in cfg->preds */
        uint32_t rank;                /* position in cfg->order */
        bool is_loop_head;            /* target of a back edge */
};

struct cfg_edge {
        uint32_t from, to; /* blocks */
};

struct cfg_sub {
        uint32_t entry;                /* block */
        uint32_t first_rank, n_blocks; /* its part of cfg->order */
        uint32_t depth;                /* frames that it needs, itself included */
        uint32_t first_call, n_calls;  /* in cfg->calls */
};

/* A local call. */
struct cfg_call {
        uint32_t slot;
        uint32_t callee; /* subprogram */
};

/* Blocks end at jumps, branches, exits and local calls, and begin at targets. Numbered ascending by start. */
struct cfg {
        uint32_t n_blocks, n_subs, n_edges, n_back_edges, n_calls;
        struct cfg_block *blocks;
        uint32_t *block_of; /* by slot */
        uint32_t *preds;    /* blocks; a block is listed twice where both its edges lead there */
        /* Blocks, subprogram by subprogram: reverse post-order of a depth-first search from the entry, so without back
         * edges a topological order. */
        uint32_t *order;
        struct cfg_edge *back_edges; /* to a block that is on the search's path */
        struct cfg_sub *subs;
        struct cfg_call *calls;
        uint32_t *sub_order; /* subprograms, callees before callers */
};

/* cfg_build - build and check the graph of a program without fault
 *
 * Return: 0; 1 with one of the graph's kinds in @fault (FAULT_FALL_THROUGH, FAULT_UNREACHABLE, FAULT_RECURSION,
 * FAULT_CALL_DEPTH; never FAULT_LOOP: back edges are for the profile to judge); -ENOMEM.
 */
int cfg_build(const struct program *program, struct cfg **ret, struct fault *fault, struct err *err);

void cfg_free(struct cfg *cfg);
DEFINE_CLEANUP(struct cfg *, cfg_free)
#define _cleanup_cfg_ _cleanup_(cfg_free_cleanup)
