/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/map.h"

#include <inttypes.h>

#include "base/macro.h"

#define RING_LEAST 4096

const char *map_kind_name(enum map_kind kind)
{
        static const char *const names[MAP_KINDS] = {"array", "hash", "ring"};

        return kind >= 0 && kind < MAP_KINDS ? names[kind] : "unknown";
}

static uint64_t round_up_8(uint64_t n)
{
        return (n + 7) & ~UINT64_C(7);
}

uint64_t map_bytes(const struct map_def *def)
{
        uint64_t entry = round_up_8(def->value_size), bytes;

        if (def->kind == MAP_HASH)
                entry += round_up_8(def->key_size) + 3 * sizeof(uint32_t); /* its chain, and up to two buckets */
        if (def->kind == MAP_RING)
                return def->max_entries;
        return __builtin_mul_overflow(entry, def->max_entries, &bytes) ? UINT64_MAX : bytes;
}

static int check_ring(const struct map_def *def, struct fault *fault)
{
        uint32_t size = def->max_entries;

        if (def->key_size != 0 || def->value_size != 0)
                return fault_set(fault, FAULT_MAP, FAULT_NO_SLOT,
                                 "map %s: a ring has no key and no value, so key_size and value_size are 0", def->name);
        if (size < RING_LEAST || (size & (size - 1)) != 0)
                return fault_set(fault, FAULT_MAP, FAULT_NO_SLOT,
                                 "map %s: a ring of %" PRIu32 " bytes; allowed: a power of two from %d on", def->name,
                                 size, RING_LEAST);
        return 0;
}

static int check_keyed(const struct map_def *def, struct fault *fault)
{
        if (def->kind == MAP_ARRAY && def->key_size != 4)
                return fault_set(fault, FAULT_MAP, FAULT_NO_SLOT, "map %s: key_size %" PRIu32 "; an array's is 4",
                                 def->name, def->key_size);
        if (def->key_size == 0 || def->key_size > MAP_KEY_MAX)
                return fault_set(fault, FAULT_MAP, FAULT_NO_SLOT, "map %s: key_size %" PRIu32 "; allowed: 1 to %d",
                                 def->name, def->key_size, MAP_KEY_MAX);
        if (def->value_size == 0 || def->max_entries == 0)
                return fault_set(fault, FAULT_MAP, FAULT_NO_SLOT,
                                 "map %s: value_size %" PRIu32 " and max_entries %" PRIu32 "; neither may be 0",
                                 def->name, def->value_size, def->max_entries);
        if (def->is_global && (def->kind != MAP_ARRAY || def->max_entries != 1))
                return fault_set(fault, FAULT_MAP, FAULT_NO_SLOT, "map %s: global variables are an array of one entry",
                                 def->name);
        if (def->initial.len > def->value_size || (def->initial.len > 0 && def->kind != MAP_ARRAY))
                return fault_set(fault, FAULT_MAP, FAULT_NO_SLOT,
                                 "map %s: %zu initial bytes; only an array has them, at most value_size (%" PRIu32 ")",
                                 def->name, def->initial.len, def->value_size);
        return 0;
}

int map_check(const struct map_def *def, struct fault *fault)
{
        int r;

        if (def->kind < 0 || def->kind >= MAP_KINDS)
                return fault_set(fault, FAULT_MAP, FAULT_NO_SLOT, "map %s: kind %d is none", def->name, (int)def->kind);

        r = def->kind == MAP_RING ? check_ring(def, fault) : check_keyed(def, fault);
        if (r)
                return r;
        if (map_bytes(def) > MAP_BYTES_MAX)
                return fault_set(fault, FAULT_MAP, FAULT_NO_SLOT, "map %s: more than %" PRIu64 " bytes", def->name,
                                 MAP_BYTES_MAX);
        return 0;
}
