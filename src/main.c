/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/verbs.h"

static void log_to_stderr(enum log_level level, const char *text, void *userdata)
{
        static const char *const prefixes[] = {"error: ", "warning: ", "", "debug: "};

        fprintf(stderr, "%s%s\n", prefixes[level], text);
}

int main(int argc, char **argv)
{
        log_set_sink(log_to_stderr, getenv("ASSAY_DEBUG") ? LOG_DEBUG : LOG_INFO, NULL);
        return verb_main(verbs, argc, argv);
}
