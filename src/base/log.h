/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/macro.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* Where messages go. Library folders call log_*() and print nothing themselves; the program sets a sink once, before
 * any child is forked. Without a sink messages are dropped. */
typedef void (*log_sink_fn)(enum log_level level, const char *text, void *userdata);

/* log_set_sink - let messages up to @most_verbose go to @sink, called with @userdata; NULL drops them */
void log_set_sink(log_sink_fn sink, enum log_level most_verbose, void *userdata);

/* log_set_tap - let messages of every level go to @tap too, while there is a trial or the like to note them for; NULL
 * ends that. A child that is forked meanwhile writes into its own copy, which is lost. */
void log_set_tap(log_sink_fn tap, void *userdata);

void log_message(enum log_level level, const char *format, ...) _printf_(2, 3);

#define log_error(...)   log_message(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_message(LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_message(LOG_INFO, __VA_ARGS__)
#define log_debug(...)   log_message(LOG_DEBUG, __VA_ARGS__)
