/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes that somebody else owns. Parsers of outside bytes take a span, check every length against it, and return
 * spans into it. */
struct span {
        const uint8_t *data;
        size_t len;
};

static inline struct span span_of(const void *data, size_t len)
{
        return (struct span){.data = data, .len = len};
}

static inline struct span span_of_text(const char *text)
{
        return span_of(text, strlen(text));
}

/* span_sub - the part of @s from @offset with @len bytes; false (and @ret untouched) if it is not all there */
static inline bool span_sub(struct span s, size_t offset, size_t len, struct span *ret)
{
        if (offset > s.len || len > s.len - offset)
                return false;
        *ret = span_of(offset > 0 ? s.data + offset : s.data, len); /* an empty span may have no address */
        return true;
}

static inline bool span_equal(struct span a, struct span b)
{
        return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Network byte order, at any alignment. The caller has checked the length. */
static inline uint16_t get_be16(const uint8_t *p)
{
        return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t get_be32(const uint8_t *p)
{
        return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t get_be64(const uint8_t *p)
{
        return (uint64_t)get_be32(p) << 32 | get_be32(p + 4);
}

static inline void put_be16(uint8_t *p, uint16_t v)
{
        p[0] = (uint8_t)(v >> 8);
        p[1] = (uint8_t)v;
}

static inline void put_be32(uint8_t *p, uint32_t v)
{
        put_be16(p, (uint16_t)(v >> 16));
        put_be16(p + 2, (uint16_t)v);
}

static inline void put_be64(uint8_t *p, uint64_t v)
{
        put_be32(p, (uint32_t)(v >> 32));
        put_be32(p + 4, (uint32_t)v);
}

/* Little-endian bytes, at any alignment. */
static inline uint16_t get_le16(const uint8_t *p)
{
        return (uint16_t)(p[1] << 8 | p[0]);
}

static inline uint32_t get_le32(const uint8_t *p)
{
        return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static inline uint64_t get_le64(const uint8_t *p)
{
        return (uint64_t)get_le32(p + 4) << 32 | get_le32(p);
}

static inline void put_le16(uint8_t *p, uint16_t v)
{
        p[0] = (uint8_t)v;
        p[1] = (uint8_t)(v >> 8);
}

static inline void put_le32(uint8_t *p, uint32_t v)
{
        put_le16(p, (uint16_t)v);
        put_le16(p + 2, (uint16_t)(v >> 16));
}

static inline void put_le64(uint8_t *p, uint64_t v)
{
        put_le32(p, (uint32_t)v);
        put_le32(p + 4, (uint32_t)(v >> 32));
}
