/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/carve.h"
#include "base/macro.h"
#include "bpfvm/decode.h"
#include "bpfvm/profile.h"
#include "bpfvm/program-internal.h"

struct object_block {
        struct object_block *next;
        uint8_t data[];
};

struct object *object_new(void)
{
        return carve_alloc(sizeof(struct object));
}

void *object_keep(struct object *object, const void *data, size_t len)
{
        struct object_block *block = malloc(sizeof(*block) + len + 1);

        if (!block)
                return NULL;
        if (len > 0)
                memcpy(block->data, data, len);
        block->data[len] = 0;
        block->next = object->blocks;
        object->blocks = block;
        return block->data;
}

void program_free(struct program *program)
{
        if (!program)
                return;
        free(program->insns);
        free(program->subs);
        free(program->lines);
        free(program->slots);
        free(program);
}

void object_free(struct object *object)
{
        if (!object)
                return;
        for (uint32_t i = 0; i < object->n_programs; i++)
                program_free(object->programs[i]);
        free(object->programs);
        free(object->maps);
        while (object->blocks) {
                struct object_block *block = object->blocks;
                object->blocks = block->next;
                free(block);
        }
        free(object);
}

struct program *object_find(const struct object *object, const char *name)
{
        for (uint32_t i = 0; i < object->n_programs; i++)
                if (streq(object->programs[i]->name, name))
                        return object->programs[i];
        return NULL;
}

/* Functions start at slot 0 and wherever a call leads, and reach to the next start. */
static int program_split(struct program *program, bool has_calls, struct err *err)
{
        _cleanup_free_ bool *starts = NULL;
        uint32_t n = 1;

        if (has_calls) {
                starts = calloc(program->n_insns, sizeof(*starts));
                if (!starts)
                        return err_set_nomem(err);
                for (uint32_t i = 0; i < program->n_insns; i++)
                        if (program->insns[i].kind == INSN_CALL_LOCAL)
                                starts[program->insns[i].target] = true;
                for (uint32_t i = 1; i < program->n_insns; i++)
                        n += starts[i];
        }

        program->subs = carve_alloc(n * sizeof(*program->subs));
        if (!program->subs)
                return err_set_nomem(err);
        program->n_subs = 1;
        for (uint32_t i = 1; has_calls && i < program->n_insns; i++)
                if (starts[i])
                        program->subs[program->n_subs++].start = i;
        for (uint32_t i = 0; i < n; i++) {
                program->subs[i].end = i + 1 < n ? program->subs[i + 1].start : program->n_insns;
                program->subs[i].name = "";
        }
        return 0;
}

/* A jump stays in its function: only calls lead into another. */
static int check_jumps(const struct program *program, struct fault *fault)
{
        for (uint32_t s = 0; s < program->n_subs; s++) {
                const struct program_sub *sub = &program->subs[s];

                for (uint32_t i = sub->start; i < sub->end; i++) {
                        const struct insn *insn = &program->insns[i];

                        if (insn->kind != INSN_JUMP && insn->kind != INSN_BRANCH)
                                continue;
                        if (insn->target < sub->start || insn->target >= sub->end)
                                return fault_set(fault, FAULT_JUMP_RANGE, i,
                                                 "leads to slot %" PRIu32 "; its function has slots %" PRIu32
                                                 " to %" PRIu32 ", and only a call leads into another",
                                                 insn->target, sub->start, sub->end - 1);
                }
        }
        return 0;
}

/* The address of a map's value is that of an array with one entry, which a loader makes of global variables; an offset
 * into it lies inside. */
static int check_map_values(const struct program *program, struct fault *fault)
{
        for (uint32_t i = 0; i < program->n_insns; i++) {
                const struct insn *insn = &program->insns[i];
                const struct map_def *map;

                if (insn->kind != INSN_WIDE || insn->op != WIDE_MAP_VALUE)
                        continue;
                map = &program->maps[insn->map];
                if (map->kind != MAP_ARRAY || map->max_entries != 1)
                        return fault_set(
                                fault, FAULT_MAP, i,
                                "takes the address of a value of map %s; only an array of one entry allows that",
                                map->name);
                if (insn->imm >= map->value_size)
                        return fault_set(fault, FAULT_MAP, i,
                                         "offset %" PRIi64 " into map %s, whose value has %" PRIu32 " bytes", insn->imm,
                                         map->name, map->value_size);
        }
        return 0;
}

int program_build(struct program *program, struct span slots, struct err *err)
{
        uint32_t kinds = 0;
        int r;

        program->slots = malloc(slots.len + 1);
        if (!program->slots)
                return err_set_nomem(err);
        if (slots.len > 0)
                memcpy(program->slots, slots.data, slots.len);
        program->n_insns = (uint32_t)MIN(slots.len / INSN_SLOT_BYTES, (size_t)UINT32_MAX);

        r = decode_slots(slots, program->n_maps, &program->insns, &kinds, &program->fault, err);
        if (r == 0)
                r = program_split(program, kinds & 1u << INSN_CALL_LOCAL, err);
        if (r == 0 && program->n_subs > 1)
                r = check_jumps(program, &program->fault);
        if (r == 0 && kinds & 1u << INSN_WIDE)
                r = check_map_values(program, &program->fault);
        if (r > 0) {
                free(TAKE_PTR(program->insns));
                free(TAKE_PTR(program->subs));
                program->n_subs = 0;
        }
        return r < 0 ? r : 0;
}

static int copy_maps(struct object *object, const struct map_def *maps, uint32_t n, struct fault *fault,
                     struct err *err)
{
        if (n > PROFILE_MAPS_MAX)
                return fault_set(fault, FAULT_MAP, FAULT_NO_SLOT, "%" PRIu32 " maps; at most %d are allowed", n,
                                 PROFILE_MAPS_MAX);

        object->maps = n > 0 ? calloc(n, sizeof(*object->maps)) : NULL;
        if (n > 0 && !object->maps)
                return err_set_nomem(err);
        for (uint32_t i = 0; i < n; i++) {
                struct map_def *map = &object->maps[i];
                int r = map_check(&maps[i], fault);

                if (r)
                        return r;
                *map = maps[i];
                map->initial.data = object_keep(object, maps[i].initial.data, maps[i].initial.len);
                if (!map->initial.data)
                        return err_set_nomem(err);
        }
        object->n_maps = n;
        return 0;
}

int object_of_slots(struct span slots, const char *name, const struct map_def *maps, uint32_t n_maps,
                    struct object **ret, struct fault *fault, struct err *err)
{
        _cleanup_object_ struct object *object = object_new();
        struct program *program;
        int r;

        if (!object)
                return err_set_nomem(err);
        r = copy_maps(object, maps, n_maps, fault, err);
        if (r)
                return r;

        object->programs = carve_alloc(sizeof(*object->programs));
        if (!object->programs)
                return err_set_nomem(err);
        program = object->programs[0] = carve_alloc(sizeof(*program));
        if (!program)
                return err_set_nomem(err);
        object->n_programs = 1;

        program->name = object_keep(object, name, strlen(name));
        if (!program->name)
                return err_set_nomem(err);
        program->section = "";
        program->maps = object->maps;
        program->n_maps = object->n_maps;
        r = program_build(program, slots, err);
        if (r)
                return r;

        *ret = TAKE_PTR(object);
        return 0;
}

const struct program_line *program_line_at(const struct program *program, uint32_t slot)
{
        uint32_t low = 0, high = program->n_lines;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (program->lines[middle].slot <= slot)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low > 0 ? &program->lines[low - 1] : NULL;
}

uint32_t program_sub_at(const struct program *program, uint32_t slot)
{
        uint32_t low = 0, high = program->n_subs;

        while (high - low > 1) {
                uint32_t middle = low + (high - low) / 2;

                if (program->subs[middle].start <= slot)
                        low = middle;
                else
                        high = middle;
        }
        return low;
}
