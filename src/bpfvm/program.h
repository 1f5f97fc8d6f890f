/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/span.h"
#include "bpfvm/fault.h"
#include "bpfvm/insn.h"
#include "bpfvm/map.h"

/* What is checked and run. An object is what was loaded together: maps and the programs that share them. Raw
 * instructions and assembler text give an object with one program. */

/* Memory that r1 points to when a program starts, as ranges that may be accessed; each access lies in one range. */
struct context_range {
        uint32_t offset, size; /* bytes */
        bool is_writable;
        bool is_aligned; /* accesses start at a multiple of their size, counted from the context's start */
};

#define CONTEXT_RANGES_MAX 32

struct context_def {
        char name[32];
        uint32_t size; /* bytes; 0: no context, r1 is the scalar 0 */
        size_t n_ranges;
        struct context_range ranges[CONTEXT_RANGES_MAX]; /* ascending, apart */
};

/* A position in the C source, for the instructions from @slot up to the next entry's. Strings belong to the object. */
struct program_line {
        uint32_t slot;
        uint32_t line, column; /* from 1; 0 where unknown */
        const char *file;
        const char *text; /* the source line, trimmed; "" where unknown */
};

/* A function: slots [start, end). Number 0 is the program's entry and starts at slot 0; ascending by start. */
struct program_sub {
        uint32_t start, end;
        const char *name; /* from the symbol table; "" where unknown; belongs to the object */
};

struct program {
        const char *name;    /* function's or file's name; belongs to the object */
        const char *section; /* of an ELF object; "" otherwise */

        struct insn *insns; /* one a slot */
        uint32_t n_insns;
        struct program_sub *subs;
        uint32_t n_subs;
        struct program_line *lines; /* ascending by slot; may be none */
        uint32_t n_lines;

        const struct map_def *maps; /* all of the object's; INSN_WIDE indexes it */
        uint32_t n_maps;

        struct context_def context;

        uint8_t *slots; /* the encoded bytes after relocation, n_insns * 8: what digests are made over */

        /* Why it is not a legal program (decoder, or subprogram boundaries); FAULT_NONE where it is. Where it is set,
         * insns and subs are NULL and only names and slots are usable. */
        struct fault fault;
};

struct object {
        struct map_def *maps;
        uint32_t n_maps;
        struct program **programs; /* in the order of the file */
        uint32_t n_programs;
        struct object_block *blocks; /* what strings and initial values point into */
};

void object_free(struct object *object);
DEFINE_CLEANUP(struct object *, object_free)
#define _cleanup_object_ _cleanup_(object_free_cleanup)

/* object_of_slots - an object with one program from raw instructions
 * @slots:   little-endian 8-byte slots, any bytes; copied
 * @name:    what to call it; copied
 * @maps:    definitions that wide loads name by index; copied (may be NULL with @n_maps 0)
 *
 * An illegal program is not an error: it is in the program's @fault. The context is 0 bytes; set it before checking.
 * Return: 0; 1 with FAULT_MAP in @fault for a bad map definition; -ENOMEM.
 */
int object_of_slots(struct span slots, const char *name, const struct map_def *maps, uint32_t n_maps,
                    struct object **ret, struct fault *fault, struct err *err);

/* object_find - the program with that name, or NULL */
struct program *object_find(const struct object *object, const char *name);

/* context_flat - a context of @size bytes in which every byte may be read and, if @is_writable, written */
void context_flat(struct context_def *ret, uint32_t size, bool is_writable);

/* context_find - a context by name, or NULL: "__sk_buff" as the kernel's socket filters see it (scalar fields only),
 * "none" */
const struct context_def *context_find(const char *name);

/* program_line_at - the source line of @slot, or NULL */
const struct program_line *program_line_at(const struct program *program, uint32_t slot);

/* program_sub_at - number of the subprogram that holds @slot (below n_insns) */
uint32_t program_sub_at(const struct program *program, uint32_t slot);
