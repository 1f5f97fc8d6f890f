/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "api/api-internal.h"
#include "bpfvm/interp.h"

struct assay_bpf_machine {
        const struct program *program;
        size_t context_bytes; /* for which it was checked */
        struct assay_bpf_hooks hooks;
        struct store *store;
        struct interp *interp;
};

static uint64_t time_ns(void *userdata)
{
        const struct assay_bpf_machine *m = userdata;

        return m->hooks.time_ns(m->hooks.userdata);
}

static uint32_t random_u32(void *userdata)
{
        const struct assay_bpf_machine *m = userdata;

        return m->hooks.random_u32(m->hooks.userdata);
}

static void trace(void *userdata, const char *text, size_t len)
{
        const struct assay_bpf_machine *m = userdata;

        m->hooks.trace(m->hooks.userdata, text, len);
}

static int64_t actuate(void *userdata, enum helper_id helper, const uint64_t args[static 2])
{
        const struct assay_bpf_machine *m = userdata;

        return m->hooks.actuate(m->hooks.userdata, (uint32_t)helper, args);
}

static int prepare(struct assay_bpf_machine *m, const struct assay_bpf_hooks *hooks, struct err *err)
{
        struct embed embed = {.userdata = m};
        int r;

        if (hooks && api_copy_sized(&m->hooks, sizeof(m->hooks), hooks, hooks->size) < 0)
                return err_set(err, ERR_USAGE, EINVAL,
                               "hooks: their size is not set, or there is one that this release does not know");
        embed.time_ns = m->hooks.time_ns ? time_ns : NULL;
        embed.random_u32 = m->hooks.random_u32 ? random_u32 : NULL;
        embed.trace = m->hooks.trace ? trace : NULL;
        embed.actuate = m->hooks.actuate ? actuate : NULL;
        r = store_new(m->program->maps, m->program->n_maps, &m->store, err);
        return r < 0 ? r : interp_new(m->program, m->store, &embed, &m->interp, err);
}

API int assay_bpf_machine_new(const struct assay_bpf_program *program, const struct assay_bpf_options *options,
                              const struct assay_bpf_hooks *hooks, struct assay_bpf_machine **ret,
                              struct assay_bpf_report **ret_report, char *why, size_t why_size)
{
        struct assay_bpf_machine *m;
        struct assay_bpf_report *report = NULL;
        struct err err = {0};
        int r = assay_bpf_check(program, options, ret_report ? &report : NULL, why, why_size);

        if (r < 0)
                return r;
        if (r > 0) {
                if (ret_report)
                        *ret_report = report;
                return r;
        }
        m = calloc(1, sizeof(*m));
        if (m) {
                m->program = program->program;
                m->context_bytes = program->program->context.size;
        }
        r = m ? prepare(m, hooks, &err) : err_set_nomem(&err);
        if (r < 0) {
                assay_bpf_report_free(report);
                assay_bpf_machine_free(m);
                return api_result(r, &err, why, why_size);
        }
        if (ret_report)
                *ret_report = report;
        *ret = m;
        return 0;
}

API void assay_bpf_machine_free(struct assay_bpf_machine *machine)
{
        if (!machine)
                return;
        interp_free(machine->interp);
        store_free(machine->store);
        free(machine);
}

API int assay_bpf_machine_run(struct assay_bpf_machine *machine, void *context, size_t size, uint64_t *ret)
{
        struct fault fault;

        if (size != machine->context_bytes)
                return -EINVAL;
        /* Without a budget it cannot run out: the check has shown that the program ends. */
        return interp_run(machine->interp, size > 0 ? context : NULL, UINT64_MAX, ret, &fault);
}

API int assay_bpf_machine_map(const struct assay_bpf_machine *machine, const char *name)
{
        for (uint32_t i = 0; i < machine->program->n_maps; i++)
                if (streq(machine->program->maps[i].name, name))
                        return (int)i;
        return -ENOENT;
}

/* Whether a map has keys and values, of these sizes. */
static bool is_fit(const struct assay_bpf_machine *machine, unsigned map, size_t key_size, size_t value_size)
{
        const struct map_def *def = map < machine->program->n_maps ? &machine->program->maps[map] : NULL;

        return def && def->kind != MAP_RING && def->key_size == key_size && def->value_size == value_size;
}

API int assay_bpf_machine_read(struct assay_bpf_machine *machine, unsigned map, const void *key, size_t key_size,
                               void *value, size_t value_size)
{
        const uint8_t *found;

        if (!is_fit(machine, map, key_size, value_size))
                return -EINVAL;
        found = store_lookup(machine->store, map, key);
        if (!found)
                return -ENOENT;
        memcpy(value, found, value_size);
        return 0;
}

API int assay_bpf_machine_write(struct assay_bpf_machine *machine, unsigned map, const void *key, size_t key_size,
                                const void *value, size_t value_size)
{
        if (!is_fit(machine, map, key_size, value_size))
                return -EINVAL;
        if (machine->program->maps[map].is_read_only)
                return -EACCES;
        return store_update(machine->store, map, key, value, STORE_ANY);
}

API int assay_bpf_machine_take(struct assay_bpf_machine *machine, unsigned map, void *buffer, size_t size,
                               size_t *ret_size)
{
        struct span record;
        int r;

        if (map >= machine->program->n_maps)
                return -EINVAL;
        r = store_ring_next(machine->store, map, &record);
        if (r <= 0)
                return r;
        *ret_size = record.len;
        if (record.len > size)
                return -EMSGSIZE;
        memcpy(buffer, record.data, record.len);
        store_ring_release(machine->store, map);
        return 1;
}
