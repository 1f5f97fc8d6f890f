/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/btf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define CHAIN_MAX 32 /* references followed in a row: an array of typedefs of arrays, and so on */

void btf_done(struct btf *btf)
{
        free(TAKE_PTR(btf->offsets));
}

/* Bytes that follow the fixed part of a type, or -1 for a kind that does not exist. */
static int64_t extra_bytes(const struct btf_type *type)
{
        int64_t vlen = BTF_INFO_VLEN(type->info);

        switch (BTF_INFO_KIND(type->info)) {
        case BTF_KIND_PTR:
        case BTF_KIND_FWD:
        case BTF_KIND_TYPEDEF:
        case BTF_KIND_VOLATILE:
        case BTF_KIND_CONST:
        case BTF_KIND_RESTRICT:
        case BTF_KIND_FUNC:
        case BTF_KIND_FLOAT:
        case BTF_KIND_TYPE_TAG:
                return 0;
        case BTF_KIND_INT:
                return 4;
        case BTF_KIND_ARRAY:
                return sizeof(struct btf_array);
        case BTF_KIND_STRUCT:
        case BTF_KIND_UNION:
                return vlen * (int64_t)sizeof(struct btf_member);
        case BTF_KIND_ENUM:
                return vlen * (int64_t)sizeof(struct btf_enum);
        case BTF_KIND_ENUM64:
                return vlen * 12;
        case BTF_KIND_FUNC_PROTO:
                return vlen * (int64_t)sizeof(struct btf_param);
        case BTF_KIND_VAR:
                return sizeof(struct btf_var);
        case BTF_KIND_DATASEC:
                return vlen * (int64_t)sizeof(struct btf_var_secinfo);
        case BTF_KIND_DECL_TAG:
                return sizeof(struct btf_decl_tag);
        default:
                return -1;
        }
}

static int fail(struct err *err, const char *what)
{
        return err_set(err, ERR_DATA, EINVAL, ".BTF: %s", what);
}

/* Where each type begins. */
static int list_types(struct btf *btf, struct err *err)
{
        size_t at = 0, allocated = 0;
        uint32_t n = 1;

        while (at < btf->types.len) {
                struct btf_type type;
                struct span fixed, rest;
                int64_t extra;

                if (!span_sub(btf->types, at, sizeof(type), &fixed))
                        return fail(err, "a type is cut off");
                memcpy(&type, fixed.data, sizeof(type));
                extra = extra_bytes(&type);
                if (extra < 0)
                        return fail(err, "a type of a kind that does not exist");
                if (!span_sub(btf->types, at + sizeof(type), (size_t)extra, &rest))
                        return fail(err, "a type is cut off");
                if (n == BTF_TYPES_MAX)
                        return fail(err, "more than a million types");
                if (n >= allocated) {
                        uint32_t *grown;

                        allocated = allocated > 0 ? 2 * allocated : 64;
                        grown = realloc(btf->offsets, allocated * sizeof(*grown));
                        if (!grown)
                                return err_set_nomem(err);
                        btf->offsets = grown;
                }
                btf->offsets[n++] = (uint32_t)at;
                at += sizeof(type) + (size_t)extra;
        }
        btf->n = n;
        return 0;
}

int btf_parse(struct span section, struct btf *ret, struct err *err)
{
        struct btf btf = {0};
        struct btf_header header;
        struct span body;
        int r;

        if (section.len < sizeof(header))
                return fail(err, "shorter than its header");
        memcpy(&header, section.data, sizeof(header));
        if (header.magic != BTF_MAGIC || header.version != BTF_VERSION)
                return fail(err, "not version 1 in little-endian order");
        if (header.hdr_len < sizeof(header) || !span_sub(section, header.hdr_len, section.len - header.hdr_len, &body))
                return fail(err, "its header has a length that does not fit");
        if (!span_sub(body, header.type_off, header.type_len, &btf.types) ||
            !span_sub(body, header.str_off, header.str_len, &btf.strings))
                return fail(err, "its types or strings do not lie inside");
        if (btf.strings.len == 0 || btf.strings.data[btf.strings.len - 1] != 0)
                return fail(err, "its strings do not end in a NUL");

        r = list_types(&btf, err);
        if (r < 0) {
                btf_done(&btf);
                return r;
        }
        *ret = btf;
        return 0;
}

struct btf_type btf_type(const struct btf *btf, uint32_t id)
{
        struct btf_type type = {0};

        if (id > 0 && id < btf->n)
                memcpy(&type, btf->types.data + btf->offsets[id], sizeof(type));
        return type;
}

const char *btf_string(const struct btf *btf, uint32_t offset)
{
        return offset < btf->strings.len ? (const char *)btf->strings.data + offset : "";
}

/* Copies element @i of @size bytes behind the fixed part of a type that has @n of them. */
static bool element(const struct btf *btf, uint32_t id, uint32_t i, uint32_t n, void *ret, size_t size)
{
        if (i >= n)
                return false;
        memcpy(ret, btf->types.data + btf->offsets[id] + sizeof(struct btf_type) + i * size, size);
        return true;
}

bool btf_member(const struct btf *btf, uint32_t id, uint32_t i, struct btf_member *ret)
{
        struct btf_type type = btf_type(btf, id);

        return BTF_INFO_KIND(type.info) == BTF_KIND_STRUCT &&
               element(btf, id, i, BTF_INFO_VLEN(type.info), ret, sizeof(*ret));
}

bool btf_param(const struct btf *btf, uint32_t id, uint32_t i, struct btf_param *ret)
{
        struct btf_type type = btf_type(btf, id);

        return BTF_INFO_KIND(type.info) == BTF_KIND_FUNC_PROTO &&
               element(btf, id, i, BTF_INFO_VLEN(type.info), ret, sizeof(*ret));
}

bool btf_variable(const struct btf *btf, uint32_t id, uint32_t i, struct btf_var_secinfo *ret)
{
        struct btf_type type = btf_type(btf, id);

        return BTF_INFO_KIND(type.info) == BTF_KIND_DATASEC &&
               element(btf, id, i, BTF_INFO_VLEN(type.info), ret, sizeof(*ret));
}

bool btf_array(const struct btf *btf, uint32_t id, struct btf_array *ret)
{
        struct btf_type type = btf_type(btf, id);

        return BTF_INFO_KIND(type.info) == BTF_KIND_ARRAY && element(btf, id, 0, 1, ret, sizeof(*ret));
}

uint32_t btf_strip(const struct btf *btf, uint32_t id, bool *ret_is_const)
{
        bool is_const = false;

        for (unsigned i = 0; i < CHAIN_MAX; i++) {
                struct btf_type type = btf_type(btf, id);

                switch (BTF_INFO_KIND(type.info)) {
                case BTF_KIND_CONST:
                        is_const = true;
                        id = type.type;
                        break;
                case BTF_KIND_TYPEDEF:
                case BTF_KIND_VOLATILE:
                case BTF_KIND_RESTRICT:
                case BTF_KIND_TYPE_TAG:
                        id = type.type;
                        break;
                default:
                        if (ret_is_const)
                                *ret_is_const = is_const;
                        return id;
                }
        }
        return 0;
}

int btf_size(const struct btf *btf, uint32_t id, uint32_t *ret)
{
        uint64_t count = 1;

        for (unsigned i = 0; i < CHAIN_MAX; i++) {
                struct btf_array array;
                struct btf_type type;

                id = btf_strip(btf, id, NULL);
                type = btf_type(btf, id);
                switch (BTF_INFO_KIND(type.info)) {
                case BTF_KIND_ARRAY:
                        btf_array(btf, id, &array);
                        count *= array.nelems;
                        if (count > UINT32_MAX)
                                return -EINVAL;
                        id = array.type;
                        break;
                case BTF_KIND_PTR:
                case BTF_KIND_INT:
                case BTF_KIND_FLOAT:
                case BTF_KIND_ENUM:
                case BTF_KIND_ENUM64:
                case BTF_KIND_STRUCT:
                case BTF_KIND_UNION:
                        count *= BTF_INFO_KIND(type.info) == BTF_KIND_PTR ? 8 : type.size;
                        if (count > UINT32_MAX)
                                return -EINVAL;
                        *ret = (uint32_t)count;
                        return 0;
                default:
                        return -EINVAL;
                }
        }
        return -EINVAL;
}

uint32_t btf_find(const struct btf *btf, unsigned kind, const char *name)
{
        for (uint32_t id = 1; id < btf->n; id++) {
                struct btf_type type = btf_type(btf, id);

                if (BTF_INFO_KIND(type.info) == kind && streq(btf_string(btf, type.name_off), name))
                        return id;
        }
        return 0;
}
