/* SPDX-License-Identifier: Apache-2.0 */
#include "config/key.h"

#include <stdio.h>

#include "base/file.h"
#include "base/macro.h"

#define WHERE_MAX 256

/* ---- what is expected ---- */

static void add_choices(const struct key *key, struct text *out)
{
        for (size_t i = 0; key->choices[i]; i++)
                text_addf(out, "%s%s", i > 0 ? ", " : "", key->choices[i]);
}

static void add_quantity(const struct key *key, struct text *out)
{
        char low[48], high[48];

        text_add(out, unit_expected(key->unit));
        if (key->min != 0 || key->max != 0)
                text_addf(out, ", from %s to %s", unit_format(key->unit, key->min, low),
                          unit_format(key->unit, key->max, high));
}

/* What a person should write for @key: errors and the reference page say the same. */
static void add_expected(const struct key *key, struct text *out)
{
        static const char *const texts[] = {
                [KEY_STRING] = "a text",
                [KEY_NAME] = "a name (a-z, 0-9, \".\" and \"-\", at most 64)",
                [KEY_FILE] = "a file below the manifest's folder",
                [KEY_BOOL] = "true or false",
                [KEY_NAMES] = "a list of names such as [a, b]",
                [KEY_STRINGS] = "a list of texts",
                [KEY_TABLE] = "a mapping",
                [KEY_TABLES] = "a mapping of names to mappings",
                [KEY_LIST] = "a list of mappings",
                [KEY_MAP] = "a mapping",
                [KEY_NODE] = "a value",
        };

        if (key->type == KEY_QUANTITY) {
                add_quantity(key, out);
        } else if (key->type == KEY_CHOICE) {
                text_add(out, key->choices[0] && key->choices[1] ? "one of " : "");
                add_choices(key, out);
        } else if (key->expected) {
                text_add(out, key->expected);
        } else {
                text_add(out, texts[key->type]);
                if (key->type == KEY_TABLES)
                        text_addf(out, " (%s)", key->table->name);
        }
}

/* ---- errors ---- */

static const char *join(const char *where, const char *name, char buf[static WHERE_MAX])
{
        snprintf(buf, WHERE_MAX, "%s%s%s", where, *where ? "." : "", name);
        return buf;
}

static int err_expected(const struct node *node, const struct key *key, const char *where, struct err *err)
{
        _cleanup_text_ struct text expected = {0};
        char found[64];

        add_expected(key, &expected);
        if (expected.failed)
                return err_set_nomem(err);
        return err_set_at(err, ERR_USAGE, &node->position, "%s: %s is not %s", where, node_kind_text(node, found),
                          expected.data);
}

static int err_missing(const struct node *map, const struct key *key, const char *where, struct err *err)
{
        _cleanup_text_ struct text expected = {0};

        add_expected(key, &expected);
        if (expected.failed)
                return err_set_nomem(err);
        return err_set_at(err, ERR_USAGE, map ? &map->position : NULL, "%s%skey \"%s\" is missing; expected %s", where,
                          *where ? ": " : "", key->name, expected.data);
}

int key_unknown(const struct position *position, const char *where, const char *what, const char *key,
                const char *const *names, size_t n, struct err *err)
{
        _cleanup_text_ struct text known = {0};
        const char *nearest = text_nearest(key, names, n), *colon = *where ? ": " : "";

        if (nearest)
                return err_set_at(err, ERR_USAGE, position, "%s%sunknown %s \"%.64s\"; did you mean \"%s\"?", where,
                                  colon, what, key, nearest);
        for (size_t i = 0; i < n; i++)
                text_addf(&known, "%s%s", i > 0 ? ", " : "", names[i]);
        if (known.failed)
                return err_set_nomem(err);
        return err_set_at(err, ERR_USAGE, position, "%s%sunknown %s \"%.64s\"; expected %s%s", where, colon, what, key,
                          n > 1 ? "one of " : "", n > 0 ? known.data : "none");
}

static int check_known(const struct key_table *table, const struct node *map, const char *where, struct err *err)
{
        for (size_t i = 0; i < map->n_items; i++) {
                const char *names[64];
                size_t n = 0;
                bool is_known = table->has_kind && streq(map->keys[i], "kind");

                for (const struct key *key = table->keys; key->name; key++) {
                        is_known |= streq(key->name, map->keys[i]);
                        if (n < ARRAY_SIZE(names))
                                names[n++] = key->name;
                }
                if (!is_known)
                        return key_unknown(&map->key_positions[i], where, "key", map->keys[i], names, n, err);
        }
        return 0;
}

/* ---- values ---- */

static int read_text(const struct key *key, const struct node *node, const char *where, char **ret, struct err *err)
{
        bool is_right = node->kind == NODE_SCALAR;

        if (is_right && key->type == KEY_FILE)
                is_right = file_is_beneath(node->scalar);
        else if (is_right && (key->type == KEY_NAME || key->type == KEY_NAMES))
                is_right = text_is_name(node->scalar);
        else if (is_right)
                is_right = node->is_quoted || node->scalar[0] != '\0';
        if (!is_right)
                return err_negative(err_expected(node, key, where, err));
        *ret = strdup(node->scalar);
        return *ret ? 0 : err_set_nomem(err);
}

static int read_bool(const struct key *key, const struct node *node, const char *where, bool *ret, struct err *err)
{
        bool is_true = node->kind == NODE_SCALAR && streq(node->scalar, "true");

        if (!is_true && (node->kind != NODE_SCALAR || !streq(node->scalar, "false")))
                return err_expected(node, key, where, err);
        *ret = is_true;
        return 0;
}

static int read_quantity(const struct key *key, const struct node *node, const char *where, int64_t *ret,
                         struct err *err)
{
        int64_t value = 0, max = key->min == 0 && key->max == 0 ? INT64_MAX : key->max;
        struct err reason = {0};
        int r;

        if (node->kind != NODE_SCALAR)
                return err_expected(node, key, where, err);
        r = unit_parse(key->unit, node->scalar, &value, &reason);
        if (r == -EINVAL)
                return err_expected(node, key, where, err);
        if (r < 0)
                return err_set_at(err, ERR_USAGE, &node->position, "%s: %s", where, reason.text);
        if (value < key->min || value > max) {
                char low[48], high[48];

                if (max == INT64_MAX)
                        return err_set_at(err, ERR_USAGE, &node->position, "%s: %.64s is below %s, the least allowed",
                                          where, node->scalar, unit_format(key->unit, key->min, low));
                return err_set_at(err, ERR_USAGE, &node->position, "%s: %.64s is out of range, expected %s to %s",
                                  where, node->scalar, unit_format(key->unit, key->min, low),
                                  unit_format(key->unit, max, high));
        }
        *ret = value;
        return 0;
}

static int read_choice(const struct key *key, const struct node *node, const char *where, int *ret, struct err *err)
{
        for (int i = 0; node->kind == NODE_SCALAR && key->choices[i]; i++)
                if (streq(node->scalar, key->choices[i])) {
                        *ret = i;
                        return 0;
                }
        return err_expected(node, key, where, err);
}

static int read_names(const struct key *key, const struct node *node, const char *where, struct key_names *out,
                      struct err *err)
{
        if (node->kind != NODE_SEQUENCE)
                return err_expected(node, key, where, err);
        out->names = calloc(MAX(node->n_items, (size_t)1), sizeof(*out->names));
        if (!out->names)
                return err_set_nomem(err);
        for (size_t i = 0; i < node->n_items; i++) {
                const struct node *item = node->items[i];
                int r = read_text(key, item, where, &out->names[out->n], err);

                if (r < 0)
                        return r;
                out->n++;
                for (size_t j = 0; key->type == KEY_NAMES && j < i; j++)
                        if (streq(out->names[i], out->names[j]))
                                return err_set_at(err, ERR_USAGE, &item->position, "%s: \"%s\" stands here twice",
                                                  where, out->names[i]);
        }
        return 0;
}

static int tables_alloc(const struct key_table *table, size_t n, bool has_names, struct key_tables *out)
{
        n = MAX(n, (size_t)1);
        out->entries = calloc(n, table->size);
        out->positions = calloc(n, sizeof(*out->positions));
        out->names = has_names ? calloc(n, sizeof(*out->names)) : NULL;
        return out->entries && out->positions && (out->names || !has_names) ? 0 : -ENOMEM;
}

static int read_tables(const struct key *key, const struct node *map, const char *where, struct key_tables *out,
                       struct err *err)
{
        int r;

        if (map->kind != NODE_MAPPING)
                return err_expected(map, key, where, err);
        if (tables_alloc(key->table, map->n_items, true, out) < 0)
                return err_set_nomem(err);
        for (size_t i = 0; i < map->n_items; i++) {
                char path[WHERE_MAX];

                if (!text_is_name(map->keys[i]))
                        return err_set_at(err, ERR_USAGE, &map->key_positions[i],
                                          "%s: \"%.64s\" is not a name (a-z, 0-9, \".\" and \"-\", at most 64)", where,
                                          map->keys[i]);
                out->names[i] = strdup(map->keys[i]);
                out->positions[i] = map->key_positions[i];
                out->n++;
                if (!out->names[i])
                        return err_set_nomem(err);
                r = key_table_read(key->table, map->items[i], join(where, map->keys[i], path),
                                   (char *)out->entries + i * key->table->size, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

int key_list_read(const struct key_table *table, const struct node *list, const char *where, struct key_tables *out,
                  struct err *err)
{
        size_t n = list->kind == NODE_MAPPING ? 1 : list->n_items;
        int r;

        if (list->kind == NODE_SCALAR) {
                const struct key key = {.type = KEY_LIST};

                return err_expected(list, &key, where, err);
        }
        if (tables_alloc(table, n, false, out) < 0)
                return err_set_nomem(err);
        for (size_t i = 0; i < n; i++) {
                const struct node *item = list->kind == NODE_MAPPING ? list : list->items[i];
                char path[WHERE_MAX];

                snprintf(path, sizeof(path), "%s[%zu]", where, i + 1);
                out->positions[i] = item->position;
                out->n++;
                r = key_table_read(table, item, path, (char *)out->entries + i * table->size, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_value(const struct key *key, const struct node *node, const char *where, void *field, struct err *err)
{
        switch (key->type) {
        case KEY_STRING:
        case KEY_NAME:
        case KEY_FILE:
                return read_text(key, node, where, field, err);
        case KEY_BOOL:
                return read_bool(key, node, where, field, err);
        case KEY_QUANTITY:
                return read_quantity(key, node, where, field, err);
        case KEY_CHOICE:
                return read_choice(key, node, where, field, err);
        case KEY_NAMES:
        case KEY_STRINGS:
                return read_names(key, node, where, field, err);
        case KEY_TABLE:
                return key_table_read(key->table, node, where, field, err);
        case KEY_TABLES:
                return read_tables(key, node, where, field, err);
        case KEY_LIST:
                return key_list_read(key->table, node, where, field, err);
        case KEY_MAP:
                if (node->kind != NODE_MAPPING)
                        return err_expected(node, key, where, err);
                *(const struct node **)field = node;
                return 0;
        case KEY_NODE:
                *(const struct node **)field = node;
                return 0;
        }
        return 0;
}

/* ---- tables ---- */

static int read_table(const struct key_table *table, const struct node *map, bool is_lenient, const char *where,
                      void *out, struct err *err);

static int read_absent(const struct key *key, const char *where, void *field, struct err *err)
{
        struct node fallback = {.kind = NODE_SCALAR, .scalar = (char *)key->fallback};

        if (key->type == KEY_TABLE)
                return read_table(key->table, NULL, true, where, field, err);
        return key->fallback ? read_value(key, &fallback, where, field, err) : 0;
}

static int read_table(const struct key_table *table, const struct node *map, bool is_lenient, const char *where,
                      void *out, struct err *err)
{
        int r;

        if (map && map->kind != NODE_MAPPING) {
                const struct key key = {.type = KEY_TABLE};

                return err_expected(map, &key, *where ? where : table->name, err);
        }
        if (map) {
                r = check_known(table, map, where, err);
                if (r < 0)
                        return r;
        }
        for (const struct key *key = table->keys; key->name; key++) {
                const struct node *node = node_get(map, key->name);
                void *field = (char *)out + key->offset;
                char path[WHERE_MAX];

                if (!node && key->is_required && !is_lenient)
                        return err_missing(map, key, where, err);
                join(where, key->name, path);
                r = node ? read_value(key, node, path, field, err) : read_absent(key, path, field, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

int key_table_read(const struct key_table *table, const struct node *map, const char *where, void *out, struct err *err)
{
        return read_table(table, map, false, where, out, err);
}

void key_tables_done(const struct key_table *table, struct key_tables *tables)
{
        for (size_t i = 0; i < tables->n; i++) {
                key_table_done(table, (char *)tables->entries + i * table->size);
                if (tables->names)
                        free(tables->names[i]);
        }
        free(tables->names);
        free(tables->positions);
        free(tables->entries);
        *tables = (struct key_tables){0};
}

static void done_names(struct key_names *names)
{
        for (size_t i = 0; i < names->n; i++)
                free(names->names[i]);
        free(names->names);
}

void key_table_done(const struct key_table *table, void *out)
{
        for (const struct key *key = table->keys; key->name; key++) {
                void *field = (char *)out + key->offset;

                switch (key->type) {
                case KEY_STRING:
                case KEY_NAME:
                case KEY_FILE:
                        free(*(char **)field);
                        break;
                case KEY_NAMES:
                case KEY_STRINGS:
                        done_names(field);
                        break;
                case KEY_TABLE:
                        key_table_done(key->table, field);
                        break;
                case KEY_TABLES:
                case KEY_LIST:
                        key_tables_done(key->table, field);
                        break;
                default:
                        break;
                }
        }
        memset(out, 0, table->size);
}

int key_table_check(const struct key_table *table, const struct node *map, const char *where, struct err *err)
{
        _cleanup_free_ void *scratch = calloc(1, MAX(table->size, (size_t)1));
        int r;

        if (!scratch)
                return err_set_nomem(err);
        r = key_table_read(table, map, where, scratch, err);
        key_table_done(table, scratch);
        return r;
}

int key_table_files(const struct key_table *table, const struct node *map,
                    int (*fn)(const struct node *file, void *userdata), void *userdata)
{
        int r = 0;

        for (const struct key *key = table->keys; r == 0 && key->name; key++) {
                const struct node *node = node_get(map, key->name);

                if (!node)
                        continue;
                if (key->type == KEY_FILE)
                        r = fn(node, userdata);
                else if (key->type == KEY_TABLE || (key->type == KEY_LIST && node->kind == NODE_MAPPING))
                        r = key_table_files(key->table, node, fn, userdata);
                else if (key->type == KEY_TABLES || key->type == KEY_LIST)
                        for (size_t i = 0; r == 0 && i < node->n_items; i++)
                                r = key_table_files(key->table, node->items[i], fn, userdata);
        }
        return r;
}

/* ---- the reference page ---- */

#define TABLES_SEEN_MAX 64

struct seen {
        const struct key_table *tables[TABLES_SEEN_MAX];
        size_t n;
};

static bool see(struct seen *seen, const struct key_table *table)
{
        for (size_t i = 0; i < seen->n; i++)
                if (seen->tables[i] == table)
                        return false;
        if (seen->n < TABLES_SEEN_MAX)
                seen->tables[seen->n++] = table;
        return true;
}

static void document_key(const struct key *key, struct text *out)
{
        text_addf(out, "| `%s` | ", key->name);
        add_expected(key, out);
        if (key->is_required)
                text_add(out, " | required");
        else if (key->fallback)
                text_addf(out, " | `%s`", key->fallback);
        else
                text_add(out, " | -");
        text_addf(out, " | %s |\n", key->help ? key->help : "");
}

static void document(const struct key_table *table, struct seen *seen, struct text *out)
{
        if (!see(seen, table))
                return;
        text_addf(out, "### %s\n\n%s\n\n| key | value | default | meaning |\n|---|---|---|---|\n", table->name,
                  table->help ? table->help : "");
        if (table->has_kind)
                text_addf(out, "| `kind` | `%s` | required | Which keys the mapping has. |\n", table->name);
        for (const struct key *key = table->keys; key->name; key++)
                document_key(key, out);
        text_add(out, "\n");
        for (const struct key *key = table->keys; key->name; key++)
                if (key->table)
                        document(key->table, seen, out);
}

void key_table_document(const struct key_table *table, struct text *out)
{
        struct seen seen = {0};

        document(table, &seen, out);
}
