/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/calibrate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "bpfvm/assemble.h"
#include "bpfvm/interp.h"

#define ROUNDS      101
#define KEPT        96    /* of the rounds in ascending order: p95 */
#define UNITS       256   /* copies of what is measured, in one program */
#define ROUND_UNITS 10000 /* copies that are run in one round; their records fit into the ring */
#define PS_PER_NS   1000

/* What is measured, and what of the unit's time belongs to other classes, measured before. */
struct recipe {
        const char *setup, *unit, *after;
        struct {
                enum cost_class c;
                unsigned n;
        } others[2];
};

static const struct map_def maps[] = {
        {.name = "hash", .kind = MAP_HASH, .key_size = 8, .value_size = 16, .max_entries = 256},
        {.name = "ring", .kind = MAP_RING, .max_entries = 1 << 20},
};

/* In the order in which they are measured: a recipe may name what stands above it. */
static const struct {
        enum cost_class c;
        struct recipe recipe;
} class_recipes[] = {
        {COST_ALU, {"r1 = 5\n", "r0 += r1\n", "", {{0}}}},
        {COST_MULTIPLY, {"r1 = 5\n", "r0 *= r1\n", "", {{0}}}},
        {COST_DIVIDE, {"r6 = 0x7edcba9876543210 ll\nr1 = 7\n", "r0 = r6\nr0 s/= r1\n", "", {{COST_ALU, 1}}}},
        {COST_LOAD, {"*(u64 *)(r10 - 8) = 1\n", "r1 = *(u64 *)(r10 - 8)\n", "", {{0}}}},
        {COST_STORE, {"r1 = 1\n", "*(u64 *)(r10 - 8) = r1\n", "", {{0}}}},
        {COST_ATOMIC, {"*(u64 *)(r10 - 8) = 1\nr1 = 1\n", "r1 = atomic_fetch_add((u64 *)(r10 - 8), r1)\n", "", {{0}}}},
        /* every other one is taken */
        {COST_JUMP, {"r1 = 1\n", "if r1 == 2 goto +0\nif r1 != 2 goto +0\n", "", {{COST_JUMP, 1}}}},
        {COST_CALL, {"", "call f\n", "f: exit\n", {{COST_RETURN, 1}}}},
};

static const struct {
        enum helper_id id;
        struct recipe recipe;
} helper_recipes[] = {
        {HELPER_MAP_LOOKUP,
         {"*(u64 *)(r10 - 8) = 1\n*(u64 *)(r10 - 16) = 1\n"
          "r1 = map[0]\nr2 = r10\nr2 += -8\nr3 = r10\nr3 += -16\nr4 = 0\ncall map_update_elem\n",
          "r1 = map[0]\nr2 = r10\nr2 += -8\ncall map_lookup_elem\n",
          "",
          {{COST_ALU, 3}, {COST_CALL, 1}}}},
        {HELPER_MAP_UPDATE,
         {"*(u64 *)(r10 - 8) = 1\n*(u64 *)(r10 - 16) = 1\n",
          "r1 = map[0]\nr2 = r10\nr2 += -8\nr3 = r10\nr3 += -16\nr4 = 0\ncall map_update_elem\n",
          "",
          {{COST_ALU, 6}, {COST_CALL, 1}}}},
        {HELPER_MAP_DELETE,
         {"*(u64 *)(r10 - 8) = 1\n",
          "r1 = map[0]\nr2 = r10\nr2 += -8\ncall map_delete_elem\n",
          "",
          {{COST_ALU, 3}, {COST_CALL, 1}}}},
        {HELPER_KTIME_NS, {"", "call ktime_get_ns\n", "", {{COST_CALL, 1}}}},
        {HELPER_TRACE,
         {"*(u64 *)(r10 - 8) = 0x6425\nr3 = -1000000\n",
          "r1 = r10\nr1 += -8\nr2 = 8\ncall trace_printk\n",
          "",
          {{COST_ALU, 3}, {COST_CALL, 1}}}},
        {HELPER_RANDOM_U32, {"", "call get_prandom_u32\n", "", {{COST_CALL, 1}}}},
        {HELPER_RING_OUTPUT,
         {"*(u64 *)(r10 - 8) = 1\n",
          "r1 = map[1]\nr2 = r10\nr2 += -8\nr3 = 8\nr4 = 0\ncall ringbuf_output\n",
          "",
          {{COST_ALU, 5}, {COST_CALL, 1}}}},
};

/* A program of many kinds of instruction, to see what a table says of it. */
static const char mixed_setup[] = "*(u64 *)(r10 - 8) = 7\n*(u64 *)(r10 - 16) = 9\nr6 = 3\n";
static const char mixed_unit[] = "r1 = *(u64 *)(r10 - 8)\nr1 *= 5\nr1 ^= r6\nif r1 s> 100 goto +1\nr6 += 1\n"
                                 "*(u64 *)(r10 - 16) = r1\nw1 /= 3\nr6 += r1\n";

struct subject {
        struct object *object;
        struct store *store;
        struct interp *interp;
};

static void subject_done(struct subject *s)
{
        interp_free(s->interp);
        store_free(s->store);
        object_free(s->object);
}

static int subject_make(const char *setup, const char *unit, unsigned units, const char *after, struct subject *ret,
                        struct err *err)
{
        _cleanup_text_ struct text text = {0};
        _cleanup_free_ uint8_t *slots = NULL;
        struct fault fault = {0};
        size_t len;
        int r;

        text_add(&text, "r0 = 0\n");
        text_add(&text, setup);
        for (unsigned i = 0; i < units; i++)
                text_add(&text, unit);
        text_add(&text, "exit\n");
        text_add(&text, after);
        if (text.failed)
                return err_set_nomem(err);

        *ret = (struct subject){0};
        r = assemble_text(span_of(text.data, text.len), "calibration", &slots, &len, err);
        if (r == 0)
                r = object_of_slots(span_of(slots, len), "calibration", maps, ARRAY_SIZE(maps), &ret->object, &fault,
                                    err);
        if (r > 0 || (r == 0 && ret->object->programs[0]->fault.kind != FAULT_NONE))
                r = err_set(err, ERR_BUG, EINVAL, "a program for calibration is refused");
        if (r == 0)
                r = store_new(ret->object->maps, ret->object->n_maps, &ret->store, err);
        if (r == 0)
                r = interp_new(ret->object->programs[0], ret->store, NULL, &ret->interp, err);
        if (r < 0)
                subject_done(ret);
        return r;
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

/* Picoseconds of one run, p95 of the rounds, in processor time; @runs of them in a round. */
static uint64_t subject_time(struct subject *s, unsigned runs)
{
        uint64_t rounds[ROUNDS], r0;
        struct fault fault;

        for (unsigned round = 0; round < ROUNDS; round++) {
                int64_t start;

                store_clear(s->store);
                start = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
                for (unsigned i = 0; i < runs; i++)
                        interp_run(s->interp, NULL, UINT64_MAX, &r0, &fault);
                rounds[round] = (uint64_t)(clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - start) * PS_PER_NS / runs;
        }
        qsort(rounds, ROUNDS, sizeof(rounds[0]), compare);
        return rounds[KEPT - 1];
}

static int time_of(const char *setup, const char *unit, unsigned units, const char *after, uint64_t *ret_ps,
                   struct err *err)
{
        struct subject s;
        int r = subject_make(setup, unit, units, after, &s, err);

        if (r < 0)
                return r;
        *ret_ps = subject_time(&s, ROUND_UNITS / (units + 1));
        subject_done(&s);
        return 0;
}

/* Picoseconds of one unit: what UNITS of them add to a program, less what belongs to other classes. */
static int time_of_unit(const struct recipe *recipe, const uint64_t *class_ps, uint64_t *ret_ps, struct err *err)
{
        uint64_t with, without, others = 0;
        int r;

        r = time_of(recipe->setup, recipe->unit, UNITS, recipe->after, &with, err);
        if (r == 0)
                r = time_of(recipe->setup, recipe->unit, 1, recipe->after, &without, err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < ARRAY_SIZE(recipe->others); i++)
                others += class_ps[recipe->others[i].c] * recipe->others[i].n;
        *ret_ps = with > without ? (with - without) / (UNITS - 1) : 0;
        *ret_ps = *ret_ps > others ? *ret_ps - others : 1;
        return 0;
}

static uint32_t with_margin(uint64_t ps, uint32_t margin_ppm)
{
        uint64_t scaled = (ps * margin_ppm + 999999) / 1000000;

        return scaled == 0 ? 1 : (uint32_t)MIN(scaled, (uint64_t)UINT32_MAX);
}

static int measure_classes(uint64_t *class_ps, struct err *err)
{
        uint64_t least;
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(class_recipes); i++) {
                enum cost_class c = class_recipes[i].c;

                r = time_of_unit(&class_recipes[i].recipe, class_ps, &class_ps[c], err);
                if (r < 0)
                        return r;
        }
        /* two branches, of which none was known; a call came with its return */
        class_ps[COST_JUMP] = (class_ps[COST_JUMP] + 1) / 2;
        class_ps[COST_RETURN] = class_ps[COST_CALL] / 3;
        class_ps[COST_CALL] -= class_ps[COST_RETURN];

        r = time_of("", "", 0, "", &least, err);
        class_ps[COST_ENTRY] = least;
        return r;
}

static int measure_check(struct calibration *ret, struct err *err)
{
        struct subject s;
        int r = subject_make(mixed_setup, mixed_unit, UNITS, "", &s, err);

        if (r < 0)
                return r;
        ret->measured_ps = subject_time(&s, ROUND_UNITS / UNITS);
        ret->predicted_ps = ret->table.class_ps[COST_ENTRY];
        for (uint32_t i = 0; i < s.object->programs[0]->n_insns; i++)
                ret->predicted_ps += cost_of(&ret->table, &s.object->programs[0]->insns[i]);
        subject_done(&s);
        return 0;
}

int calibrate_run(uint32_t margin_ppm, struct calibration *ret, struct err *err)
{
        uint64_t class_ps[COST_CLASSES] = {0}, ps;
        struct calibration out = {.table = *cost_default()};
        int r;

        if (margin_ppm < 1000000)
                return err_set(err, ERR_USAGE, EINVAL, "a margin below 1 would make costs less than what was measured");

        snprintf(out.table.name, sizeof(out.table.name), "measured");
        r = measure_classes(class_ps, err);
        for (enum cost_class c = 0; c < COST_CLASSES && r == 0; c++)
                out.table.class_ps[c] = with_margin(class_ps[c], margin_ppm);
        for (size_t i = 0; i < ARRAY_SIZE(helper_recipes) && r == 0; i++) {
                r = time_of_unit(&helper_recipes[i].recipe, class_ps, &ps, err);
                if (r == 0)
                        out.table.helper_ps[helper_index(helper_find(helper_recipes[i].id))] =
                                with_margin(ps, margin_ppm);
        }
        if (r == 0)
                r = measure_check(&out, err);
        if (r == 0)
                *ret = out;
        return r;
}
