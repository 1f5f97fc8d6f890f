/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "bpfvm/fault.h"

/* Map definitions, as a program names them by index. Maps that exist at run time are in store.h. */

enum map_kind {
        MAP_ARRAY, /* keys 0..max_entries-1 of 4 bytes; every entry exists; its value's address never changes */
        MAP_HASH,  /* keys of any bytes; lookup may give null */
        MAP_RING,  /* records of bytes from the program to its host; no key, no value; max_entries is its bytes */
        MAP_KINDS
};

#define MAP_NAME_MAX  64
#define MAP_KEY_MAX   512                 /* bytes of a key */
#define MAP_BYTES_MAX (UINT64_C(1) << 30) /* by map_bytes() */

struct map_def {
        char name[MAP_NAME_MAX];
        enum map_kind kind;
        uint32_t key_size;    /* bytes; array 4, hash 1 to MAP_KEY_MAX, ring 0 */
        uint32_t value_size;  /* bytes; ring 0 */
        uint32_t max_entries; /* entries; ring: bytes, a power of two from 4096 on */
        bool is_read_only;    /* programs may not write its values (.rodata) */
        bool is_global;       /* a section of global variables: an array with one entry, its address taken directly */
        struct span initial;  /* first bytes of entry 0; the rest is zero; borrowed from the object */
};

/* map_kind_name - "array", "hash" or "ring" */
const char *map_kind_name(enum map_kind kind);

/* map_check - whether a definition is one that its kind allows
 *
 * Return: 0; 1 with FAULT_MAP in @fault (slot FAULT_NO_SLOT).
 */
int map_check(const struct map_def *def, struct fault *fault);

/* map_bytes - memory that a map takes at run time, in bytes: values and keys each rounded up to 8, and a hash's chains.
 * Saturates for a definition that map_check() refuses. */
uint64_t map_bytes(const struct map_def *def);
