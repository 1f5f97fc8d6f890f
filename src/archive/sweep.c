/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/archive-internal.h"
#include "archive/tree.h"
#include "base/file.h"
#include "base/text.h"

/* The trials that the journal names, as keys of an object. */
static int committed_trials(const struct archive *archive, json_t **ret, struct err *err)
{
        _cleanup_json_ json_t *lines = NULL, *names = json_object();
        json_t *line;
        size_t i;
        int r;

        if (!names)
                return err_set_nomem(err);
        r = archive_journal_read(archive, &lines, err);
        if (r < 0)
                return r;
        json_array_foreach(lines, i, line)
        {
                if (!streq(json_string_value(json_object_get(line, "event")), "trial"))
                        continue;
                if (json_object_set(names, json_string_value(json_object_get(line, "trial")), json_true()) < 0)
                        return err_set_nomem(err);
        }
        *ret = TAKE_PTR(names);
        return 0;
}

/* Whether @path is a temporary file of file_write_atomic(), not inside a trial. */
static bool is_temporary(const char *path)
{
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        size_t len = strlen(name), suffix = strlen(FILE_TEMPORARY_SUFFIX);

        return strncmp(path, ARCHIVE_TRIALS "/", strlen(ARCHIVE_TRIALS "/")) != 0 &&
               strncmp(name, FILE_TEMPORARY_PREFIX, strlen(FILE_TEMPORARY_PREFIX)) == 0 && len > suffix &&
               streq(name + len - suffix, FILE_TEMPORARY_SUFFIX);
}

/* The trial's name where @path is an entry of data/trials itself, else NULL. */
static const char *trial_entry(const char *path)
{
        size_t len = strlen(ARCHIVE_TRIALS "/");

        if (strncmp(path, ARCHIVE_TRIALS "/", len) != 0 || strchr(path + len, '/'))
                return NULL;
        return path + len;
}

static int check_all_there(const struct tree *tree, json_t *committed, struct err *err)
{
        const char *name;
        json_t *value;

        for (size_t i = 0; i < tree->n; i++) {
                name = trial_entry(tree->entries[i].path);
                if (name && S_ISDIR(tree->entries[i].mode))
                        json_object_del(committed, name);
        }
        json_object_foreach(committed, name,
                            value) return err_set(err, ERR_INTEGRITY, ENOENT,
                                                  "the journal names the trial %s, but %s/%s is not there", name,
                                                  ARCHIVE_TRIALS, name);
        return 0;
}

/* Removes the folder @name unless a campaign holds its lock. */
static int sweep_hidden(int parent, const char *name)
{
        _cleanup_close_ int fd = file_open_dir(parent, name);

        if (fd < 0)
                return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? 0 : -errno;
        return file_remove_tree(parent, name);
}

int archive_hidden_sweep(int parent_dirfd)
{
        _cleanup_closedir_ DIR *dir = NULL;
        int fd = file_open_dir(parent_dirfd, "."), r = 0;
        struct dirent *entry;

        if (fd < 0)
                return fd;
        dir = fdopendir(fd);
        if (!dir) {
                close(fd);
                return -errno;
        }
        while (r == 0 && (errno = 0, (entry = readdir(dir))))
                if (strncmp(entry->d_name, ARCHIVE_HIDDEN_PREFIX, strlen(ARCHIVE_HIDDEN_PREFIX)) == 0)
                        r = sweep_hidden(parent_dirfd, entry->d_name);
        return r < 0 ? r : -errno;
}

int archive_trials_sweep(struct archive *archive, struct err *err)
{
        _cleanup_json_ json_t *committed = NULL;
        _cleanup_tree_ struct tree tree = {0};
        int r;

        r = archive_check_writable(archive, err);
        if (r == 0)
                r = committed_trials(archive, &committed, err);
        if (r == 0)
                r = tree_list(archive_dirfd(archive), &tree, err);
        for (size_t i = 0; r == 0 && i < tree.n; i++) {
                const char *path = tree.entries[i].path, *name = trial_entry(path);

                if (name ? json_object_get(committed, name) != NULL : !is_temporary(path))
                        continue;
                r = file_remove_tree(archive_dirfd(archive), path);
                if (r < 0)
                        return err_set_errno(err, ERR_IO, -r, "cannot clear away %s", path);
        }
        return r < 0 ? r : check_all_there(&tree, committed, err);
}
