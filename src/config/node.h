/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/span.h"

/* A configuration as a tree of mappings, sequences and scalars, each with its place in the input, before any key has a
 * meaning. Anchors and aliases, tags, directives and multiple documents are refused: none is needed, and an alias can
 * make a small file large. */

enum node_kind { NODE_SCALAR, NODE_SEQUENCE, NODE_MAPPING };

struct node {
        enum node_kind kind;
        struct position position;
        char *scalar;   /* the text of a scalar, without its quotes; NULL for the others */
        bool is_quoted; /* "" is an empty text where nothing at all is a value that was left out */
        size_t n_items;
        struct node **items; /* of a sequence or mapping */
        char **keys;         /* of a mapping: the name of each item, in the order of the input */
        struct position *key_positions;
};

struct node_limits {
        size_t bytes; /* of the input */
        size_t depth; /* levels of mappings and sequences */
        size_t nodes;
        size_t keys; /* in one mapping */
};

/* 1 MiB, 32 levels, 20,000 nodes, 1,000 keys in a mapping */
extern const struct node_limits node_limits_default;

/* node_parse - read one YAML 1.2 document
 * @text:    the input; must be UTF-8, a byte order mark in front of it is skipped
 * @name:    what to call the input in positions
 * @limits:  NULL for node_limits_default
 * @ret:     the tree; node_free() releases it
 *
 * Duplicate keys, anchors, aliases, tags, directives, non-scalar keys, control characters (line feeds and tabs in a
 * scalar's text among them) and input past the limits are errors with line and column. An empty document is an empty
 * mapping. Return: 0, or a negative errno with the reason (kind usage) in @err.
 */
int node_parse(struct span text, const char *name, const struct node_limits *limits, struct node **ret,
               struct err *err);

void node_free(struct node *node);

DEFINE_CLEANUP(struct node *, node_free)
#define _cleanup_node_ _cleanup_(node_free_cleanup)

/* node_new_mapping - an empty mapping without position; NULL if memory ran out */
struct node *node_new_mapping(void);

/* node_new_scalar - a plain scalar; NULL if memory ran out. @position may be NULL. */
struct node *node_new_scalar(const char *scalar, const struct position *position);

/* node_put - add @item under @key to a mapping, which takes it over, in the place of what the key had
 * @key_position: may be NULL
 *
 * Return: 0 or -ENOMEM; then @item still belongs to the caller.
 */
int node_put(struct node *mapping, const char *key, const struct position *key_position, struct node *item);

/* node_append - add @item to a sequence, which takes it over. Return: 0 or -ENOMEM; then it is still the caller's. */
int node_append(struct node *sequence, struct node *item);

/* node_remove - release the value of @key, if the mapping has it */
void node_remove(struct node *mapping, const char *key);

/* node_copy - a deep copy; NULL if memory ran out */
struct node *node_copy(const struct node *node);

/* node_count - how many nodes the tree has, itself included */
size_t node_count(const struct node *node);

/* node_equal - whether two trees say the same: positions, quotes and the order of keys do not matter */
bool node_equal(const struct node *a, const struct node *b);

/* node_get - the value of @key in a mapping; NULL if @mapping is NULL, no mapping, or has no such key */
struct node *node_get(const struct node *mapping, const char *key);

/* node_at - the value at a dotted path such as "boundary.uplink.rate"; NULL if there is none. A key that holds dots
 * itself ("slices.v1.2.rate") is found before its parts are. */
struct node *node_at(const struct node *root, const char *path);

/* node_scalar_at - the scalar at a dotted path; NULL if there is none */
const char *node_scalar_at(const struct node *root, const char *path);

/* node_kind_text - for errors: "a mapping", "a sequence", "\"x\"", "nothing"
 * @buf: at least 64 bytes; a longer text is cut
 *
 * Return: @buf.
 */
char *node_kind_text(const struct node *node, char buf[static 64]);

/* node_merge - lay @over over @into
 *
 * A mapping merges key by key; anything else replaces. Where @over changes the scalar `kind` of a mapping, the other
 * keys that the mapping had are dropped first. @over is copied. Return: 0 or -ENOMEM.
 */
int node_merge(struct node *into, const struct node *over);

/* node_set - merge a scalar at a dotted path, making mappings on the way: what `--set a.b=c` does
 * @position: of the scalar, for later errors; may be NULL
 *
 * Return: 0, or a negative errno with the reason in @err (a part of the path is a scalar or a sequence, or is empty).
 */
int node_set(struct node *root, const char *path, const char *scalar, const struct position *position, struct err *err);

/* node_to_json - the tree as JSON: objects, arrays, and every scalar as a string; a new reference, NULL if memory ran
 * out */
json_t *node_to_json(const struct node *node);

/* node_from_json - the tree of such JSON, without lines
 * @name: what to call the input in positions
 *
 * Return: 0, or a negative errno with a reason for JSON that node_to_json() does not write (kind data).
 */
int node_from_json(const json_t *json, const char *name, struct node **ret, struct err *err);
