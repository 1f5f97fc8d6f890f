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
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/macro.h"

/* A folder of one test's own, in memory where that is possible (tests sync a lot), removed with all that is in it when
 * the variable goes out of scope:
 *
 *         _cleanup_scratch_ struct scratch scratch = scratch_make();
 */
struct scratch {
        char path[64];
        int fd;
};

/* The folders that are in use: a failed assertion leaves a test by a jump, past its cleanup, so they go at exit. */
#define SCRATCH_MAX 16
static char scratch_used[SCRATCH_MAX][sizeof(((struct scratch *)NULL)->path)];
static pid_t scratch_owner;

static inline void scratch_sweep(void)
{
        for (size_t i = 0; getpid() == scratch_owner && i < SCRATCH_MAX; i++)
                if (scratch_used[i][0])
                        (void)file_remove_tree(AT_FDCWD, scratch_used[i]);
}

/* Puts @to in the place of @from among the folders in use; "" is a free place. */
static inline void scratch_note(const char *from, const char *to)
{
        for (size_t i = 0; i < SCRATCH_MAX; i++)
                if (streq(scratch_used[i], from)) {
                        strcpy(scratch_used[i], to);
                        return;
                }
}

static inline struct scratch scratch_make(void)
{
        struct scratch scratch = {.path = "/dev/shm/assay-test-XXXXXX", .fd = -1};

        if (!mkdtemp(scratch.path)) {
                strcpy(scratch.path, "/tmp/assay-test-XXXXXX");
                if (!mkdtemp(scratch.path))
                        fail_msg("cannot make a scratch folder: %m");
        }
        if (!scratch_owner) {
                scratch_owner = getpid();
                (void)atexit(scratch_sweep);
        }
        scratch_note("", scratch.path);
        scratch.fd = file_open_dir(AT_FDCWD, scratch.path);
        assert_true(scratch.fd >= 0);
        return scratch;
}

static inline void scratch_remove(struct scratch *scratch)
{
        close_cleanup(&scratch->fd);
        (void)file_remove_tree(AT_FDCWD, scratch->path);
        scratch_note(scratch->path, "");
}

#define _cleanup_scratch_ _cleanup_(scratch_remove)

/* scratch_write - a file with the bytes of @text */
static inline void scratch_write(const struct scratch *scratch, const char *name, const char *text)
{
        struct err err = {0};

        if (file_write_atomic(scratch->fd, name, 0644, span_of_text(text), &err) < 0)
                fail_msg("%s", err.text);
}
