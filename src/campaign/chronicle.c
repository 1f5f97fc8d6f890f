/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/chronicle.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"

static void add_line(struct chronicle *c, const char *prefix, const char *line)
{
        size_t most = strlen(prefix) + 4 * strlen(line); /* each byte may become \xNN */
        char seconds[48];

        if (c->text.len + most + sizeof(seconds) > CHRONICLE_BYTES_MAX) {
                c->left_out++;
                return;
        }
        number_format_scaled(clock_now_ns(CLOCK_MONOTONIC) - c->began_ns, NSEC_PER_SEC, 6, seconds);
        text_addf(&c->text, "%10s s  %s", seconds, prefix);
        text_add_visible(&c->text, line, strlen(line));
        text_add(&c->text, "\n");
}

static void on_message(enum log_level level, const char *text, void *userdata)
{
        static const char *const prefixes[] = {"error: ", "warning: ", "message: ", "detail: "};

        add_line(userdata, prefixes[level], text);
}

void chronicle_open(struct chronicle *c)
{
        *c = (struct chronicle){.began_ns = clock_now_ns(CLOCK_MONOTONIC)};
        log_set_tap(on_message, c);
}

void chronicle_close(struct chronicle *c)
{
        log_set_tap(NULL, NULL);
        text_done(&c->text);
}

void chronicle_note(struct chronicle *c, const char *format, ...)
{
        _cleanup_text_ struct text line = {0};
        va_list args;

        va_start(args, format);
        text_addv(&line, format, args);
        va_end(args);
        if (line.failed)
                c->left_out++;
        else
                add_line(c, "", line.data ? line.data : "");
}

int chronicle_write(const struct chronicle *c, int dirfd, struct err *err)
{
        _cleanup_text_ struct text whole = {0};

        text_add_bytes(&whole, c->text.data, c->text.len);
        if (c->left_out > 0)
                text_addf(&whole, "%" PRIu64 " more line%s left out\n", c->left_out,
                          c->left_out == 1 ? " was" : "s were");
        if (whole.failed || c->text.failed)
                return err_set_nomem(err);
        return file_write_atomic(dirfd, CHRONICLE_NAME, 0644, span_of(whole.data, whole.len), err);
}
