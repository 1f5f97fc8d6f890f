/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <linux/btf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

/* The BPF Type Format, as far as an object's maps, source lines and argument types need it. All bytes are outside
 * bytes: every type is checked to lie in the section when it is read in, references are checked when they are followed.
 */

#define BTF_TYPES_MAX (1u << 20)

struct btf {
        struct span types, strings;
        uint32_t *offsets; /* of each type in @types, by id; id 0 is void and has none */
        uint32_t n;        /* ids are below this */
};

/* btf_parse - read a .BTF section
 * @section: must live as long as @ret
 *
 * Return: 0; -EINVAL (kind data) if it is malformed; -ENOMEM. On success release with btf_done().
 */
int btf_parse(struct span section, struct btf *ret, struct err *err);

/* btf_done - release; accepts a zeroed one */
void btf_done(struct btf *btf);

/* btf_type - the fixed part of a type; kind 0 and size 0 for void and for ids that do not exist */
struct btf_type btf_type(const struct btf *btf, uint32_t id);

/* btf_string - a string by offset; "" for an offset outside */
const char *btf_string(const struct btf *btf, uint32_t offset);

/* btf_member - member number @i of a struct; false if there is none */
bool btf_member(const struct btf *btf, uint32_t id, uint32_t i, struct btf_member *ret);

/* btf_param - parameter number @i of a function prototype; false if there is none */
bool btf_param(const struct btf *btf, uint32_t id, uint32_t i, struct btf_param *ret);

/* btf_variable - variable number @i of a section's list; false if there is none */
bool btf_variable(const struct btf *btf, uint32_t id, uint32_t i, struct btf_var_secinfo *ret);

/* btf_array - the shape of an array; false if @id is none */
bool btf_array(const struct btf *btf, uint32_t id, struct btf_array *ret);

/* btf_strip - the type behind typedefs, const, volatile, restrict and tags; 0 for a chain that does not end
 * @ret_is_const: whether a const was among them; may be NULL
 */
uint32_t btf_strip(const struct btf *btf, uint32_t id, bool *ret_is_const);

/* btf_size - bytes of a value of a type; -EINVAL where it has no size, or one above 2^32 */
int btf_size(const struct btf *btf, uint32_t id, uint32_t *ret);

/* btf_find - the first type of a kind (BTF_KIND_*) with that name, or 0 */
uint32_t btf_find(const struct btf *btf, unsigned kind, const char *name);
