/* SPDX-License-Identifier: Apache-2.0 */
#include "config/node.h"

#include <stdio.h>

#include "base/macro.h"
#include "base/text.h"

/* The tree itself. Its depth is limited by whoever makes it (node-yaml.c, node-json.c; node_merge() makes nothing
 * deeper than its two trees), so that recursion over it is bounded. */

void node_free(struct node *node)
{
        if (!node)
                return;
        for (size_t i = 0; i < node->n_items; i++) {
                node_free(node->items[i]);
                if (node->keys)
                        free(node->keys[i]);
        }
        free(node->items);
        free(node->keys);
        free(node->key_positions);
        free(node->scalar);
        free(node);
}

static struct node *node_new(enum node_kind kind, const struct position *position)
{
        struct node *node = calloc(1, sizeof(*node));

        if (!node)
                return NULL;
        node->kind = kind;
        if (position)
                node->position = *position;
        return node;
}

struct node *node_new_mapping(void)
{
        return node_new(NODE_MAPPING, NULL);
}

struct node *node_new_scalar(const char *scalar, const struct position *position)
{
        _cleanup_node_ struct node *node = node_new(NODE_SCALAR, position);

        if (!node)
                return NULL;
        node->scalar = strdup(scalar);
        return node->scalar ? TAKE_PTR(node) : NULL;
}

/* Makes room for one element more in an array of @n; arrays grow when n is a power of two, so none keeps its size. */
static int array_grow(void *array, size_t n, size_t size)
{
        void **p = array, *grown;

        if (n > 0 && (n & (n - 1)) != 0)
                return 0;
        grown = reallocarray(*p, n == 0 ? 1 : n * 2, size);
        if (!grown)
                return -ENOMEM;
        *p = grown;
        return 0;
}

int node_append(struct node *sequence, struct node *item)
{
        int r = array_grow(&sequence->items, sequence->n_items, sizeof(struct node *));

        if (r < 0)
                return r;
        sequence->items[sequence->n_items++] = item;
        return 0;
}

static size_t node_index(const struct node *mapping, const char *key, size_t len)
{
        for (size_t i = 0; i < mapping->n_items; i++)
                if (strncmp(mapping->keys[i], key, len) == 0 && mapping->keys[i][len] == '\0')
                        return i;
        return SIZE_MAX;
}

/* Adds @item under a key that the mapping does not have. */
static int mapping_append(struct node *mapping, const char *key, const struct position *key_position, struct node *item)
{
        _cleanup_free_ char *copy = strdup(key);
        size_t n = mapping->n_items;

        if (!copy || array_grow(&mapping->items, n, sizeof(struct node *)) < 0 ||
            array_grow(&mapping->keys, n, sizeof(*mapping->keys)) < 0 ||
            array_grow(&mapping->key_positions, n, sizeof(*mapping->key_positions)) < 0)
                return -ENOMEM;
        mapping->items[n] = item;
        mapping->keys[n] = TAKE_PTR(copy);
        mapping->key_positions[n] = key_position ? *key_position : (struct position){0};
        mapping->n_items++;
        return 0;
}

int node_put(struct node *mapping, const char *key, const struct position *key_position, struct node *item)
{
        size_t at = node_index(mapping, key, strlen(key));

        if (at >= mapping->n_items)
                return mapping_append(mapping, key, key_position, item);
        node_free(mapping->items[at]);
        mapping->items[at] = item;
        if (key_position)
                mapping->key_positions[at] = *key_position;
        return 0;
}

void node_remove(struct node *mapping, const char *key)
{
        size_t at = node_index(mapping, key, strlen(key)), after;

        if (at == SIZE_MAX)
                return;
        node_free(mapping->items[at]);
        free(mapping->keys[at]);
        after = --mapping->n_items - at;
        memmove(&mapping->items[at], &mapping->items[at + 1], after * sizeof(struct node *));
        memmove(&mapping->keys[at], &mapping->keys[at + 1], after * sizeof(*mapping->keys));
        memmove(&mapping->key_positions[at], &mapping->key_positions[at + 1], after * sizeof(*mapping->key_positions));
}

struct node *node_copy(const struct node *node)
{
        _cleanup_node_ struct node *copy = node_new(node->kind, &node->position);

        if (!copy)
                return NULL;
        copy->is_quoted = node->is_quoted;
        if (node->scalar) {
                copy->scalar = strdup(node->scalar);
                if (!copy->scalar)
                        return NULL;
        }
        for (size_t i = 0; i < node->n_items; i++) {
                _cleanup_node_ struct node *item = node_copy(node->items[i]);

                if (!item ||
                    (node->kind == NODE_MAPPING ? mapping_append(copy, node->keys[i], &node->key_positions[i], item)
                                                : node_append(copy, item)) < 0)
                        return NULL;
                TAKE_PTR(item);
        }
        return TAKE_PTR(copy);
}

size_t node_count(const struct node *node)
{
        size_t n = 1;

        for (size_t i = 0; i < node->n_items; i++)
                n += node_count(node->items[i]);
        return n;
}

bool node_equal(const struct node *a, const struct node *b)
{
        if (a->kind != b->kind || a->n_items != b->n_items)
                return false;
        if (a->kind == NODE_SCALAR)
                return streq(a->scalar, b->scalar);
        for (size_t i = 0; i < a->n_items; i++) {
                const struct node *other = a->kind == NODE_MAPPING ? node_get(b, a->keys[i]) : b->items[i];

                if (!other || !node_equal(a->items[i], other))
                        return false;
        }
        return true;
}

struct node *node_get(const struct node *mapping, const char *key)
{
        size_t at;

        if (!mapping || mapping->kind != NODE_MAPPING)
                return NULL;
        at = node_index(mapping, key, strlen(key));
        return at == SIZE_MAX ? NULL : mapping->items[at];
}

/* Length of the first step of a dotted path below @mapping: the longest beginning of it that is a key, else all before
 * the first dot. */
static size_t path_step(const struct node *mapping, const char *path)
{
        if (mapping && mapping->kind == NODE_MAPPING)
                for (size_t len = strlen(path); len > 0; len--)
                        if ((path[len] == '.' || path[len] == '\0') && node_index(mapping, path, len) != SIZE_MAX)
                                return len;
        return strcspn(path, ".");
}

struct node *node_at(const struct node *root, const char *path)
{
        const struct node *node = root;

        while (node && node->kind == NODE_MAPPING) {
                size_t len = path_step(node, path), at = node_index(node, path, len);

                if (at == SIZE_MAX)
                        return NULL;
                node = node->items[at];
                if (path[len] == '\0')
                        return (struct node *)node;
                path += len + 1;
        }
        return NULL;
}

const char *node_scalar_at(const struct node *root, const char *path)
{
        const struct node *node = node_at(root, path);

        return node ? node->scalar : NULL;
}

char *node_kind_text(const struct node *node, char buf[static 64])
{
        if (node->kind == NODE_MAPPING)
                snprintf(buf, 64, "a mapping");
        else if (node->kind == NODE_SEQUENCE)
                snprintf(buf, 64, "a sequence");
        else if (node->scalar[0] == '\0' && !node->is_quoted)
                snprintf(buf, 64, "nothing");
        else if (strlen(node->scalar) <= 40)
                snprintf(buf, 64, "\"%s\"", node->scalar);
        else
                snprintf(buf, 64, "\"%.*s...\"", (int)text_utf8_prefix(node->scalar, 40), node->scalar);
        return buf;
}

static void node_clear(struct node *mapping)
{
        while (mapping->n_items > 0)
                node_remove(mapping, mapping->keys[mapping->n_items - 1]);
}

static bool changes_kind(const struct node *into, const struct node *over)
{
        const struct node *old = node_get(into, "kind"), *new = node_get(over, "kind");

        return old && new && old->scalar &&new->scalar && !streq(old->scalar, new->scalar);
}

int node_merge(struct node *into, const struct node *over)
{
        if (changes_kind(into, over))
                node_clear(into);

        for (size_t i = 0; i < over->n_items; i++) {
                struct node *old = node_get(into, over->keys[i]);
                _cleanup_node_ struct node *copy = NULL;
                int r;

                if (old && old->kind == NODE_MAPPING && over->items[i]->kind == NODE_MAPPING) {
                        r = node_merge(old, over->items[i]);
                } else {
                        copy = node_copy(over->items[i]);
                        r = copy ? node_put(into, over->keys[i], &over->key_positions[i], copy) : -ENOMEM;
                        if (r == 0)
                                TAKE_PTR(copy);
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The chain of mappings that holds @scalar at @path; steps follow the keys of @shape where it has them. */
static struct node *chain_new(const struct node *shape, const char *path, const char *scalar,
                              const struct position *position)
{
        size_t len = path_step(shape, path);
        _cleanup_free_ char *key = strndup(path, len);
        _cleanup_node_ struct node *chain = node_new(NODE_MAPPING, position), *item = NULL;

        if (!key || !chain)
                return NULL;
        item = path[len] == '\0' ? node_new_scalar(scalar, position)
                                 : chain_new(node_get(shape, key), path + len + 1, scalar, position);
        if (!item || node_put(chain, key, position, item) < 0)
                return NULL;
        TAKE_PTR(item);
        return TAKE_PTR(chain);
}

/* Whether each step of @path can be taken: none is empty, none leads through something that is no mapping. */
static int path_check(const struct node *root, const char *path, const struct position *position, struct err *err)
{
        const struct node *node = root;
        const char *rest = path;
        unsigned depth = 0;

        for (;;) {
                size_t len = path_step(node, rest);

                if (len == 0 || ++depth > node_limits_default.depth)
                        return err_set_at(err, ERR_USAGE, position,
                                          "\"%s\" is not a path of keys such as workload.duration", path);
                if (node && node->kind != NODE_MAPPING)
                        return err_set_at(err, ERR_USAGE, position, "cannot set \"%s\": \"%.*s\" is not a mapping",
                                          path, (int)(rest - path - 1), path);
                if (rest[len] == '\0')
                        return 0;
                if (node) {
                        size_t at = node_index(node, rest, len);

                        node = at == SIZE_MAX ? NULL : node->items[at];
                }
                rest += len + 1;
        }
}

int node_set(struct node *root, const char *path, const char *scalar, const struct position *position, struct err *err)
{
        _cleanup_node_ struct node *chain = NULL;
        int r;

        r = path_check(root, path, position, err);
        if (r < 0)
                return r;
        chain = chain_new(root, path, scalar, position);
        if (!chain || node_merge(root, chain) < 0)
                return err_set_nomem(err);
        return 0;
}
