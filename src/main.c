/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/verbs.h"

static void log_to_stderr(enum log_level level, const char *text, void *userdata)
{
        static const char *const prefixes[] = {"error: ", "warning: ", "", "debug: "};

        fprintf(stderr, "%s%s\n", prefixes[level], text);
}

/* A standard descriptor that is closed would be given to the next file, which messages would then be written into. What
 * takes its place cannot be written to, so that it is noticed that a result does not arrive. */
static void fill_standard_descriptors(void)
{
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
                        (void)!open(fd == STDIN_FILENO ? "/dev/null" : "/", O_RDONLY);
}

int main(int argc, char **argv)
{
        fill_standard_descriptors();
        log_set_sink(log_to_stderr, getenv("ASSAY_DEBUG") ? LOG_DEBUG : LOG_INFO, NULL);
        return verb_main(verbs, argc, argv);
}
