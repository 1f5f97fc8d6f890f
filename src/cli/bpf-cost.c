/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bpf-cost.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/file.h"
#include "base/text.h"

#define COST_FILE_MAX (1 << 20)

json_t *bpf_cost_to_json(const struct cost_table *table)
{
        json_t *classes = json_object(), *helpers = json_object();
        const struct helper *list;
        size_t n;

        for (enum cost_class c = 0; c < COST_CLASSES; c++)
                json_object_set_new(classes, cost_class_name(c), json_integer(table->class_ps[c]));
        list = helper_table(&n);
        for (size_t i = 0; i < n; i++)
                json_object_set_new(helpers, list[i].name, json_integer(table->helper_ps[i]));
        return json_pack("{s:i, s:s, s:o, s:o}", "assay", 1, "name", table->name, "class_ps", classes, "helper_ps",
                         helpers);
}

static int read_cost(const json_t *object, const char *where, const char *key, uint32_t *ret, struct err *err)
{
        int64_t value;
        int r = json_get_i64(object, where, key, &value, err);

        if (r < 0)
                return r;
        if (value < 1 || value > UINT32_MAX)
                return err_set(err, ERR_DATA, EINVAL, "%s.%s is %lld; expected 1 to %u picoseconds", where, key,
                               (long long)value, UINT32_MAX);
        *ret = (uint32_t)value;
        return 0;
}

static int read_costs(const json_t *json, struct cost_table *ret, struct err *err)
{
        json_t *classes, *helpers;
        const struct helper *list;
        const char *name;
        int64_t version;
        size_t n;
        int r;

        r = json_get_i64(json, "costs", "assay", &version, err);
        if (r >= 0 && version != 1)
                r = err_set(err, ERR_DATA, EINVAL, "version %lld of the format is not known", (long long)version);
        if (r >= 0)
                r = json_get_string(json, "costs", "name", &name, err);
        if (r >= 0 && !text_is_name(name))
                r = err_set(err, ERR_DATA, EINVAL, "name: expected letters a to z, digits, dots and hyphens, up to 64");
        if (r >= 0)
                r = json_get_object(json, "costs", "class_ps", &classes, err);
        if (r >= 0)
                r = json_get_object(json, "costs", "helper_ps", &helpers, err);
        if (r < 0)
                return r;

        snprintf(ret->name, sizeof(ret->name), "%.31s", name);
        for (enum cost_class c = 0; c < COST_CLASSES && r == 0; c++)
                r = read_cost(classes, "class_ps", cost_class_name(c), &ret->class_ps[c], err);
        list = helper_table(&n);
        for (size_t i = 0; i < n && r == 0; i++)
                r = read_cost(helpers, "helper_ps", list[i].name, &ret->helper_ps[i], err);
        return r;
}

int bpf_cost_load(const char *path, struct cost_table *ret, struct err *err)
{
        _cleanup_json_ json_t *json = NULL;
        _cleanup_free_ char *text = NULL;
        struct cost_table table = {0};
        size_t len;
        int r;

        r = file_read(AT_FDCWD, path, COST_FILE_MAX, &text, &len, err);
        if (r >= 0)
                r = json_parse(span_of(text, len), path, &json, err);
        if (r < 0)
                return r;
        r = read_costs(json, &table, err);
        if (r < 0) {
                err_prefix(err, "%s", path);
                return r;
        }
        *ret = table;
        return 0;
}
