/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

/* What is below a folder, as a list. */
struct tree_entry {
        char *path;    /* relative, parts joined by "/" */
        mode_t mode;   /* as of lstat; 0 where that failed */
        uint64_t size; /* of a regular file, in bytes */
        int errnum;    /* why it could not be examined, or listed where it is a folder; 0 if it could */
};

struct tree {
        size_t n, allocated;
        struct tree_entry *entries;
};

/* More entries than any archive has; a folder with more is refused, so that memory is bounded. */
#define TREE_ENTRIES_MAX 1000000

/* tree_list - every file and folder below @dirfd, sorted by the bytes of their paths; links are listed, not followed
 *
 * What cannot be examined is an entry that says so. Return: 0, and tree_done() releases @ret; or a negative errno.
 */
int tree_list(int dirfd, struct tree *ret, struct err *err);

void tree_done(struct tree *tree);

#define _cleanup_tree_ _cleanup_(tree_done)
