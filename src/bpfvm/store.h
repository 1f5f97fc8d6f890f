/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/span.h"
#include "bpfvm/map.h"

/* The maps of an object at run time. All memory is allocated when a store is made; nothing later allocates, and the
 * address of a value stays valid as long as the store (after its key is deleted it may come to hold another key's
 * value). One thread at a time, but for rings: one producer and one consumer may run at once. */

struct store;

#define STORE_BYTES_MAX (UINT64_C(1) << 30) /* of all maps of a store, by map_bytes() */

/* What a program and its host do with flags of an update; numbers as in the Linux kernel. */
enum store_flag { STORE_ANY = 0, STORE_NEW = 1, STORE_EXISTING = 2 };

/* store_new - maps for checked definitions, with their initial values
 * @defs: @n of them; must live as long as the store
 *
 * Return: 0; -E2BIG if they take more than STORE_BYTES_MAX; -ENOMEM.
 */
int store_new(const struct map_def *defs, uint32_t n, struct store **ret, struct err *err);

void store_free(struct store *store);
DEFINE_CLEANUP(struct store *, store_free)
#define _cleanup_store_ _cleanup_(store_free_cleanup)

/* store_lookup - the value under @key (key_size bytes) of array or hash number @map, or NULL */
uint8_t *store_lookup(struct store *store, uint32_t map, const void *key);

/* store_update - copy @value (value_size bytes) under @key
 *
 * Return: 0; -EEXIST or -ENOENT by @flags; -E2BIG if a hash is full or an array's index too large; -EINVAL for other
 * flags or a ring.
 */
int store_update(struct store *store, uint32_t map, const void *key, const void *value, uint64_t flags);

/* store_delete - Return: 0; -ENOENT; -EINVAL for an array or a ring, whose entries always exist or do not at all. */
int store_delete(struct store *store, uint32_t map, const void *key);

/* store_clear - back to the initial values: hashes and rings empty, arrays as after store_new() */
void store_clear(struct store *store);

/* store_ring_output - append a record of @len bytes
 *
 * Return: 0; -EAGAIN if it does not fit now; -E2BIG if it takes more than half the ring; -EINVAL for another map.
 */
int store_ring_output(struct store *store, uint32_t map, const void *data, size_t len);

/* store_ring_next - the oldest record of a ring, borrowed until store_ring_release()
 *
 * Return: 1 with @ret; 0 if the ring is empty; -EINVAL for another map.
 */
int store_ring_next(struct store *store, uint32_t map, struct span *ret);

/* store_ring_release - give back the record that store_ring_next() returned last */
void store_ring_release(struct store *store, uint32_t map);

/* store_def, store_count - the definitions */
const struct map_def *store_def(const struct store *store, uint32_t map);
uint32_t store_count(const struct store *store);

/* store_handle - what a program sees as the handle of a map: an address that it never dereferences. store_find_handle -
 * the map with that handle; store_count() if there is none. */
uint64_t store_handle(const struct store *store, uint32_t map);
uint32_t store_find_handle(const struct store *store, uint64_t handle);

/* store_entry_at - the whole value that @address lies in, if it lies in a value of map number @map; NULL otherwise */
uint8_t *store_entry_at(const struct store *store, uint32_t map, uint64_t address);
