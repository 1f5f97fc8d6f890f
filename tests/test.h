/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a unit test starts with: cmocka after the headers that it wants, and a scratch folder. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/file.h"

/* A folder of one test's own, in memory where that is possible (tests sync a lot), removed with all that is in it when
 * the variable goes out of scope:
 *
 *         _cleanup_scratch_ struct scratch scratch = scratch_make();
 */
struct scratch {
        char path[64];
        int fd;
};

static inline struct scratch scratch_make(void)
{
        struct scratch scratch = {.path = "/dev/shm/assay-test-XXXXXX", .fd = -1};

        if (!mkdtemp(scratch.path)) {
                strcpy(scratch.path, "/tmp/assay-test-XXXXXX");
                if (!mkdtemp(scratch.path))
                        fail_msg("cannot make a scratch folder: %m");
        }
        scratch.fd = file_open_dir(AT_FDCWD, scratch.path);
        assert_true(scratch.fd >= 0);
        return scratch;
}

static inline void scratch_remove(struct scratch *scratch)
{
        close_cleanup(&scratch->fd);
        (void)file_remove_tree(AT_FDCWD, scratch->path);
}

#define _cleanup_scratch_ _cleanup_(scratch_remove)

/* scratch_write - a file with the bytes of @text */
static inline void scratch_write(const struct scratch *scratch, const char *name, const char *text)
{
        struct err err = {0};

        if (file_write_atomic(scratch->fd, name, 0644, span_of_text(text), &err) < 0)
                fail_msg("%s", err.text);
}
