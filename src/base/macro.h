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

#define _printf_(fmt, args) __attribute__((format(printf, fmt, args)))

static inline int streq(const char *a, const char *b)
{
        return strcmp(a, b) == 0;
}
