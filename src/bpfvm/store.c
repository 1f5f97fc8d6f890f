/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/macro.h"

#define NO_ENTRY UINT32_MAX

/* In front of each record of a ring. A filler takes up what is left before the end of the buffer. */
struct ring_header {
        uint32_t len;
        uint32_t is_filler;
};

struct map_state {
        const struct map_def *def;

        /* Entries: value @i at values + i * value_stride, key at keys + i * key_stride. */
        uint8_t *values, *keys;
        size_t value_stride, key_stride;

        /* A hash: chains of entries from buckets, and of free entries. */
        uint32_t *buckets, *next;
        uint32_t bucket_mask, first_free;
        uint64_t seed;

        /* A ring: bytes ever written and ever released; positions are these modulo its size. */
        _Atomic uint64_t written, released;
};

struct store {
        uint32_t n;
        struct map_state maps[];
};

static size_t round_up_8(size_t n)
{
        return (n + 7) & ~(size_t)7;
}

void store_free(struct store *store)
{
        if (!store)
                return;
        for (uint32_t i = 0; i < store->n; i++) {
                free(store->maps[i].values);
                free(store->maps[i].keys);
                free(store->maps[i].buckets);
                free(store->maps[i].next);
        }
        free(store);
}

static void hash_clear(struct map_state *map)
{
        for (uint32_t i = 0; i <= map->bucket_mask; i++)
                map->buckets[i] = NO_ENTRY;
        for (uint32_t i = 0; i < map->def->max_entries; i++)
                map->next[i] = i + 1 < map->def->max_entries ? i + 1 : NO_ENTRY;
        map->first_free = 0;
}

static void map_clear(struct map_state *map)
{
        const struct map_def *def = map->def;

        if (def->kind == MAP_RING) {
                atomic_store(&map->written, 0);
                atomic_store(&map->released, 0);
                return;
        }
        memset(map->values, 0, map->value_stride * def->max_entries);
        if (def->kind == MAP_HASH)
                hash_clear(map);
        else if (def->initial.len > 0)
                memcpy(map->values, def->initial.data, def->initial.len);
}

static int hash_alloc(struct map_state *map)
{
        uint32_t n_buckets = 1;

        while (n_buckets < map->def->max_entries)
                n_buckets *= 2;
        map->bucket_mask = n_buckets - 1;
        map->key_stride = round_up_8(map->def->key_size);
        map->keys = calloc(map->def->max_entries, map->key_stride);
        map->buckets = calloc(n_buckets, sizeof(*map->buckets));
        map->next = calloc(map->def->max_entries, sizeof(*map->next));
        if (!map->keys || !map->buckets || !map->next)
                return -ENOMEM;

        /* The seed only spreads keys that were chosen to collide; without randomness the map still works. */
        if (getrandom(&map->seed, sizeof(map->seed), GRND_NONBLOCK) != sizeof(map->seed))
                map->seed = (uintptr_t)map;
        return 0;
}

static int map_alloc(struct map_state *map, const struct map_def *def)
{
        map->def = def;
        map->value_stride = def->kind == MAP_RING ? 1 : round_up_8(def->value_size);
        map->values = calloc(def->max_entries, map->value_stride);
        if (!map->values)
                return -ENOMEM;
        if (def->kind == MAP_HASH) {
                int r = hash_alloc(map);
                if (r < 0)
                        return r;
                hash_clear(map);
        }
        if (def->initial.len > 0)
                memcpy(map->values, def->initial.data, def->initial.len);
        return 0;
}

int store_new(const struct map_def *defs, uint32_t n, struct store **ret, struct err *err)
{
        _cleanup_store_ struct store *store = calloc(1, sizeof(*store) + n * sizeof(store->maps[0]));

        uint64_t bytes = 0;

        if (!store)
                return err_set_nomem(err);
        store->n = n;
        for (uint32_t i = 0; i < n; i++)
                bytes += map_bytes(&defs[i]);
        if (bytes > STORE_BYTES_MAX)
                return err_set(err, ERR_DATA, E2BIG,
                               "the maps take %" PRIu64 " bytes together; at most %" PRIu64 " are allowed", bytes,
                               STORE_BYTES_MAX);
        for (uint32_t i = 0; i < n; i++)
                if (map_alloc(&store->maps[i], &defs[i]) < 0)
                        return err_set_nomem(err);

        *ret = TAKE_PTR(store);
        return 0;
}

void store_clear(struct store *store)
{
        for (uint32_t i = 0; i < store->n; i++)
                map_clear(&store->maps[i]);
}

/* Mixes eight bytes at a time by a 128-bit product. */
static uint32_t hash_bucket(const struct map_state *map, const uint8_t *key)
{
        uint64_t h = map->seed ^ map->def->key_size;
        size_t len = map->def->key_size;

        for (size_t i = 0; i < len; i += 8) {
                uint64_t word = 0;
                __uint128_t product;

                memcpy(&word, key + i, MIN(len - i, (size_t)8));
                product = (__uint128_t)(h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
                h = (uint64_t)(product >> 64) ^ (uint64_t)product;
        }
        return (uint32_t)(h ^ h >> 32) & map->bucket_mask;
}

static uint32_t hash_find(const struct map_state *map, const void *key, uint32_t bucket)
{
        for (uint32_t i = map->buckets[bucket]; i != NO_ENTRY; i = map->next[i])
                if (memcmp(map->keys + i * map->key_stride, key, map->def->key_size) == 0)
                        return i;
        return NO_ENTRY;
}

static uint8_t *value_at(const struct map_state *map, uint32_t entry)
{
        return map->values + (size_t)entry * map->value_stride;
}

uint8_t *store_lookup(struct store *store, uint32_t number, const void *key)
{
        struct map_state *map = &store->maps[number];
        uint32_t entry;

        switch (map->def->kind) {
        case MAP_ARRAY:
                memcpy(&entry, key, sizeof(entry));
                return entry < map->def->max_entries ? value_at(map, entry) : NULL;
        case MAP_HASH:
                entry = hash_find(map, key, hash_bucket(map, key));
                return entry != NO_ENTRY ? value_at(map, entry) : NULL;
        default:
                return NULL;
        }
}

static int hash_insert(struct map_state *map, const void *key, uint32_t bucket, uint32_t *ret)
{
        uint32_t entry = map->first_free;

        if (entry == NO_ENTRY)
                return -E2BIG;
        map->first_free = map->next[entry];
        memcpy(map->keys + entry * map->key_stride, key, map->def->key_size);
        map->next[entry] = map->buckets[bucket];
        map->buckets[bucket] = entry;
        *ret = entry;
        return 0;
}

int store_update(struct store *store, uint32_t number, const void *key, const void *value, uint64_t flags)
{
        struct map_state *map = &store->maps[number];
        uint32_t entry;
        int r;

        if (flags > STORE_EXISTING || map->def->kind == MAP_RING)
                return -EINVAL;
        if (map->def->kind == MAP_ARRAY) {
                memcpy(&entry, key, sizeof(entry));
                if (entry >= map->def->max_entries)
                        return -E2BIG;
                if (flags == STORE_NEW)
                        return -EEXIST;
        } else {
                uint32_t bucket = hash_bucket(map, key);

                entry = hash_find(map, key, bucket);
                if (entry != NO_ENTRY && flags == STORE_NEW)
                        return -EEXIST;
                if (entry == NO_ENTRY && flags == STORE_EXISTING)
                        return -ENOENT;
                if (entry == NO_ENTRY) {
                        r = hash_insert(map, key, bucket, &entry);
                        if (r < 0)
                                return r;
                }
        }
        /* the value may be that very entry, or the entry before its key was deleted */
        memmove(value_at(map, entry), value, map->def->value_size);
        return 0;
}

int store_delete(struct store *store, uint32_t number, const void *key)
{
        struct map_state *map = &store->maps[number];
        uint32_t *link;

        if (map->def->kind != MAP_HASH)
                return -EINVAL;

        link = &map->buckets[hash_bucket(map, key)];
        while (*link != NO_ENTRY) {
                uint32_t entry = *link;

                if (memcmp(map->keys + entry * map->key_stride, key, map->def->key_size) == 0) {
                        *link = map->next[entry];
                        map->next[entry] = map->first_free;
                        map->first_free = entry;
                        return 0;
                }
                link = &map->next[entry];
        }
        return -ENOENT;
}

static struct ring_header *ring_at(const struct map_state *map, uint64_t position)
{
        return (struct ring_header *)(void *)(map->values + (position & (map->def->max_entries - 1)));
}

int store_ring_output(struct store *store, uint32_t number, const void *data, size_t len)
{
        struct map_state *map = &store->maps[number];
        uint64_t size = map->def->max_entries, written, released, left, filler;
        size_t need;

        if (map->def->kind != MAP_RING)
                return -EINVAL;
        /* with half the ring at most, a record and the filler before it fit into an empty one at any position */
        if (len > size / 2 - sizeof(struct ring_header))
                return -E2BIG;

        written = atomic_load_explicit(&map->written, memory_order_relaxed);
        released = atomic_load_explicit(&map->released, memory_order_acquire);
        need = sizeof(struct ring_header) + round_up_8(len);
        left = size - (written & (size - 1));
        filler = left < need ? left : 0;
        if (filler + need > size - (written - released))
                return -EAGAIN;

        if (filler > 0)
                *ring_at(map, written) =
                        (struct ring_header){.len = (uint32_t)(filler - sizeof(struct ring_header)), .is_filler = 1};
        written += filler;
        *ring_at(map, written) = (struct ring_header){.len = (uint32_t)len};
        if (len > 0)
                memcpy(ring_at(map, written) + 1, data, len);
        atomic_store_explicit(&map->written, written + need, memory_order_release);
        return 0;
}

static uint64_t record_size(const struct ring_header *header)
{
        return sizeof(*header) + round_up_8(header->len);
}

int store_ring_next(struct store *store, uint32_t number, struct span *ret)
{
        struct map_state *map = &store->maps[number];
        uint64_t released = atomic_load_explicit(&map->released, memory_order_relaxed);

        if (map->def->kind != MAP_RING)
                return -EINVAL;
        while (released != atomic_load_explicit(&map->written, memory_order_acquire)) {
                const struct ring_header *header = ring_at(map, released);

                if (!header->is_filler) {
                        *ret = span_of(header + 1, header->len);
                        return 1;
                }
                released += record_size(header);
                atomic_store_explicit(&map->released, released, memory_order_release);
        }
        return 0;
}

void store_ring_release(struct store *store, uint32_t number)
{
        struct map_state *map = &store->maps[number];
        uint64_t released = atomic_load_explicit(&map->released, memory_order_relaxed);

        atomic_store_explicit(&map->released, released + record_size(ring_at(map, released)), memory_order_release);
}

const struct map_def *store_def(const struct store *store, uint32_t map)
{
        return store->maps[map].def;
}

uint32_t store_count(const struct store *store)
{
        return store->n;
}

uint64_t store_handle(const struct store *store, uint32_t map)
{
        return (uintptr_t)&store->maps[map];
}

uint32_t store_find_handle(const struct store *store, uint64_t handle)
{
        uint64_t distance = handle - (uintptr_t)store->maps;

        if (distance % sizeof(store->maps[0]) != 0 || distance / sizeof(store->maps[0]) >= store->n)
                return store->n;
        return (uint32_t)(distance / sizeof(store->maps[0]));
}

uint8_t *store_entry_at(const struct store *store, uint32_t number, uint64_t address)
{
        const struct map_state *map = &store->maps[number];
        uint64_t distance = address - (uintptr_t)map->values;
        size_t entry = distance / map->value_stride;

        if (map->def->kind == MAP_RING || entry >= map->def->max_entries ||
            distance % map->value_stride >= map->def->value_size)
                return NULL;
        return value_at(map, (uint32_t)entry);
}
