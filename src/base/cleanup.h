/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ownership: variables marked with one of these release what they hold when they go out of scope; TAKE_PTR() and
 * TAKE_FD() hand it on instead. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

/* Defines the function that a cleanup attribute calls, for a destructor that takes a pointer and accepts NULL. */
#define DEFINE_CLEANUP(type, destructor)                                                                               \
        static inline void destructor##_cleanup(type *p)                                                               \
        {                                                                                                              \
                destructor(*p);                                                                                        \
        }

static inline void free_cleanup(void *p)
{
        free(*(void **)p);
}

static inline void close_cleanup(int *fd)
{
        if (*fd >= 0) {
                int saved = errno;
                close(*fd);
                errno = saved;
        }
}

static inline void fclose_cleanup(FILE **f)
{
        if (*f)
                fclose(*f);
}

static inline void closedir_cleanup(DIR **d)
{
        if (*d)
                closedir(*d);
}

#define _cleanup_free_     _cleanup_(free_cleanup)
#define _cleanup_close_    _cleanup_(close_cleanup)
#define _cleanup_fclose_   _cleanup_(fclose_cleanup)
#define _cleanup_closedir_ _cleanup_(closedir_cleanup)

#define TAKE_PTR(p)                                                                                                    \
        ({                                                                                                             \
                typeof(p) *_take = &(p);                                                                               \
                typeof(p) _taken = *_take;                                                                             \
                *_take = NULL;                                                                                         \
                _taken;                                                                                                \
        })

#define TAKE_FD(fd)                                                                                                    \
        ({                                                                                                             \
                int *_take = &(fd);                                                                                    \
                int _taken = *_take;                                                                                   \
                *_take = -1;                                                                                           \
                _taken;                                                                                                \
        })
