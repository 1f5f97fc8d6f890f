/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <errno.h>
#include <stdarg.h>

#include "base/macro.h"

/* Why something could not be done. One table in err.c maps each kind to the exit code of the program. */
enum err_kind {
        ERR_NONE,
        ERR_USAGE,       /* the command line or a manifest is wrong: exit 2 */
        ERR_UNSUPPORTED, /* this host lacks a capability, which the text names: exit 6 */
        ERR_ENVIRONMENT, /* the host is in a state in which it cannot work: exit 1 */
        ERR_DATA,        /* outside bytes (a file, a packet) are malformed: exit 2 */
        ERR_INTEGRITY,   /* an archive or a fact does not check: exit 5 */
        ERR_IO,          /* reading or writing failed: exit 1 */
        ERR_BUG,         /* Assay broke a promise of its own: exit 70 */
};

/* Where in an input something stands. Lines and columns count from 1; line 0 means no position. */
struct position {
        char file[256];
        unsigned line;
        unsigned column;
};

/* A reason for a person. The caller owns it; nothing in it is allocated. It is written by the function that finds the
 * fault and passed up unchanged; err_prefix() adds what a caller knows. */
struct err {
        enum err_kind kind;
        int errnum; /* positive errno, or 0 */
        char text[768];
        struct position position;
};

/* err_set - record a reason
 * @err:     where to; NULL is allowed and records nothing
 * @kind:    what sort of failure
 * @errnum:  positive errno; its description is NOT appended, use err_set_errno() for that
 * @format:  what happened, where, what was expected and what to do
 *
 * Return: -@errnum, or -EINVAL if @errnum is 0, so that a caller can write `return err_set(...)`.
 */
int err_set(struct err *err, enum err_kind kind, int errnum, const char *format, ...) _printf_(4, 5);

/* err_set_errno - as err_set(), and append ": " and the errno's description */
int err_set_errno(struct err *err, enum err_kind kind, int errnum, const char *format, ...) _printf_(4, 5);

/* err_set_at - as err_set(), and record the @position in an input file. Return: -EINVAL. */
int err_set_at(struct err *err, enum err_kind kind, const struct position *position, const char *format, ...)
        _printf_(4, 5);

/* err_set_nomem - record that memory ran out. Return: -ENOMEM. */
int err_set_nomem(struct err *err);

/* err_negative - let the compiler, and what analyses the code, know that @result is negative, as those of the functions
 * above always are; else they follow paths on which a failure is taken for success and an output was never set */
#define err_negative(result)                                                                                           \
        ({                                                                                                             \
                int _negative = (result);                                                                              \
                if (_negative >= 0)                                                                                    \
                        __builtin_unreachable();                                                                       \
                _negative;                                                                                             \
        })

#define err_set(...)       err_negative(err_set(__VA_ARGS__))
#define err_set_errno(...) err_negative(err_set_errno(__VA_ARGS__))
#define err_set_at(...)    err_negative(err_set_at(__VA_ARGS__))
#define err_set_nomem(err) err_negative(err_set_nomem(err))

/* err_prefix - put "@format: " before the recorded reason; does nothing where none is recorded */
void err_prefix(struct err *err, const char *format, ...) _printf_(2, 3);

/* err_exit_code - the exit code of the program for a kind of failure; 0 for ERR_NONE */
int err_exit_code(enum err_kind kind);

/* err_format - the whole message on one line: "file:line:column: text". @buf of @size bytes is always terminated. */
void err_format(const struct err *err, char *buf, size_t size);
