/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"
#include "base/span.h"
#include "bpfvm/program.h"

#define ELF_FILE_MAX (16u << 20) /* bytes of an object file */

/* elf_load - programs and maps of an object file that a compiler made for BPF
 * @file: its bytes, any bytes
 * @name: what to call it in errors
 *
 * - Maps: struct definitions in section .maps, described by BTF (type, max_entries, key, value, key_size, value_size,
 *   map_flags); then one read-only array for each .rodata* section and one array for each .data* and .bss* section.
 * - Programs: each global function of an executable section other than .text; without any, each global function of
 *   .text. The functions that it calls stand behind it. Programs that are no legal ones have it in their @fault.
 * - Source lines: from .BTF.ext, where it is there.
 * - Context: what the program's first parameter points to, by BTF: a struct's bytes, read only if it is const;
 *   __sk_buff for a pointer to that or a section named socket; none otherwise.
 *
 * Return: 0; -EINVAL (kind data) for a malformed file or something in it that has no meaning here (external functions,
 * other kinds of maps, relocations against the kernel's types); -ENOMEM.
 */
int elf_load(struct span file, const char *name, struct object **ret, struct err *err);

/* elf_is - whether the bytes begin as an ELF file does */
bool elf_is(struct span file);
