/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/macro.h"
#include "base/text.h"

static int tree_add(struct tree *tree, const char *folder, const char *name, int dirfd)
{
        struct tree_entry *entry;
        struct stat st;
        char *path;

        if (tree->n == TREE_ENTRIES_MAX)
                return -E2BIG;
        if (tree->n == tree->allocated) {
                size_t more = tree->allocated ? 2 * tree->allocated : 64;
                struct tree_entry *entries = realloc(tree->entries, more * sizeof(*entries));

                if (!entries)
                        return -ENOMEM;
                tree->entries = entries;
                tree->allocated = more;
        }
        path = *folder ? text_format("%s/%s", folder, name) : strdup(name);
        if (!path)
                return -ENOMEM;

        entry = &tree->entries[tree->n++];
        *entry = (struct tree_entry){.path = path};
        if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                entry->errnum = errno;
        else
                *entry = (struct tree_entry){.path = path, .mode = st.st_mode, .size = (uint64_t)st.st_size};
        return 0;
}

/* Adds what is in @folder ("" for @dirfd itself). Return: 0; a positive errno where the folder cannot be listed; a
 * negative errno where that ends the whole. */
static int tree_add_folder(struct tree *tree, int dirfd, const char *folder)
{
        _cleanup_closedir_ DIR *dir = NULL;
        struct dirent *item;
        int fd, r;

        fd = file_open_beneath(dirfd, *folder ? folder : ".");
        if (fd < 0)
                return fd == -ENOMEM ? fd : -fd;
        dir = fdopendir(fd);
        if (!dir) {
                r = errno;
                close(fd);
                return r == ENOMEM ? -r : r;
        }
        while (errno = 0, (item = readdir(dir))) {
                if (streq(item->d_name, ".") || streq(item->d_name, ".."))
                        continue;
                r = tree_add(tree, folder, item->d_name, fd);
                if (r < 0)
                        return r;
        }
        return errno;
}

static int compare_paths(const void *a, const void *b)
{
        return strcmp(((const struct tree_entry *)a)->path, ((const struct tree_entry *)b)->path);
}

int tree_list(int dirfd, struct tree *ret, struct err *err)
{
        _cleanup_tree_ struct tree tree = {0};
        int r;

        r = tree_add_folder(&tree, dirfd, "");
        if (r > 0)
                return err_set_errno(err, ERR_IO, r, "cannot list the folder");
        /* the list grows while it is walked: folders found on the way are entries further on */
        for (size_t i = 0; r == 0 && i < tree.n; i++) {
                if (!S_ISDIR(tree.entries[i].mode))
                        continue;
                r = tree_add_folder(&tree, dirfd, tree.entries[i].path);
                if (r > 0) {
                        tree.entries[i].errnum = r;
                        r = 0;
                }
        }
        if (r == -E2BIG)
                return err_set(err, ERR_DATA, E2BIG, "the folder holds more than %d files", TREE_ENTRIES_MAX);
        if (r < 0)
                return err_set_nomem(err);

        if (tree.n > 0)
                qsort(tree.entries, tree.n, sizeof(*tree.entries), compare_paths);
        *ret = tree;
        tree = (struct tree){0};
        return 0;
}

void tree_done(struct tree *tree)
{
        for (size_t i = 0; i < tree->n; i++)
                free(tree->entries[i].path);
        free(tree->entries);
        *tree = (struct tree){0};
}
