/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bpfvm/program.h"

/* How an object is put together, by object_of_slots() and by the ELF loader. */

/* object_new - an object without maps and programs; NULL if memory ran out */
struct object *object_new(void);

/* object_keep - a copy of @len bytes, with a NUL behind, that lives as long as the object; NULL if memory ran out */
void *object_keep(struct object *object, const void *data, size_t len);

/* program_build - fill in insns, n_insns, subs and fault from the encoded slots
 * @slots: copied
 *
 * name, section and maps are set by the caller before. An illegal program sets @fault in the program.
 * Return: 0; -ENOMEM.
 */
int program_build(struct program *program, struct span slots, struct err *err);

void program_free(struct program *program);
DEFINE_CLEANUP(struct program *, program_free)
