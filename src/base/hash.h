/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* FNV-1a of 64 bits (Fowler, Noll and Vo), to find things by. Whoever chooses what is hashed can make two of them meet,
 * so it is for tables whose chains may grow, and never tells whether two things are the same. */

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* hash_bytes - go on from @hash, at first HASH_START, over @len bytes */
static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t len)
{
        const uint8_t *bytes = data;

        for (size_t i = 0; i < len; i++)
                hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
        return hash;
}
