/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/macro.h"
#include "bpfvm/verifier-internal.h"

/* Where growing bounds stop. Near thresholds are the numbers that the loop compares with, and their neighbours, since a
 * counter that is tested against n takes values up to n - 1, n or n + 1 at the head; and the bounds of what was known
 * when the loop was first reached. Far ones are the ends of the machine's widths, and
 * one less where a number is compared with any other of 32 bits. */
#define NEAR_MAX 192

static const int64_t far[] = {INT32_MIN, INT32_MIN + 1, INT16_MIN,  INT8_MIN,      -1,        0,         1, INT8_MAX,
                              UINT8_MAX, INT16_MAX,     UINT16_MAX, INT32_MAX - 1, INT32_MAX, UINT32_MAX};

static int compare_numbers(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (x > y) - (x < y);
}

static void add_near(struct loop *loop, int64_t value)
{
        const int64_t neighbours[] = {value == INT64_MIN ? value : value - 1, value,
                                      value == INT64_MAX ? value : value + 1};

        for (size_t i = 0; i < ARRAY_SIZE(neighbours) && loop->n_thresholds < NEAR_MAX; i++)
                loop->thresholds[loop->n_thresholds++] = neighbours[i];
}

static void add_constants(const struct verifier *v, struct loop *loop)
{
        for (uint32_t i = loop->first; i < loop->end; i++) {
                const struct cfg_block *block = &v->cfg->blocks[v->loops->order[i]];

                for (uint32_t slot = block->start; slot < block->end; slot++) {
                        const struct insn *insn = &v->program->insns[slot];

                        if (insn->kind != INSN_BRANCH || !(insn->flags & INSN_IMM))
                                continue;
                        add_near(loop, insn->imm);
                        if (insn->imm < 0 && insn->size == 4)
                                add_near(loop, (uint32_t)insn->imm);
                }
        }
}

static void add_bounds(struct loop *loop, const struct reg *reg)
{
        const struct range *r = &reg->value.word;

        if (reg->kind == REG_UNINIT || reg->kind == REG_MIXED)
                return;
        if (r->umax <= INT64_MAX)
                add_near(loop, (int64_t)r->umax);
        if (r->smin != r->smax && r->smin != INT64_MIN)
                add_near(loop, r->smin);
}

/* Sort, and drop what is there twice. */
static void settle(struct loop *loop)
{
        uint32_t n = 0;

        qsort(loop->thresholds, loop->n_thresholds, sizeof(*loop->thresholds), compare_numbers);
        for (uint32_t i = 0; i < loop->n_thresholds; i++)
                if (n == 0 || loop->thresholds[n - 1] != loop->thresholds[i])
                        loop->thresholds[n++] = loop->thresholds[i];
        loop->n_thresholds = n;
}

static void find_near(const struct verifier *v, struct loop *loop, const struct state *state)
{
        loop->thresholds = calloc(NEAR_MAX + ARRAY_SIZE(far), sizeof(*loop->thresholds));
        if (!loop->thresholds)
                return; /* widening then goes to the far ones */
        add_constants(v, loop);
        for (unsigned reg = 0; reg < INSN_FRAME_POINTER; reg++)
                add_bounds(loop, &state->regs[reg]);
        for (size_t i = 0; i < state->n_slots; i++)
                if (state->slots[i].size > 0)
                        add_bounds(loop, &state->slots[i].value);
        for (size_t i = 0; i < ARRAY_SIZE(far); i++)
                loop->thresholds[loop->n_thresholds++] = far[i];
        settle(loop);
}

void loop_widen(struct verifier *v, struct loop *loop, struct state *dst, const struct state *src)
{
        struct state_thresholds thresholds = {0};
        uint32_t passes = loop->passes / loop->depth;

        if (passes <= LOOP_JOINS) {
                state_join(dst, src, NULL);
                return;
        }
        if (!loop->thresholds)
                find_near(v, loop, dst);
        if (passes <= LOOP_JOINS + LOOP_NEAR)
                thresholds = (struct state_thresholds){loop->thresholds, loop->n_thresholds};
        else if (passes <= LOOP_JOINS + LOOP_NEAR + LOOP_FAR)
                thresholds = (struct state_thresholds){far, ARRAY_SIZE(far)};
        state_join(dst, src, &thresholds);
}
