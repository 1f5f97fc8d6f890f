/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "bpfvm/program.h"
#include "cli/option.h"

/* What all verbs of `assay bpf` have in common: which file, in which form, with which maps, and which of its programs.
 */

struct bpf_input {
        bool is_hex, is_asm;
        const char *program; /* by name; NULL: the only one */
        const char *context; /* NULL: what the object says, or none */
        struct option_strings maps;
};

/* Rows for a verb's table of options; @member is a struct bpf_input in the options struct @type. */
#define BPF_INPUT_OPTIONS(type, member)                                                                                \
        {"hex", 0, OPTION_FLAG, offsetof(type, member.is_hex), .help = "FILE is hexadecimal text"},                    \
                {"asm", 0, OPTION_FLAG, offsetof(type, member.is_asm),                                                 \
                 .help = "FILE is assembly text, as disasm prints it"},                                                \
                {"program",     0,                                                                                     \
                 OPTION_STRING, offsetof(type, member.program),                                                        \
                 "NAME",        .help = "which program of an object that has several"},                                \
                {"context",     0,                                                                                     \
                 OPTION_STRING, offsetof(type, member.context),                                                        \
                 "WHAT",        .help = "what r1 points to: 64B, 64B:ro (read only), __sk_buff or none"},              \
        {                                                                                                              \
                "map", 0, OPTION_STRINGS, offsetof(type, member.maps), "SPEC",                                         \
                        .help = "a map, named by its place: array:4:8:16 (key, value, entries), hash:..., "            \
                                "ring:0:0:4096"                                                                        \
        }

/* bpf_input_load - read a file ("-": standard input): an ELF object, or else raw instructions, or text as the flags say
 *
 * Sets the context of each program where --context is given. Programs may hold a fault.
 * Return: 0; a negative errno with the reason in @err.
 */
int bpf_input_load(const struct bpf_input *input, const char *path, struct object **ret, struct err *err);

/* bpf_input_read - the bytes of a file ("-": standard input), which the caller frees */
int bpf_input_read(const char *path, char **ret, size_t *ret_len, struct err *err);

/* bpf_input_load_bytes - as bpf_input_load(), of bytes that have been read; @name for messages */
int bpf_input_load_bytes(const struct bpf_input *input, struct span bytes, const char *name, struct object **ret,
                         struct err *err);

/* bpf_input_program - the program that --program names, or the only one */
int bpf_input_program(const struct bpf_input *input, const struct object *object, struct program **ret,
                      struct err *err);

/* bpf_print_fault - a fault for a person: kind, slot, instruction, and the source line where it is known */
void bpf_print_fault(const struct program *program, const struct fault *fault);

/* bpf_fault_to_json - a fault as an object: kind, slot, text, and file, line and source where known; NULL if memory ran
 * out */
json_t *bpf_fault_to_json(const struct program *program, const struct fault *fault);
