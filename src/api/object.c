/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "api/api-internal.h"
#include "base/version.h"
#include "bpfvm/elf.h"

#define CONTEXT_BYTES_MAX ((size_t)1 << 30)

API const char *assay_bpf_version(void)
{
        return version_number();
}

int api_result(int r, const struct err *err, char *why, size_t why_size)
{
        if (r < 0 && why && why_size > 0)
                err_format(err, why, why_size);
        return r;
}

static int load(struct span bytes, const char *name, struct object **ret, struct err *err)
{
        struct fault fault;

        return elf_is(bytes) ? elf_load(bytes, name, ret, err)
                             : object_of_slots(bytes, name, NULL, 0, ret, &fault, err);
}

API int assay_bpf_object_load(const void *bytes, size_t size, const char *name, struct assay_bpf_object **ret,
                              char *why, size_t why_size)
{
        struct assay_bpf_object *o = calloc(1, sizeof(*o));
        struct err err = {0};
        int r = o ? 0 : err_set_nomem(&err);

        if (r == 0)
                r = load(span_of(bytes, size), name, &o->object, &err);
        if (r == 0) {
                o->programs = calloc(o->object->n_programs + 1u, sizeof(*o->programs));
                r = o->programs ? 0 : err_set_nomem(&err);
        }
        if (r < 0) {
                assay_bpf_object_free(o);
                return api_result(r, &err, why, why_size);
        }
        for (uint32_t i = 0; i < o->object->n_programs; i++)
                o->programs[i].program = o->object->programs[i];
        *ret = o;
        return 0;
}

API void assay_bpf_object_free(struct assay_bpf_object *object)
{
        if (!object)
                return;
        object_free(object->object);
        free(object->programs);
        free(object);
}

API size_t assay_bpf_object_programs(const struct assay_bpf_object *object)
{
        return object->object->n_programs;
}

API struct assay_bpf_program *assay_bpf_object_program(const struct assay_bpf_object *object, size_t index)
{
        return index < object->object->n_programs ? &object->programs[index] : NULL;
}

API struct assay_bpf_program *assay_bpf_object_find(const struct assay_bpf_object *object, const char *name)
{
        for (uint32_t i = 0; i < object->object->n_programs; i++)
                if (streq(object->programs[i].program->name, name))
                        return &object->programs[i];
        return NULL;
}

API const char *assay_bpf_program_name(const struct assay_bpf_program *program)
{
        return program->program->name;
}

API size_t assay_bpf_program_context_size(const struct assay_bpf_program *program)
{
        return program->program->context.size;
}

API int assay_bpf_program_set_context(struct assay_bpf_program *program, size_t size, int is_writable)
{
        if (size > CONTEXT_BYTES_MAX)
                return -E2BIG;
        context_flat(&program->program->context, (uint32_t)size, is_writable != 0);
        return 0;
}
