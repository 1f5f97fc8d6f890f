/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "config/node.h"

static json_t *mapping_to_json(const struct node *node)
{
        _cleanup_json_ json_t *object = json_object();

        for (size_t i = 0; object && i < node->n_items; i++)
                if (json_object_set_new(object, node->keys[i], node_to_json(node->items[i])) < 0)
                        return NULL;
        return TAKE_PTR(object);
}

static json_t *sequence_to_json(const struct node *node)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < node->n_items; i++)
                if (json_array_append_new(array, node_to_json(node->items[i])) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

json_t *node_to_json(const struct node *node)
{
        switch (node->kind) {
        case NODE_MAPPING:
                return mapping_to_json(node);
        case NODE_SEQUENCE:
                return sequence_to_json(node);
        default:
                return json_string(node->scalar);
        }
}

static int from_json(const json_t *json, const struct position *position, size_t levels, struct node **ret,
                     struct err *err);

/* Reads one item of an object (under @key) or of an array (@key is NULL) into @node. */
static int item_from_json(struct node *node, const char *key, const json_t *json, size_t levels, struct err *err)
{
        _cleanup_node_ struct node *item = NULL;
        int r;

        r = from_json(json, &node->position, levels, &item, err);
        if (r < 0)
                return r;
        r = key ? node_put(node, key, &node->position, item) : node_append(node, item);
        if (r < 0)
                return err_set_nomem(err);
        TAKE_PTR(item);
        return 0;
}

static int container_from_json(struct node *node, const json_t *json, size_t levels, struct err *err)
{
        const char *key;
        json_t *value;
        size_t i;
        int r;

        if (levels == 0)
                return err_set(err, ERR_DATA, EINVAL, "%s: a configuration nested deeper than %zu levels",
                               node->position.file, node_limits_default.depth);
        json_object_foreach((json_t *)json, key, value)
        {
                r = item_from_json(node, key, value, levels - 1, err);
                if (r < 0)
                        return r;
        }
        json_array_foreach(json, i, value)
        {
                r = item_from_json(node, NULL, value, levels - 1, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int from_json(const json_t *json, const struct position *position, size_t levels, struct node **ret,
                     struct err *err)
{
        _cleanup_node_ struct node *node = NULL;
        int r;

        if (!json_is_string(json) && !json_is_object(json) && !json_is_array(json))
                return err_set(err, ERR_DATA, EINVAL, "%s: a configuration holds objects, arrays and strings only",
                               position->file);

        node = json_is_string(json) ? node_new_scalar(json_string_value(json), position) : node_new_mapping();
        if (!node)
                return err_set_nomem(err);
        node->position = *position;
        if (json_is_string(json)) {
                node->is_quoted = node->scalar[0] == '\0';
        } else {
                node->kind = json_is_array(json) ? NODE_SEQUENCE : NODE_MAPPING;
                r = container_from_json(node, json, levels, err);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(node);
        return 0;
}

int node_from_json(const json_t *json, const char *name, struct node **ret, struct err *err)
{
        struct position position = {0};

        snprintf(position.file, sizeof(position.file), "%s", name);
        return from_json(json, &position, node_limits_default.depth, ret, err);
}
