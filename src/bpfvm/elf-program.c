/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "bpfvm/elf-internal.h"
#include "bpfvm/isa.h"

/* Kinds of relocation, as LLVM numbers them. */
#define RELOC_WIDE 1  /* R_BPF_64_64: the two halves of a wide load */
#define RELOC_CALL 10 /* R_BPF_64_32: a call */

#define OPCODE_WIDE 0x18
#define OPCODE_CALL 0x85
#define SRC_LOCAL   1 /* of a call: to a function of the program */
#define SRC_MAP     5 /* of a wide load: a map, by index */
#define SRC_VALUE   6 /* of a wide load: its value */

/* One program being put together: its own function, then those it calls, in the order in which calls are met. */
struct builder {
        struct elf_file *file;
        uint32_t *parts; /* functions, by number */
        uint32_t n_parts;
        uint32_t *slots; /* by function: where it begins in the program; ELF_NONE if it is not in it */
        uint8_t *bytes;
        uint32_t n_slots;
};

static bool is_executable(const struct elf_section *section)
{
        return section->header.sh_type == SHT_PROGBITS && section->header.sh_flags & SHF_EXECINSTR;
}

static int compare_places(uint32_t section_a, uint64_t offset_a, uint32_t section_b, uint64_t offset_b)
{
        if (section_a != section_b)
                return section_a < section_b ? -1 : 1;
        return offset_a < offset_b ? -1 : offset_a > offset_b;
}

static int compare_functions(const void *a, const void *b)
{
        const struct elf_function *x = a, *y = b;

        return compare_places(x->section, x->offset, y->section, y->offset);
}

static int compare_relocs(const void *a, const void *b)
{
        const struct elf_reloc *x = a, *y = b;

        return compare_places(x->section, x->offset, y->section, y->offset);
}

static int load_function(struct elf_file *file, const struct elf_symbol *symbol)
{
        const struct elf_section *section = &file->sections[symbol->sym.st_shndx];
        uint64_t offset = symbol->sym.st_value, size = symbol->sym.st_size;
        struct span code;
        int r;

        r = elf_check_name(file, "function", symbol->name);
        if (r == 0)
                r = elf_check_name(file, "section", section->name);
        if (r < 0)
                return r;
        if (size == 0 || size % INSN_SLOT_BYTES != 0 || offset % INSN_SLOT_BYTES != 0 ||
            !span_sub(section->data, offset, size, &code))
                return elf_fail(file,
                                "function %s has %" PRIu64 " bytes at %" PRIu64 " of section %s; expected whole "
                                "instructions inside the section",
                                symbol->name, size, offset, section->name);
        file->functions[file->n_functions++] = (struct elf_function){
                .section = symbol->sym.st_shndx,
                .offset = offset,
                .size = size,
                .name = symbol->name,
                .is_global = GELF_ST_BIND(symbol->sym.st_info) != STB_LOCAL,
        };
        return 0;
}

static int load_functions(struct elf_file *file)
{
        file->functions = calloc(file->n_symbols + 1, sizeof(*file->functions));
        if (!file->functions)
                return err_set_nomem(file->err);
        for (uint32_t i = 0; i < file->n_symbols; i++) {
                const GElf_Sym *sym = &file->symbols[i].sym;
                int r;

                if (GELF_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_shndx == 0 || sym->st_shndx >= file->n_sections ||
                    !is_executable(&file->sections[sym->st_shndx]))
                        continue;
                r = load_function(file, &file->symbols[i]);
                if (r < 0)
                        return r;
        }
        qsort(file->functions, file->n_functions, sizeof(*file->functions), compare_functions);
        return 0;
}

static int load_relocs_of(struct elf_file *file, const struct elf_section *section)
{
        size_t n = section->data.len / sizeof(Elf64_Rel);
        struct elf_reloc *grown = realloc(file->relocs, (file->n_relocs + n + 1) * sizeof(*grown));

        if (!grown)
                return err_set_nomem(file->err);
        file->relocs = grown;
        for (size_t i = 0; i < n; i++) {
                Elf64_Rel rel;

                memcpy(&rel, section->data.data + i * sizeof(rel), sizeof(rel));
                file->relocs[file->n_relocs++] = (struct elf_reloc){
                        .section = section->header.sh_info,
                        .offset = rel.r_offset,
                        .type = (uint32_t)ELF64_R_TYPE(rel.r_info),
                        .symbol = (uint32_t)ELF64_R_SYM(rel.r_info),
                };
        }
        return 0;
}

static int load_relocs(struct elf_file *file)
{
        for (uint32_t i = 1; i < file->n_sections; i++) {
                const struct elf_section *section = &file->sections[i];
                int r;

                if (section->header.sh_info >= file->n_sections ||
                    !is_executable(&file->sections[section->header.sh_info]))
                        continue;
                if (section->header.sh_type == SHT_RELA)
                        return elf_fail(file,
                                        "section %s holds relocations with addends, which compilers do not make for "
                                        "BPF",
                                        section->name);
                if (section->header.sh_type != SHT_REL)
                        continue;
                r = load_relocs_of(file, section);
                if (r < 0)
                        return r;
        }
        if (file->n_relocs > 0)
                qsort(file->relocs, file->n_relocs, sizeof(*file->relocs), compare_relocs);
        return 0;
}

static const struct elf_reloc *find_reloc(const struct elf_file *file, uint32_t section, uint64_t offset)
{
        struct elf_reloc key = {.section = section, .offset = offset};

        if (file->n_relocs == 0)
                return NULL;
        return bsearch(&key, file->relocs, file->n_relocs, sizeof(key), compare_relocs);
}

static uint32_t find_function(const struct elf_file *file, uint32_t section, uint64_t offset)
{
        struct elf_function key = {.section = section, .offset = offset}, *found;

        found = bsearch(&key, file->functions, file->n_functions, sizeof(key), compare_functions);
        return found ? (uint32_t)(found - file->functions) : ELF_NONE;
}

/* Append a function to the program, unless it is in it. */
static int place_function(struct builder *builder, uint32_t function)
{
        struct elf_file *file = builder->file;
        const struct elf_function *f = &file->functions[function];
        uint64_t n = f->size / INSN_SLOT_BYTES;
        uint8_t *grown;

        if (builder->slots[function] != ELF_NONE)
                return 0;
        if (builder->n_slots + n > PROFILE_SLOTS_MAX || file->n_slots + n > ELF_SLOTS_MAX)
                return elf_fail(file,
                                "%s and what it calls: too many instructions; at most %d in a program, %u in a file",
                                file->functions[builder->parts[0]].name, PROFILE_SLOTS_MAX, ELF_SLOTS_MAX);
        grown = realloc(builder->bytes, (builder->n_slots + n) * INSN_SLOT_BYTES);
        if (!grown)
                return err_set_nomem(file->err);
        builder->bytes = grown;
        memcpy(grown + (size_t)builder->n_slots * INSN_SLOT_BYTES, file->sections[f->section].data.data + f->offset,
               f->size);
        builder->slots[function] = builder->n_slots;
        builder->parts[builder->n_parts++] = function;
        builder->n_slots += (uint32_t)n;
        file->n_slots += (uint32_t)n;
        return 0;
}

/* An instruction of a function: where it is in its section and in the program. */
struct place {
        const struct elf_function *function;
        uint64_t offset; /* in the section */
        uint32_t slot;
};

static int fail_at(struct elf_file *file, const struct place *at, const char *what, const char *name)
{
        return elf_fail(file, "%s+%" PRIu64 ": %s%s", at->function->name,
                        (at->offset - at->function->offset) / INSN_SLOT_BYTES, what, name);
}

/* A call: to what its relocation names, or, without one, to a function of the same section. */
static int link_call(struct builder *builder, const struct place *at, struct isa_slot *insn,
                     const struct elf_reloc *reloc)
{
        struct elf_file *file = builder->file;
        uint32_t section = at->function->section, function;
        int64_t target = ((int64_t)insn->imm + 1) * INSN_SLOT_BYTES;
        int r;

        if (insn->src != SRC_LOCAL && !reloc)
                return 0;
        if (reloc) {
                const struct elf_symbol *symbol = &file->symbols[reloc->symbol];

                if (symbol->sym.st_shndx == 0)
                        return fail_at(file, at, "calls a function that is nowhere defined: ", symbol->name);
                section = symbol->sym.st_shndx;
                target += (int64_t)symbol->sym.st_value;
        } else {
                target += (int64_t)at->offset;
        }

        function = find_function(file, section, (uint64_t)target);
        if (function == ELF_NONE)
                return fail_at(file, at, "calls a place where no function begins", "");
        r = place_function(builder, function);
        if (r < 0)
                return r;
        insn->src = SRC_LOCAL;
        insn->imm = (int32_t)(builder->slots[function] - at->slot - 1);
        return 0;
}

static uint32_t find_place(const struct elf_file *file, uint64_t offset)
{
        for (uint32_t i = 0; i < file->n_places; i++)
                if (file->places[i].offset == offset)
                        return file->places[i].map;
        return ELF_NONE;
}

/* A wide load of a map's handle, or of the address of a global variable. */
static int link_wide(struct builder *builder, const struct place *at, struct isa_slot *insn, struct isa_slot *tail,
                     const struct elf_reloc *reloc)
{
        struct elf_file *file = builder->file;
        const struct elf_symbol *symbol;
        const struct elf_section *section;
        uint64_t offset;

        if (!reloc)
                return 0;
        symbol = &file->symbols[reloc->symbol];
        if (symbol->sym.st_shndx == 0)
                return fail_at(file, at, "uses a variable that is nowhere defined: ", symbol->name);
        if (symbol->sym.st_shndx >= file->n_sections)
                return fail_at(file, at, "uses a symbol of no section: ", symbol->name);

        section = &file->sections[symbol->sym.st_shndx];
        offset = symbol->sym.st_value + (uint32_t)insn->imm;
        *tail = (struct isa_slot){0};
        if (streq(section->name, ".maps")) {
                uint32_t map = find_place(file, offset);

                if (map == ELF_NONE)
                        return fail_at(file, at, "uses a place in section .maps where no map is: ", symbol->name);
                insn->src = SRC_MAP;
                insn->imm = (int32_t)map;
                return 0;
        }
        if (section->map == ELF_NONE)
                return fail_at(file, at,
                               "takes the address of something that is neither a map nor a variable: ", symbol->name);
        if (offset > INT32_MAX)
                return fail_at(file, at, "uses a place outside of its section: ", symbol->name);
        insn->src = SRC_VALUE;
        insn->imm = (int32_t)section->map;
        tail->imm = (int32_t)offset;
        return 0;
}

/* Relocate one instruction; @tail is the slot after it. */
static int link_insn(struct builder *builder, const struct place *at, uint8_t *bytes, uint8_t *tail)
{
        const struct elf_reloc *reloc = find_reloc(builder->file, at->function->section, at->offset);
        struct isa_slot insn = isa_slot_get(bytes), second = {0};
        int r;

        if (reloc && (reloc->symbol >= builder->file->n_symbols ||
                      reloc->type != (insn.opcode == OPCODE_WIDE ? RELOC_WIDE : RELOC_CALL) ||
                      (insn.opcode != OPCODE_WIDE && insn.opcode != OPCODE_CALL)))
                return fail_at(builder->file, at, "a relocation that the instruction cannot have", "");
        if (insn.opcode == OPCODE_CALL) {
                r = link_call(builder, at, &insn, reloc);
        } else {
                second = isa_slot_get(tail);
                r = link_wide(builder, at, &insn, &second, reloc);
        }
        if (r < 0)
                return r;

        /* placing a function may have moved the bytes */
        bytes = builder->bytes + (size_t)at->slot * INSN_SLOT_BYTES;
        isa_slot_put(insn, bytes);
        if (insn.opcode == OPCODE_WIDE)
                isa_slot_put(second, bytes + INSN_SLOT_BYTES);
        return 0;
}

static int link_function(struct builder *builder, uint32_t function)
{
        const struct elf_function *f = &builder->file->functions[function];
        uint32_t begin = builder->slots[function];

        for (uint32_t i = 0; i < f->size / INSN_SLOT_BYTES; i++) {
                struct place at = {.function = f, .offset = f->offset + i * INSN_SLOT_BYTES, .slot = begin + i};
                uint8_t *bytes = builder->bytes + (size_t)at.slot * INSN_SLOT_BYTES;
                bool is_wide = bytes[0] == OPCODE_WIDE && (i + 1) * INSN_SLOT_BYTES < f->size;
                int r;

                if (is_wide || bytes[0] == OPCODE_CALL) {
                        r = link_insn(builder, &at, bytes, bytes + INSN_SLOT_BYTES);
                        if (r < 0)
                                return r;
                }
                i += is_wide;
        }
        return 0;
}

/* What the program's first parameter points to, by BTF. */
static void set_context(const struct elf_file *file, const struct elf_function *f, struct program *program)
{
        struct btf_type function = btf_type(&file->btf, elf_function_type(file, f->section, f->offset)), pointer,
                        target;
        struct btf_param param = {0};
        bool is_const = false;
        uint32_t id, size;
        const char *name;

        if (strncmp(program->section, "socket", strlen("socket")) == 0)
                program->context = *context_find("__sk_buff");
        if (BTF_INFO_KIND(function.info) != BTF_KIND_FUNC || !btf_param(&file->btf, function.type, 0, &param))
                return;
        pointer = btf_type(&file->btf, btf_strip(&file->btf, param.type, NULL));
        if (BTF_INFO_KIND(pointer.info) != BTF_KIND_PTR)
                return;

        id = btf_strip(&file->btf, pointer.type, &is_const);
        target = btf_type(&file->btf, id);
        name = btf_string(&file->btf, target.name_off);
        if (streq(name, "__sk_buff")) {
                program->context = *context_find("__sk_buff");
        } else if (btf_size(&file->btf, id, &size) == 0 && size > 0) {
                context_flat(&program->context, size, !is_const);
                if (elf_is_name(name))
                        snprintf(program->context.name, sizeof(program->context.name), "%.31s", name);
        }
}

/* Names of functions, source lines, and the program itself, from the parts that were placed. */
static int describe_program(struct builder *builder, struct program *program)
{
        struct elf_file *file = builder->file;

        set_context(file, &file->functions[builder->parts[0]], program);
        if (program->fault.kind != FAULT_NONE)
                return 0;
        for (uint32_t p = 0; p < builder->n_parts; p++) {
                const struct elf_function *f = &file->functions[builder->parts[p]];
                uint32_t slot = builder->slots[builder->parts[p]];
                struct program_sub *sub = &program->subs[program_sub_at(program, slot)];
                int r;

                if (sub->start == slot)
                        sub->name = object_keep(file->object, f->name, strlen(f->name));
                if (!sub->name)
                        return err_set_nomem(file->err);
                r = elf_add_lines(file, program, f->section, f->offset, f->size, slot);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int build_program(struct builder *builder, uint32_t function)
{
        struct elf_file *file = builder->file;
        const struct elf_function *f = &file->functions[function];
        _cleanup_(program_free_cleanup) struct program *program = calloc(1, sizeof(*program));
        const char *section = file->sections[f->section].name;
        int r;

        if (!program)
                return err_set_nomem(file->err);
        program->name = object_keep(file->object, f->name, strlen(f->name));
        program->section = object_keep(file->object, section, strlen(section));
        if (!program->name || !program->section)
                return err_set_nomem(file->err);
        program->maps = file->object->maps;
        program->n_maps = file->object->n_maps;

        builder->parts[0] = function;
        r = place_function(builder, function);
        for (uint32_t p = 0; p < builder->n_parts && r == 0; p++)
                r = link_function(builder, builder->parts[p]);
        if (r == 0)
                r = program_build(program, span_of(builder->bytes, (size_t)builder->n_slots * INSN_SLOT_BYTES),
                                  file->err);
        if (r == 0)
                r = describe_program(builder, program);
        if (r == 0)
                file->object->programs[file->object->n_programs++] = TAKE_PTR(program);

        /* ready for the next program */
        for (uint32_t p = 0; p < builder->n_parts; p++)
                builder->slots[builder->parts[p]] = ELF_NONE;
        builder->n_parts = builder->n_slots = 0;
        return r;
}

static bool is_text(const struct elf_file *file, const struct elf_function *function)
{
        return streq(file->sections[function->section].name, ".text");
}

static int build_programs(struct builder *builder, uint32_t n_outside_text)
{
        struct elf_file *file = builder->file;

        for (uint32_t i = 0; i < file->n_functions; i++) {
                const struct elf_function *f = &file->functions[i];
                int r;

                if (!f->is_global || (n_outside_text > 0 && is_text(file, f)))
                        continue;
                if (file->object->n_programs == ELF_PROGRAMS_MAX)
                        return elf_fail(file, "more than %d programs", ELF_PROGRAMS_MAX);
                r = build_program(builder, i);
                if (r < 0)
                        return r;
        }
        if (file->object->n_programs == 0)
                return elf_fail(file, "no program: expected a global function in an executable section");
        return 0;
}

int elf_load_programs(struct elf_file *file)
{
        struct builder builder = {.file = file};
        uint32_t n_outside_text = 0;
        int r;

        r = load_functions(file);
        if (r == 0)
                r = load_relocs(file);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < file->n_functions; i++)
                n_outside_text += file->functions[i].is_global && !is_text(file, &file->functions[i]);

        builder.parts = calloc(file->n_functions + 1, sizeof(*builder.parts));
        builder.slots = malloc((file->n_functions + 1) * sizeof(*builder.slots));
        file->object->programs = calloc(ELF_PROGRAMS_MAX, sizeof(*file->object->programs));
        if (builder.parts && builder.slots && file->object->programs) {
                for (uint32_t i = 0; i < file->n_functions; i++)
                        builder.slots[i] = ELF_NONE;
                r = build_programs(&builder, n_outside_text);
        } else {
                r = err_set_nomem(file->err);
        }
        free(builder.parts);
        free(builder.slots);
        free(builder.bytes);
        return r;
}
