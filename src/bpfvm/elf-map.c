/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "bpfvm/elf-internal.h"

static bool has_prefix(const char *text, const char *prefix)
{
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

static int set_name(struct elf_file *file, struct map_def *map, const char *name)
{
        int r = elf_check_name(file, "map", name);

        if (r < 0)
                return r;
        if (strlen(name) >= sizeof(map->name))
                return elf_fail(file, "the name of map %s is longer than %zu bytes", name, sizeof(map->name) - 1);
        strcpy(map->name, name);
        return 0;
}

/* A number is written as the length of an array that a member points to: __uint(max_entries, 16). */
static int member_number(struct elf_file *file, const struct map_def *map, const struct btf_member *member,
                         uint32_t *ret)
{
        struct btf_type pointer = btf_type(&file->btf, btf_strip(&file->btf, member->type, NULL));
        struct btf_array array;

        if (BTF_INFO_KIND(pointer.info) != BTF_KIND_PTR || !btf_array(&file->btf, pointer.type, &array))
                return elf_fail(file, "map %s: member %s is not written with __uint()", map->name,
                                btf_string(&file->btf, member->name_off));
        *ret = array.nelems;
        return 0;
}

/* A type is what a member points to: __type(key, struct pair). */
static int member_size(struct elf_file *file, const struct map_def *map, const struct btf_member *member, uint32_t *ret)
{
        struct btf_type pointer = btf_type(&file->btf, btf_strip(&file->btf, member->type, NULL));

        if (BTF_INFO_KIND(pointer.info) != BTF_KIND_PTR || btf_size(&file->btf, pointer.type, ret) < 0)
                return elf_fail(file, "map %s: member %s is not written with __type(), or its type has no size",
                                map->name, btf_string(&file->btf, member->name_off));
        return 0;
}

static int set_kind(struct elf_file *file, struct map_def *map, uint32_t type)
{
        switch (type) {
        case BPF_MAP_TYPE_HASH:
                map->kind = MAP_HASH;
                return 0;
        case BPF_MAP_TYPE_ARRAY:
                map->kind = MAP_ARRAY;
                return 0;
        case BPF_MAP_TYPE_RINGBUF:
                map->kind = MAP_RING;
                return 0;
        default:
                return elf_fail(file,
                                "map %s: type %" PRIu32 " is not known here; expected BPF_MAP_TYPE_ARRAY, _HASH or "
                                "_RINGBUF",
                                map->name, type);
        }
}

static int set_flags(struct elf_file *file, struct map_def *map, uint32_t flags)
{
        if (flags & ~(uint32_t)(BPF_F_NO_PREALLOC | BPF_F_RDONLY_PROG))
                return elf_fail(file, "map %s: map_flags 0x%" PRIx32 "; only BPF_F_RDONLY_PROG has a meaning here",
                                map->name, flags);
        map->is_read_only = flags & BPF_F_RDONLY_PROG;
        return 0;
}

static int read_member(struct elf_file *file, struct map_def *map, const struct btf_member *member)
{
        const char *name = btf_string(&file->btf, member->name_off);
        uint32_t number = 0;
        int r;

        if (streq(name, "key"))
                return member_size(file, map, member, &map->key_size);
        if (streq(name, "value"))
                return member_size(file, map, member, &map->value_size);
        r = member_number(file, map, member, &number);
        if (r < 0)
                return r;
        if (streq(name, "type"))
                return set_kind(file, map, number);
        if (streq(name, "map_flags"))
                return set_flags(file, map, number);
        if (streq(name, "max_entries"))
                map->max_entries = number;
        else if (streq(name, "key_size"))
                map->key_size = number;
        else if (streq(name, "value_size"))
                map->value_size = number;
        else
                return elf_fail(file,
                                "map %s: member %s has no meaning here; expected type, max_entries, key, value, "
                                "key_size, value_size or map_flags",
                                map->name, name);
        return 0;
}

static int add_map(struct elf_file *file, const struct map_def *map)
{
        struct object *object = file->object;
        struct fault fault;

        if (object->n_maps == PROFILE_MAPS_MAX)
                return elf_fail(file, "more than %d maps, sections of global variables included", PROFILE_MAPS_MAX);
        if (map_check(map, &fault))
                return elf_fail(file, "%s", fault.text);
        object->maps[object->n_maps++] = *map;
        return 0;
}

/* Where a map is in its section is what its symbol says: in BTF it is only known after relocation. */
static int place_map(struct elf_file *file, uint32_t section, const char *name)
{
        for (uint32_t i = 0; i < file->n_symbols; i++) {
                const struct elf_symbol *symbol = &file->symbols[i];

                if (symbol->sym.st_shndx == section && GELF_ST_TYPE(symbol->sym.st_info) == STT_OBJECT &&
                    streq(symbol->name, name)) {
                        file->places[file->n_places++] =
                                (struct elf_map_place){.offset = symbol->sym.st_value, .map = file->object->n_maps - 1};
                        return 0;
                }
        }
        return elf_fail(file, "map %s has no symbol in section .maps", name);
}

static int load_defined_map(struct elf_file *file, uint32_t section, uint32_t variable)
{
        struct btf_type var = btf_type(&file->btf, variable);
        const char *name = btf_string(&file->btf, var.name_off);
        uint32_t id = btf_strip(&file->btf, var.type, NULL);
        struct map_def map = {.kind = MAP_KINDS};
        struct btf_member member;
        int r;

        r = set_name(file, &map, name);
        if (r < 0)
                return r;
        if (BTF_INFO_KIND(var.info) != BTF_KIND_VAR || !btf_member(&file->btf, id, 0, &member))
                return elf_fail(file, "map %s is not a struct with members", name);
        for (uint32_t i = 0; btf_member(&file->btf, id, i, &member); i++) {
                r = read_member(file, &map, &member);
                if (r < 0)
                        return r;
        }
        if (map.kind == MAP_KINDS)
                return elf_fail(file, "map %s has no member type", name);
        r = add_map(file, &map);
        return r < 0 ? r : place_map(file, section, name);
}

static int load_defined_maps(struct elf_file *file)
{
        uint32_t section = elf_find_section(file, ".maps"), list;
        struct btf_var_secinfo variable;

        if (elf_find_section(file, "maps"))
                return elf_fail(file, "section maps holds definitions of the old form; define maps with BTF, in "
                                      "SEC(\".maps\")");
        if (section == 0)
                return 0;
        list = btf_find(&file->btf, BTF_KIND_DATASEC, ".maps");
        if (list == 0)
                return elf_fail(file, "section .maps without BTF; compile with -g");
        for (uint32_t i = 0; btf_variable(&file->btf, list, i, &variable); i++) {
                int r = load_defined_map(file, section, variable.type);
                if (r < 0)
                        return r;
        }
        return 0;
}

static bool is_global_data(const struct elf_section *section)
{
        bool has_bytes = section->header.sh_type == SHT_PROGBITS || section->header.sh_type == SHT_NOBITS;

        return has_bytes && section->header.sh_flags & SHF_ALLOC && section->header.sh_size > 0 &&
               (has_prefix(section->name, ".rodata") || has_prefix(section->name, ".data") ||
                has_prefix(section->name, ".bss"));
}

static int load_global_data(struct elf_file *file, struct elf_section *section)
{
        struct map_def map = {.kind = MAP_ARRAY,
                              .key_size = 4,
                              .max_entries = 1,
                              .is_global = true,
                              .is_read_only = has_prefix(section->name, ".rodata")};
        int r;

        if (section->header.sh_size > UINT32_MAX)
                return elf_fail(file, "section %s has %" PRIu64 " bytes", section->name,
                                (uint64_t)section->header.sh_size);
        r = set_name(file, &map, section->name);
        if (r < 0)
                return r;
        map.value_size = (uint32_t)section->header.sh_size;
        map.initial = span_of(object_keep(file->object, section->data.data, section->data.len), section->data.len);
        if (!map.initial.data)
                return err_set_nomem(file->err);
        r = add_map(file, &map);
        if (r == 0)
                section->map = file->object->n_maps - 1;
        return r;
}

int elf_load_maps(struct elf_file *file)
{
        int r;

        file->object->maps = calloc(PROFILE_MAPS_MAX, sizeof(*file->object->maps));
        if (!file->object->maps)
                return err_set_nomem(file->err);
        r = load_defined_maps(file);
        for (uint32_t i = 1; i < file->n_sections && r == 0; i++)
                if (is_global_data(&file->sections[i]))
                        r = load_global_data(file, &file->sections[i]);
        return r;
}
