/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static struct {
        log_sink_fn sink;
        enum log_level most_verbose;
        void *userdata;
} target;

void log_set_sink(log_sink_fn sink, enum log_level most_verbose, void *userdata)
{
        target.sink = sink;
        target.most_verbose = most_verbose;
        target.userdata = userdata;
}

void log_message(enum log_level level, const char *format, ...)
{
        char text[1024];
        va_list args;

        if (!target.sink || level > target.most_verbose)
                return;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        target.sink(level, text, target.userdata);
}
