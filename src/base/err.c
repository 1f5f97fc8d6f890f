/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdio.h>

/* The functions themselves; the header wraps their results. */
#undef err_set
#undef err_set_errno
#undef err_set_at
#undef err_set_nomem

static const int exit_codes[] = {
        [ERR_NONE] = 0, [ERR_USAGE] = 2,     [ERR_UNSUPPORTED] = 6, [ERR_ENVIRONMENT] = 1,
        [ERR_DATA] = 2, [ERR_INTEGRITY] = 5, [ERR_IO] = 1,          [ERR_BUG] = 70,
};

static _printf_(4, 0) void err_record(struct err *err, enum err_kind kind, int errnum, const char *format, va_list args)
{
        if (!err)
                return;

        err->kind = kind;
        err->errnum = errnum;
        err->position = (struct position){0};
        vsnprintf(err->text, sizeof(err->text), format, args);
}

int err_set(struct err *err, enum err_kind kind, int errnum, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        err_record(err, kind, errnum, format, args);
        va_end(args);
        return errnum > 0 ? -errnum : -EINVAL;
}

int err_set_errno(struct err *err, enum err_kind kind, int errnum, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        err_record(err, kind, errnum, format, args);
        va_end(args);
        if (err) {
                size_t used = strlen(err->text);
                const char *description = strerrordesc_np(errnum); /* unlike strerror(), the same in every locale */

                snprintf(err->text + used, sizeof(err->text) - used, ": %s",
                         description ? description : "unknown error");
        }
        return errnum > 0 ? -errnum : -EINVAL;
}

int err_set_at(struct err *err, enum err_kind kind, const struct position *position, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        err_record(err, kind, EINVAL, format, args);
        va_end(args);
        if (err && position)
                err->position = *position;
        return -EINVAL;
}

int err_set_nomem(struct err *err)
{
        return err_set(err, ERR_ENVIRONMENT, ENOMEM, "out of memory");
}

void err_prefix(struct err *err, const char *format, ...)
{
        char prefix[256], text[sizeof(err->text)];
        va_list args;

        if (!err || err->kind == ERR_NONE)
                return;

        va_start(args, format);
        vsnprintf(prefix, sizeof(prefix), format, args);
        va_end(args);
        memcpy(text, err->text, sizeof(text));
        snprintf(err->text, sizeof(err->text), "%s: %.*s", prefix, (int)(sizeof(text) - sizeof(prefix)), text);
}

int err_exit_code(enum err_kind kind)
{
        return (size_t)kind < ARRAY_SIZE(exit_codes) ? exit_codes[kind] : exit_codes[ERR_BUG];
}

void err_format(const struct err *err, char *buf, size_t size)
{
        const struct position *at = &err->position;

        if (at->line > 0)
                snprintf(buf, size, "%s:%u:%u: %s", at->file, at->line, at->column, err->text);
        else if (at->file[0])
                snprintf(buf, size, "%s: %s", at->file, err->text);
        else
                snprintf(buf, size, "%s", err->text);
}
