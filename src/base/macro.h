/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define MIN(a, b)                                                                                                      \
        ({                                                                                                             \
                typeof(a) _a = (a);                                                                                    \
                typeof(b) _b = (b);                                                                                    \
                _a < _b ? _a : _b;                                                                                     \
        })

#define MAX(a, b)                                                                                                      \
        ({                                                                                                             \
                typeof(a) _a = (a);                                                                                    \
                typeof(b) _b = (b);                                                                                    \
                _a > _b ? _a : _b;                                                                                     \
        })

/* The structure of type @type whose member @member is at @pointer. */
#define CONTAINER_OF(pointer, type, member)                                                                            \
        ({                                                                                                             \
                typeof(((type *)0)->member) *_member = (pointer);                                                      \
                (type *)(void *)((char *)_member - offsetof(type, member));                                            \
        })

#define _printf_(fmt, args) __attribute__((format(printf, fmt, args)))

static inline int streq(const char *a, const char *b)
{
        return strcmp(a, b) == 0;
}
