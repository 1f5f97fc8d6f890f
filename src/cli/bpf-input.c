/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bpf-input.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/file.h"
#include "base/hex.h"
#include "base/number.h"
#include "bpfvm/assemble.h"
#include "bpfvm/disasm.h"
#include "bpfvm/elf.h"
#include "bpfvm/profile.h"
#include "config/unit.h"

#define INPUT_BYTES_MAX (64u << 20)

/* Takes the next part of "KIND:KEY:VALUE:ENTRIES" as a number. */
static int take_number(const char **spec, uint32_t *ret)
{
        size_t len = strcspn(*spec, ":");
        uint64_t value;

        if (number_parse_u64(span_of(*spec, len), &value) < 0 || value > UINT32_MAX)
                return -EINVAL;
        *spec += len + ((*spec)[len] == ':');
        *ret = (uint32_t)value;
        return 0;
}

static int parse_map(const char *spec, size_t number, struct map_def *ret, struct err *err)
{
        size_t len = strcspn(spec, ":");
        struct map_def map = {0};
        const char *rest = spec + len + (spec[len] == ':');
        struct fault fault;

        while (map.kind < MAP_KINDS && strncmp(spec, map_kind_name(map.kind), len) != 0)
                map.kind++;
        if (len == 0 || map.kind == MAP_KINDS || take_number(&rest, &map.key_size) < 0 ||
            take_number(&rest, &map.value_size) < 0 || take_number(&rest, &map.max_entries) < 0 || *rest != 0)
                return err_set(err, ERR_USAGE, EINVAL,
                               "--map %s: expected KIND:KEY:VALUE:ENTRIES, such as array:4:8:16 or ring:0:0:4096",
                               spec);

        snprintf(map.name, sizeof(map.name), "map%zu", number);
        if (map_check(&map, &fault))
                return err_set(err, ERR_USAGE, EINVAL, "--map %s: %s", spec, fault.text);
        *ret = map;
        return 0;
}

static int parse_context(const char *text, struct context_def *ret, struct err *err)
{
        const struct context_def *known = context_find(text);
        size_t len = strlen(text);
        bool is_read_only = len > 3 && streq(text + len - 3, ":ro");
        _cleanup_free_ char *size_text = strndup(text, is_read_only ? len - 3 : len);
        int64_t size;

        if (known) {
                *ret = *known;
                return 0;
        }
        if (!size_text)
                return err_set_nomem(err);
        if (unit_parse(UNIT_BYTES, size_text, &size, NULL) < 0 || size < 0 || size > INT32_MAX)
                return err_set(err, ERR_USAGE, EINVAL,
                               "--context %s: expected a size such as 64B or 64B:ro, __sk_buff or none", text);
        context_flat(ret, (uint32_t)size, !is_read_only);
        return 0;
}

/* Hexadecimal or assembly text to slots. *@ret_bytes owns them. */
static int slots_of_text(const struct bpf_input *input, struct span text, const char *name, uint8_t **ret_bytes,
                         size_t *ret_len, struct err *err)
{
        struct position position = {.line = 1, .column = 1};
        size_t offset = 0;
        int r;

        if (input->is_asm)
                return assemble_text(text, name, ret_bytes, ret_len, err);

        r = hex_decode(text, ret_bytes, ret_len, &offset);
        if (r == -ENOMEM)
                return err_set_nomem(err);
        if (r == 0)
                return 0;
        snprintf(position.file, sizeof(position.file), "%s", name);
        for (size_t i = 0; i < offset; i++) {
                position.column = text.data[i] == '\n' ? 1 : position.column + 1;
                position.line += text.data[i] == '\n';
        }
        return err_set_at(err, ERR_DATA, &position, "expected pairs of hexadecimal digits, as in 9500000000000000");
}

/* Whether bytes are text; no program is, since each has an exit, 0x95. */
static bool is_text(struct span bytes)
{
        for (size_t i = 0; i < bytes.len; i++)
                if (bytes.data[i] >= 0x7f || (bytes.data[i] < ' ' && !strchr("\t\n\r", bytes.data[i])))
                        return false;
        return bytes.len > 0;
}

static int load_slots(const struct bpf_input *input, struct span bytes, const char *name, struct object **ret,
                      struct err *err)
{
        struct map_def maps[OPTION_STRINGS_MAX];
        _cleanup_free_ uint8_t *slots = NULL;
        struct fault fault;
        int r;

        for (size_t i = 0; i < input->maps.n; i++) {
                r = parse_map(input->maps.items[i], i, &maps[i], err);
                if (r < 0)
                        return r;
        }
        if (!input->is_hex && !input->is_asm && is_text(bytes))
                return err_set(
                        err, ERR_DATA, EINVAL,
                        "%s: text, where instructions were expected; compile C with `clang -target bpf -O2 -g -c`, "
                        "or say --asm or --hex",
                        name);
        if (input->is_hex || input->is_asm) {
                size_t len;

                r = slots_of_text(input, bytes, name, &slots, &len, err);
                if (r < 0)
                        return r;
                bytes = span_of(slots, len);
        }
        r = object_of_slots(bytes, name, maps, (uint32_t)input->maps.n, ret, &fault, err);
        return r > 0 ? err_set(err, ERR_USAGE, EINVAL, "%s", fault.text) : r;
}

int bpf_input_load_bytes(const struct bpf_input *input, struct span bytes, const char *name, struct object **ret,
                         struct err *err)
{
        _cleanup_object_ struct object *object = NULL;
        struct context_def context;
        int r;

        if (input->is_hex && input->is_asm)
                return err_set(err, ERR_USAGE, EINVAL, "--hex and --asm together; a file is one or the other");
        if (elf_is(bytes) && input->maps.n > 0)
                return err_set(err, ERR_USAGE, EINVAL, "--map: an object brings its own maps");
        r = elf_is(bytes) ? elf_load(bytes, name, &object, err) : load_slots(input, bytes, name, &object, err);
        if (r == 0 && input->context)
                r = parse_context(input->context, &context, err);
        if (r < 0)
                return r;

        for (uint32_t i = 0; input->context && i < object->n_programs; i++)
                object->programs[i]->context = context;
        *ret = TAKE_PTR(object);
        return 0;
}

int bpf_input_read(const char *path, char **ret, size_t *ret_len, struct err *err)
{
        if (streq(path, "-"))
                return file_read_stream(STDIN_FILENO, "standard input", INPUT_BYTES_MAX, ret, ret_len, err);
        return file_read(AT_FDCWD, path, INPUT_BYTES_MAX, ret, ret_len, err);
}

int bpf_input_load(const struct bpf_input *input, const char *path, struct object **ret, struct err *err)
{
        _cleanup_free_ char *bytes = NULL;
        size_t len;
        int r;

        r = bpf_input_read(path, &bytes, &len, err);
        if (r < 0)
                return r;
        return bpf_input_load_bytes(input, span_of(bytes, len), streq(path, "-") ? "standard input" : path, ret, err);
}

int bpf_input_program(const struct bpf_input *input, const struct object *object, struct program **ret, struct err *err)
{
        _cleanup_text_ struct text names = {0};

        if (!input->program && object->n_programs == 1) {
                *ret = object->programs[0];
                return 0;
        }
        if (input->program) {
                *ret = object_find(object, input->program);
                if (*ret)
                        return 0;
        }
        for (uint32_t i = 0; i < object->n_programs && i < 16; i++)
                text_addf(&names, "%s%s", i > 0 ? ", " : "", object->programs[i]->name);
        if (names.failed)
                return err_set_nomem(err);
        if (!input->program)
                return err_set(err, ERR_USAGE, EINVAL, "%u programs; choose one with --program: %s", object->n_programs,
                               names.data);
        return err_set(err, ERR_USAGE, ENOENT, "no program is named %s; there are: %s", input->program, names.data);
}

/* "prog.c:12" or nothing. */
static void add_source(struct text *out, const struct program *program, uint32_t slot)
{
        const struct program_line *line = slot != FAULT_NO_SLOT ? program_line_at(program, slot) : NULL;

        if (!line)
                return;
        text_add(out, "\n    ");
        text_add_visible(out, line->file, strlen(line->file));
        text_addf(out, ":%" PRIu32 ": ", line->line);
        text_add_visible(out, line->text, strlen(line->text));
}

void bpf_print_fault(const struct program *program, const struct fault *fault)
{
        _cleanup_text_ struct text out = {0};
        char line[DISASM_SIZE];

        text_addf(&out, "%s: %s", program->name, fault_name(fault->kind));
        if (fault->slot != FAULT_NO_SLOT)
                text_addf(&out, " at slot %" PRIu32, fault->slot);
        text_add(&out, ": ");
        text_add_visible(&out, fault->text, strlen(fault->text));
        if (program->insns && fault->slot < program->n_insns)
                text_addf(&out, "\n    %" PRIu32 ": %s", fault->slot,
                          disasm_insn(&program->insns[fault->slot], fault->slot, line));
        add_source(&out, program, fault->slot);
        if (!out.failed)
                puts(out.data);
}

/* Outside bytes as JSON, which is UTF-8. */
static json_t *visible_to_json(const char *s)
{
        _cleanup_text_ struct text out = {0};

        text_add_visible(&out, s, strlen(s));
        return out.failed ? NULL : json_string(out.data ? out.data : "");
}

json_t *bpf_fault_to_json(const struct program *program, const struct fault *fault)
{
        const struct program_line *line = fault->slot != FAULT_NO_SLOT ? program_line_at(program, fault->slot) : NULL;
        json_t *json = json_pack("{s:s, s:o}", "kind", fault_name(fault->kind), "text", visible_to_json(fault->text));

        if (json && fault->slot != FAULT_NO_SLOT)
                json_object_set_new(json, "slot", json_integer(fault->slot));
        if (json && line) {
                json_object_set_new(json, "file", visible_to_json(line->file));
                json_object_set_new(json, "line", json_integer(line->line));
                json_object_set_new(json, "source", visible_to_json(line->text));
        }
        return json;
}
