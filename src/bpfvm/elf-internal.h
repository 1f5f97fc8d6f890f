/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gelf.h>

#include "bpfvm/btf.h"
#include "bpfvm/elf.h"
#include "bpfvm/profile.h"
#include "bpfvm/program-internal.h"

/* Parts of the loader: elf.c takes the file apart, elf-map.c makes map definitions, elf-ext.c finds what .BTF.ext says
 * of an instruction, elf-program.c puts programs together from functions and relocations. The work that a file can
 * cause is bounded by its size: what is looked up often is sorted once. */

#define ELF_SECTIONS_MAX 4096
#define ELF_PROGRAMS_MAX 1024
#define ELF_SLOTS_MAX    (4u << 20) /* of all programs of an object together */
#define ELF_NONE         UINT32_MAX

struct elf_section {
        const char *name;
        GElf_Shdr header;
        struct span data; /* empty for SHT_NOBITS */
        uint32_t map;     /* of a section of global variables, else ELF_NONE */

        /* What .BTF.ext has for the section, ascending by offset. */
        struct elf_records {
                struct span bytes;
                uint32_t n, size;
        } functions, lines;
};

struct elf_symbol {
        const char *name;
        GElf_Sym sym;
};

/* The place of a map in section .maps. */
struct elf_map_place {
        uint64_t offset;
        uint32_t map;
};

/* A function in an executable section. */
struct elf_function {
        uint32_t section;
        uint64_t offset, size; /* bytes */
        const char *name;
        bool is_global;
};

struct elf_reloc {
        uint32_t section; /* whose bytes are to change */
        uint64_t offset;
        uint32_t type, symbol;
};

struct elf_file {
        const char *name; /* for errors */
        Elf *elf;
        struct elf_section *sections;
        uint32_t n_sections;
        struct elf_symbol *symbols;
        uint32_t n_symbols;
        struct elf_function *functions; /* ascending by section and offset */
        uint32_t n_functions;
        struct elf_reloc *relocs; /* ascending by section and offset */
        uint32_t n_relocs;
        struct btf btf;      /* no types where the file has none */
        const char *strings; /* those of btf, kept in the object */
        struct elf_map_place places[PROFILE_MAPS_MAX];
        uint32_t n_places;
        uint32_t n_slots; /* of the programs so far */
        struct object *object;
        struct err *err;
};

/* elf_fail - an error of kind data, prefixed by the file's name. Return: -EINVAL. */
int elf_fail(struct elf_file *file, const char *format, ...) _printf_(2, 3);

/* elf_is_name - whether a name can be printed as it is: 1 to 255 bytes of ASCII without spaces and quotes */
bool elf_is_name(const char *name);

/* elf_check_name - fail where elf_is_name() does not hold for the name of a @what. Return: 0 or -EINVAL. */
int elf_check_name(struct elf_file *file, const char *what, const char *name);

/* elf_find_section - number of the first section with that name, or 0 */
uint32_t elf_find_section(const struct elf_file *file, const char *name);

/* elf_load_maps - fill in object->maps and where each is */
int elf_load_maps(struct elf_file *file);

/* elf_load_ext - fill in the sections' records */
int elf_load_ext(struct elf_file *file);

/* elf_function_type - BTF id of the function that begins at @offset of a section, or 0 */
uint32_t elf_function_type(const struct elf_file *file, uint32_t section, uint64_t offset);

/* elf_load_programs - fill in object->programs */
int elf_load_programs(struct elf_file *file);

/* elf_add_lines - add the source lines of bytes [offset, offset + size) of a section, placed at @slot of a program */
int elf_add_lines(struct elf_file *file, struct program *program, uint32_t section, uint64_t offset, uint64_t size,
                  uint32_t slot);
