/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "bpfvm/disasm.h"
#include "cli/bpf-input.h"
#include "cli/print.h"
#include "cli/verb-bpf.h"

struct disasm_options {
        struct bpf_input input;
        bool json;
};

static const struct option options[] = {
        BPF_INPUT_OPTIONS(struct disasm_options, input),
        {"json", 0, OPTION_FLAG, offsetof(struct disasm_options, json), .help = "print JSON"},
        {0},
};

/* The source line that begins at @slot, if it is another one than before. */
static const struct program_line *line_begins(const struct program *program, uint32_t slot)
{
        const struct program_line *line = program_line_at(program, slot);
        const struct program_line *before = slot > 0 ? program_line_at(program, slot - 1) : NULL;

        if (!line || (before && before->line == line->line && streq(before->file, line->file)))
                return NULL;
        return line;
}

static void print_source(const struct program_line *line)
{
        _cleanup_text_ struct text out = {0};

        text_add(&out, "; ");
        text_add_visible(&out, line->file, strlen(line->file));
        text_addf(&out, ":%" PRIu32 " ", line->line);
        text_add_visible(&out, line->text, strlen(line->text));
        if (!out.failed)
                puts(out.data);
}

static void print_bytes(const struct program *program, uint32_t slot)
{
        for (uint32_t i = 0; i < INSN_SLOT_BYTES; i++)
                printf("%02x", program->slots[slot * INSN_SLOT_BYTES + i]);
}

static void print_program(const struct program *program)
{
        printf("%s%s%s:\n", program->section, *program->section ? "/" : "", program->name);
        for (uint32_t slot = 0; slot < program->n_insns; slot++) {
                const struct program_sub *sub = &program->subs[program_sub_at(program, slot)];
                const struct program_line *line = line_begins(program, slot);
                char text[DISASM_SIZE];

                if (sub->start == slot && slot > 0)
                        printf("%s:\n", *sub->name ? sub->name : "function");
                if (line)
                        print_source(line);
                printf("%6" PRIu32 ": ", slot);
                print_bytes(program, slot);
                printf("%s%s\n", program->insns[slot].kind == INSN_TAIL ? "" : "  ",
                       disasm_insn(&program->insns[slot], slot, text));
        }
}

static json_t *program_to_json(const struct program *program)
{
        json_t *insns = json_array();

        for (uint32_t slot = 0; program->insns && slot < program->n_insns; slot++) {
                char text[DISASM_SIZE];

                if (program->insns[slot].kind != INSN_TAIL)
                        json_array_append_new(insns, json_pack("{s:I, s:s}", "slot", (json_int_t)slot, "text",
                                                               disasm_insn(&program->insns[slot], slot, text)));
        }
        return json_pack("{s:s, s:s, s:o, s:o*}", "name", program->name, "section", program->section, "instructions",
                         insns, "fault",
                         program->fault.kind != FAULT_NONE ? bpf_fault_to_json(program, &program->fault) : NULL);
}

static json_t *object_to_json(const struct object *object, const struct program *only)
{
        json_t *all = json_pack("{s:i, s:[]}", "assay", 1, "programs");

        for (uint32_t i = 0; i < object->n_programs; i++)
                if (!only || object->programs[i] == only)
                        json_array_append_new(json_object_get(all, "programs"), program_to_json(object->programs[i]));
        return all;
}

/* Exit code 3 if any of the programs is no legal one: what `assay bpf check` would say of it. */
static int run(const void *opts, int argc, char **argv, struct err *err)
{
        const struct disasm_options *o = opts;
        _cleanup_object_ struct object *object = NULL;
        struct program *only = NULL;
        bool is_legal = true;
        int r;

        r = bpf_input_load(&o->input, argv[0], &object, err);
        if (r >= 0 && o->input.program)
                r = bpf_input_program(&o->input, object, &only, err);
        if (r == 0 && o->json)
                r = print_json(object_to_json(object, only), err);
        if (r < 0)
                return r;

        for (uint32_t i = 0; i < object->n_programs; i++) {
                const struct program *program = object->programs[i];

                if (only && program != only)
                        continue;
                if (program->fault.kind != FAULT_NONE)
                        is_legal = false;
                if (o->json)
                        continue;
                if (program->fault.kind != FAULT_NONE)
                        bpf_print_fault(program, &program->fault);
                else
                        print_program(program);
        }
        return is_legal ? 0 : 3;
}

const struct verb verb_bpf_disasm = {
        .name = "disasm",
        .arguments = "FILE",
        .summary = "print the instructions of a program as text",
        .description =
                "Prints each instruction with its slot, its bytes and, where the object has it, the C source line.\n"
                "FILE is an ELF object that clang made with -target bpf, or holds raw instructions.\n"
                "Exit code 3: an instruction is not a legal one.",
        .min_args = 1,
        .max_args = 1,
        .options = options,
        .options_size = sizeof(struct disasm_options),
        .run = run,
};
