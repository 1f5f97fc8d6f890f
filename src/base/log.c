/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static struct {
        log_sink_fn sink;
        enum log_level most_verbose;
        void *userdata;
        log_sink_fn tap;
        void *tap_userdata;
} target;

void log_set_sink(log_sink_fn sink, enum log_level most_verbose, void *userdata)
{
        target.sink = sink;
        target.most_verbose = most_verbose;
        target.userdata = userdata;
}

void log_set_tap(log_sink_fn tap, void *userdata)
{
        target.tap = tap;
        target.tap_userdata = userdata;
}

void log_message(enum log_level level, const char *format, ...)
{
        bool is_shown = target.sink && level <= target.most_verbose;
        char text[1024];
        va_list args;

        if (!is_shown && !target.tap)
                return;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        if (is_shown)
                target.sink(level, text, target.userdata);
        if (target.tap)
                target.tap(level, text, target.tap_userdata);
}
