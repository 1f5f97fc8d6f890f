/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "bpfvm/elf-internal.h"

/* .BTF.ext: a header, then functions, source lines and relocations against types. Each of these parts begins with the
 * size of its records; then come, for each section, its name, how many records it has, and the records. Layouts as in
 * the kernel's documentation of BTF. What is malformed here costs the source lines, not the program. */
struct ext_header {
        uint16_t magic;
        uint8_t version, flags;
        uint32_t hdr_len;
        uint32_t func_off, func_len;
        uint32_t line_off, line_len;
        uint32_t core_off, core_len;
};

struct function_record {
        uint32_t offset; /* bytes in the section */
        uint32_t type;
};

struct line_record {
        uint32_t offset;
        uint32_t file_off, text_off;
        uint32_t position; /* line << 10 | column */
};

static bool take_u32(struct span *s, uint32_t *ret)
{
        if (s->len < 4)
                return false;
        *ret = get_le32(s->data);
        *s = span_of(s->data + 4, s->len - 4);
        return true;
}

static uint32_t record_offset(const struct elf_records *records, uint32_t i)
{
        return get_le32(records->bytes.data + (size_t)i * records->size);
}

static bool ascends(const struct elf_records *records)
{
        for (uint32_t i = 1; i < records->n; i++)
                if (record_offset(records, i - 1) >= record_offset(records, i))
                        return false;
        return true;
}

/* Give each section its records of one part. The first list for a section counts; one that does not ascend is dropped.
 */
static void load_part(struct elf_file *file, struct span part, size_t least_size, bool is_lines)
{
        uint32_t size, name, n;

        if (!take_u32(&part, &size) || size < least_size || size % 4 != 0)
                return;
        for (unsigned i = 0; i < ELF_SECTIONS_MAX && take_u32(&part, &name) && take_u32(&part, &n); i++) {
                uint32_t number = elf_find_section(file, btf_string(&file->btf, name));
                struct elf_records records = {.n = n, .size = size}, *to;

                if (!span_sub(part, 0, (size_t)n * size, &records.bytes))
                        return;
                part = span_of(part.data + records.bytes.len, part.len - records.bytes.len);
                to = is_lines ? &file->sections[number].lines : &file->sections[number].functions;
                if (number > 0 && to->n == 0 && ascends(&records))
                        *to = records;
        }
}

int elf_load_ext(struct elf_file *file)
{
        uint32_t number = elf_find_section(file, ".BTF.ext");
        struct span section = file->sections[number].data, body, part;
        struct ext_header header = {0};

        if (number == 0 || file->btf.n == 0 || section.len < offsetof(struct ext_header, core_off))
                return 0;
        memcpy(&header, section.data, MIN(section.len, sizeof(header)));
        if (header.magic != BTF_MAGIC || header.version != BTF_VERSION || header.hdr_len > section.len ||
            header.hdr_len < offsetof(struct ext_header, core_off))
                return 0;
        if (header.hdr_len >= sizeof(header) && header.core_len > 4)
                return elf_fail(file,
                                "needs relocation against the kernel's types (CO-RE), of which there are none here; "
                                "do not use preserve_access_index");

        body = span_of(section.data + header.hdr_len, section.len - header.hdr_len);
        if (span_sub(body, header.func_off, header.func_len, &part))
                load_part(file, part, sizeof(struct function_record), false);
        if (span_sub(body, header.line_off, header.line_len, &part))
                load_part(file, part, sizeof(struct line_record), true);
        return 0;
}

/* The first record at or behind @offset. */
static uint32_t records_find(const struct elf_records *records, uint64_t offset)
{
        uint32_t low = 0, high = records->n;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (record_offset(records, middle) < offset)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

uint32_t elf_function_type(const struct elf_file *file, uint32_t section, uint64_t offset)
{
        const struct elf_records *records = &file->sections[section].functions;
        uint32_t i = records_find(records, offset);
        struct function_record record;

        if (i == records->n)
                return 0;
        memcpy(&record, records->bytes.data + (size_t)i * records->size, sizeof(record));
        return record.offset == offset ? record.type : 0;
}

static const char *kept_string(const struct elf_file *file, uint32_t offset)
{
        return offset < file->btf.strings.len ? file->strings + offset : "";
}

static int add_line(struct elf_file *file, struct program *program, uint32_t slot, const struct line_record *record)
{
        const char *text = kept_string(file, record->text_off);

        if (program->n_lines % 64 == 0) {
                struct program_line *grown = realloc(program->lines, (program->n_lines + 64) * sizeof(*grown));

                if (!grown)
                        return err_set_nomem(file->err);
                program->lines = grown;
        }
        program->lines[program->n_lines++] = (struct program_line){
                .slot = slot,
                .line = record->position >> 10,
                .column = record->position & 1023,
                .file = kept_string(file, record->file_off),
                .text = text + strspn(text, " \t"),
        };
        return 0;
}

int elf_add_lines(struct elf_file *file, struct program *program, uint32_t section, uint64_t offset, uint64_t size,
                  uint32_t slot)
{
        const struct elf_records *records = &file->sections[section].lines;

        for (uint32_t i = records_find(records, offset); i < records->n; i++) {
                struct line_record record;
                int r;

                memcpy(&record, records->bytes.data + (size_t)i * records->size, sizeof(record));
                if (record.offset >= offset + size)
                        break;
                if (record.position >> 10 == 0)
                        continue; /* the compiler knows of no line; the one before goes on */
                r = add_line(file, program, slot + (uint32_t)((record.offset - offset) / INSN_SLOT_BYTES), &record);
                if (r < 0)
                        return r;
        }
        return 0;
}
