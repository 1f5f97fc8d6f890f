/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "config/node.h"
#include "config/unit.h"

/* One table of keys says what a mapping may hold. It drives reading into a struct, every error message, and the
 * generated reference page (docs/formats/manifest.md). */

enum key_type {
        KEY_STRING,   /* char *, on the heap */
        KEY_NAME,     /* char *, on the heap; text_is_name() */
        KEY_FILE,     /* char *, on the heap: a file below the manifest's folder; file_is_beneath() */
        KEY_BOOL,     /* bool: true or false */
        KEY_QUANTITY, /* int64_t in the base unit of @unit, within @min and @max */
        KEY_CHOICE,   /* int: index into @choices */
        KEY_NAMES,    /* struct key_names: a sequence of names, none twice */
        KEY_STRINGS,  /* struct key_names: a sequence of strings */
        KEY_TABLE,    /* an embedded struct read by @table */
        KEY_TABLES, /* struct key_tables: a mapping from names to structs of @table->size, in the order of the input */
        KEY_LIST, /* struct key_tables without names: a sequence of mappings; one mapping counts as a sequence of it */
        KEY_MAP,  /* const struct node *, borrowed from the tree: a mapping, read by somebody else */
        KEY_NODE, /* const struct node *, borrowed from the tree: read by somebody else */
};

struct key_names {
        size_t n;
        char **names;
};

/* The entries of a KEY_TABLES mapping: names[i] belongs to the struct at (char *)entries + i * table->size. */
struct key_tables {
        size_t n;
        char **names; /* NULL of a KEY_LIST */
        struct position *positions;
        void *entries;
};

struct key {
        const char *name;
        enum key_type type;
        size_t offset; /* of the field in the struct */
        bool is_required;
        const char *fallback; /* as it would be written; NULL: the field stays zero */
        enum unit unit;
        int64_t min, max;           /* of a quantity; both 0: any value of 0 or more */
        const char *const *choices; /* ended by NULL */
        const struct key_table *table;
        const char *expected; /* of a KEY_MAP or KEY_NODE: what the reference page says of its value */
        const char *help;     /* one sentence for the reference page */
};

struct key_table {
        const char *name; /* heading of the reference page: "uplink" */
        const char *help;
        size_t size;
        bool has_kind;          /* the mapping has a key `kind` too, at which the caller has looked */
        const struct key *keys; /* ended by one without name */
};

/* key_table_read - read a mapping into a struct
 * @table:  its keys
 * @map:    the mapping; NULL counts as empty
 * @where:  what the mapping is, for errors: "boundary.uplink"; "" for the whole input
 * @out:    @table->size bytes, zeroed by the caller; key_table_done() releases what was read, after an error too
 *
 * A KEY_TABLE that is absent and not required gets its keys' defaults, and none of its keys is required. An unknown key
 * is an error that names the nearest known one. Errors carry the position of the value.
 * Return: 0, or a negative errno with the reason (kind usage) in @err.
 */
int key_table_read(const struct key_table *table, const struct node *map, const char *where, void *out,
                   struct err *err);

/* key_table_done - release what key_table_read() allocated, and zero the struct */
void key_table_done(const struct key_table *table, void *out);

/* key_list_read - read a sequence of mappings (or one mapping) as a KEY_LIST does; key_tables_done() releases @out */
int key_list_read(const struct key_table *table, const struct node *list, const char *where, struct key_tables *out,
                  struct err *err);

void key_tables_done(const struct key_table *table, struct key_tables *tables);

/* key_table_check - key_table_read() and key_table_done(): only whether the mapping is right */
int key_table_check(const struct key_table *table, const struct node *map, const char *where, struct err *err);

/* key_table_files - call @fn for each file that a mapping names, as its table says (KEY_FILE); the mapping has been
 * checked. Return: 0, or the first result of @fn that is not 0. */
int key_table_files(const struct key_table *table, const struct node *map,
                    int (*fn)(const struct node *file, void *userdata), void *userdata);

/* key_unknown - the error for a key (or a name) that nobody knows
 * @position:     where it stands
 * @where, @key:  as in key_table_read()
 * @what:         "key", "arm"
 * @names, @n:    what is known: the nearest is named where one is near, else all of them
 *
 * Return: -EINVAL.
 */
int key_unknown(const struct position *position, const char *where, const char *what, const char *key,
                const char *const *names, size_t n, struct err *err);

/* key_table_document - add the reference of @table, and of the tables under it, as Markdown to @out: a heading of level
 * three each, what it is, and a row for each key */
void key_table_document(const struct key_table *table, struct text *out);
