/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/elf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "bpfvm/elf-internal.h"

#ifndef EM_BPF
#define EM_BPF 247
#endif

int elf_fail(struct elf_file *file, const char *format, ...)
{
        char text[512];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        return err_set(file->err, ERR_DATA, EINVAL, "%s: %s", file->name, text);
}

bool elf_is_name(const char *name)
{
        size_t len = strlen(name);

        for (size_t i = 0; i < len; i++)
                if (name[i] <= 0x20 || name[i] >= 0x7f || name[i] == '"' || name[i] == '\\')
                        return false;
        return len > 0 && len <= 255;
}

int elf_check_name(struct elf_file *file, const char *what, const char *name)
{
        if (elf_is_name(name))
                return 0;
        return elf_fail(file, "the name of a %s is empty, longer than 255 bytes or has a byte that is not printable",
                        what);
}

uint32_t elf_find_section(const struct elf_file *file, const char *name)
{
        for (uint32_t i = 1; i < file->n_sections; i++)
                if (streq(file->sections[i].name, name))
                        return i;
        return 0;
}

static void elf_file_done(struct elf_file *file)
{
        btf_done(&file->btf);
        free(file->relocs);
        free(file->functions);
        free(file->symbols);
        free(file->sections);
        elf_end(file->elf);
        object_free(file->object);
}

static int check_header(struct elf_file *file)
{
        GElf_Ehdr header;

        if (elf_kind(file->elf) != ELF_K_ELF || !gelf_getehdr(file->elf, &header))
                return elf_fail(file, "not an ELF file");
        if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
                return elf_fail(file, "expected 64-bit little-endian ELF; compile with -target bpfel");
        if (header.e_type != ET_REL || (header.e_machine != EM_BPF && header.e_machine != EM_NONE))
                return elf_fail(file, "expected a relocatable object for BPF; compile with -target bpf -c");
        return 0;
}

static int load_section(struct elf_file *file, Elf_Scn *scn, size_t names, struct elf_section *section)
{
        Elf_Data *data;

        if (!gelf_getshdr(scn, &section->header))
                return elf_fail(file, "a section's header is malformed");
        section->name = elf_strptr(file->elf, names, section->header.sh_name);
        if (!section->name)
                return elf_fail(file, "a section's name lies outside the table of names");
        section->map = ELF_NONE;
        if (section->header.sh_type == SHT_NOBITS || section->header.sh_size == 0)
                return 0;
        data = elf_rawdata(scn, NULL);
        if (!data || (!data->d_buf && data->d_size > 0))
                return elf_fail(file, "section %s lies outside the file", section->name);
        section->data = span_of(data->d_buf, data->d_size);
        return 0;
}

static int load_sections(struct elf_file *file)
{
        size_t n, names;

        if (elf_getshdrnum(file->elf, &n) != 0 || elf_getshdrstrndx(file->elf, &names) != 0)
                return elf_fail(file, "the table of sections is malformed");
        if (n > ELF_SECTIONS_MAX)
                return elf_fail(file, "%zu sections; at most %d are read", n, ELF_SECTIONS_MAX);

        file->sections = calloc(n + 1, sizeof(*file->sections));
        if (!file->sections)
                return err_set_nomem(file->err);
        file->sections[0].name = "";
        for (file->n_sections = 1; file->n_sections < n; file->n_sections++) {
                Elf_Scn *scn = elf_getscn(file->elf, file->n_sections);
                int r = scn ? load_section(file, scn, names, &file->sections[file->n_sections])
                            : elf_fail(file, "section number %u is malformed", file->n_sections);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* A section symbol has no name of its own: it is that of its section. */
static const char *symbol_name(struct elf_file *file, const GElf_Sym *sym, uint32_t names)
{
        const char *name;

        if (GELF_ST_TYPE(sym->st_info) == STT_SECTION && sym->st_shndx < file->n_sections)
                return file->sections[sym->st_shndx].name;
        name = elf_strptr(file->elf, names, sym->st_name);
        return name ? name : "";
}

static int load_symbols(struct elf_file *file)
{
        uint32_t table = 0;

        for (uint32_t i = 1; i < file->n_sections && table == 0; i++)
                if (file->sections[i].header.sh_type == SHT_SYMTAB)
                        table = i;
        if (table == 0)
                return elf_fail(file, "no table of symbols: the object is cut off, or was stripped");

        const struct elf_section *section = &file->sections[table];
        size_t n = section->data.len / sizeof(Elf64_Sym);

        file->symbols = calloc(n + 1, sizeof(*file->symbols));
        if (!file->symbols)
                return err_set_nomem(file->err);
        for (; file->n_symbols < n; file->n_symbols++) {
                struct elf_symbol *symbol = &file->symbols[file->n_symbols];
                Elf64_Sym raw;

                memcpy(&raw, section->data.data + file->n_symbols * sizeof(raw), sizeof(raw));
                symbol->sym = raw;
                symbol->name = symbol_name(file, &raw, section->header.sh_link);
        }
        return 0;
}

static int load_btf(struct elf_file *file)
{
        uint32_t number = elf_find_section(file, ".BTF");
        int r;

        if (number == 0)
                return 0;
        r = btf_parse(file->sections[number].data, &file->btf, file->err);
        if (r < 0) {
                err_prefix(file->err, "%s", file->name);
                return r;
        }
        file->strings = object_keep(file->object, file->btf.strings.data, file->btf.strings.len);
        return file->strings ? 0 : err_set_nomem(file->err);
}

bool elf_is(struct span file)
{
        return file.len >= SELFMAG && memcmp(file.data, ELFMAG, SELFMAG) == 0;
}

int elf_load(struct span bytes, const char *name, struct object **ret, struct err *err)
{
        struct elf_file file = {.name = name, .err = err};
        _cleanup_free_ char *copy = NULL;
        int r;

        if (bytes.len > ELF_FILE_MAX)
                return err_set(err, ERR_DATA, EFBIG, "%s: %zu bytes; at most %u are read", name, bytes.len,
                               ELF_FILE_MAX);
        elf_version(EV_CURRENT);

        /* libelf wants memory that it may write to */
        copy = malloc(bytes.len + 1);
        file.object = object_new();
        if (!copy || !file.object) {
                elf_file_done(&file);
                return err_set_nomem(err);
        }
        if (bytes.len > 0)
                memcpy(copy, bytes.data, bytes.len);
        file.elf = elf_memory(copy, bytes.len);

        r = file.elf ? check_header(&file) : elf_fail(&file, "not an ELF file");
        if (r == 0)
                r = load_sections(&file);
        if (r == 0)
                r = load_symbols(&file);
        if (r == 0)
                r = load_btf(&file);
        if (r == 0)
                r = elf_load_ext(&file);
        if (r == 0)
                r = elf_load_maps(&file);
        if (r == 0)
                r = elf_load_programs(&file);
        if (r == 0)
                *ret = TAKE_PTR(file.object);
        elf_file_done(&file);
        return r;
}
