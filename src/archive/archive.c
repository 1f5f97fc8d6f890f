/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/archive-internal.h"
#include "archive/tree.h"
#include "base/file.h"
#include "base/text.h"

#define TRIAL_NAME_MAX 200 /* with what a partial folder's name adds, within NAME_MAX */

struct archive {
        int fd;
        char *path; /* for people */
        bool is_locked;
};

static int archive_new(int fd, const char *path, struct archive **ret, struct err *err)
{
        struct archive *archive = calloc(1, sizeof(*archive));

        if (archive)
                archive->path = strdup(path);
        if (!archive || !archive->path) {
                free(archive);
                return err_set_nomem(err);
        }
        archive->fd = fd;
        *ret = archive;
        return 0;
}

static int make_layout(int parent_dirfd, const char *name, struct archive **ret, struct err *err)
{
        _cleanup_archive_ struct archive *archive = NULL;
        _cleanup_close_ int fd = file_open_dir(parent_dirfd, name);
        int r;

        if (fd < 0)
                return err_set_errno(err, ERR_IO, -fd, "cannot open the new folder %s", name);
        r = archive_new(fd, name, &archive, err);
        if (r < 0)
                return r;
        TAKE_FD(fd);
        r = archive_lock(archive, err);
        if (r < 0)
                return r;
        if (mkdirat(archive->fd, "data", 0755) < 0 || fsync(archive->fd) < 0)
                return err_set_errno(err, ERR_IO, errno, "cannot make %s/data", name);
        *ret = TAKE_PTR(archive);
        return 0;
}

static int set_taken(const char *name, struct err *err)
{
        return err_set(err, ERR_USAGE, EEXIST,
                       "%s is there already: choose another output folder, remove it, or go on with it by --resume",
                       name);
}

int archive_create(int parent_dirfd, const char *name, struct archive **ret, struct err *err)
{
        _cleanup_close_ int parent = openat(parent_dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r;

        if (parent < 0)
                return err_set_errno(err, ERR_IO, errno, "cannot open the folder for archives");
        if (mkdirat(parent, name, 0755) < 0) {
                if (errno != EEXIST)
                        return err_set_errno(err, ERR_IO, errno, "cannot make the archive %s", name);
                return set_taken(name, err);
        }
        r = make_layout(parent, name, ret, err);
        if (r == 0 && fsync(parent) < 0) {
                r = err_set_errno(err, ERR_IO, errno, "cannot sync the folder of %s", name);
                archive_free(*ret);
                *ret = NULL;
        }
        if (r < 0)
                (void)file_remove_tree(parent, name);
        return r;
}

static void hidden_name(const char *name, char hidden[static NAME_MAX + 1])
{
        snprintf(hidden, NAME_MAX + 1, ARCHIVE_HIDDEN_PREFIX "%s", name);
}

int archive_prepare(int parent_dirfd, const char *name, struct archive **ret, struct err *err)
{
        char hidden[NAME_MAX + 1];
        int r;

        r = archive_hidden_sweep(parent_dirfd);
        if (r < 0)
                return err_set_errno(err, ERR_IO, -r, "cannot clear away what an earlier campaign left");
        hidden_name(name, hidden);
        return archive_create(parent_dirfd, hidden, ret, err);
}

int archive_publish(struct archive *archive, int parent_dirfd, const char *name, struct err *err)
{
        _cleanup_free_ char *path = strdup(name);
        _cleanup_close_ int parent = -1;
        char hidden[NAME_MAX + 1];

        if (!path)
                return err_set_nomem(err);
        hidden_name(name, hidden);
        if (faccessat(parent_dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return set_taken(name, err);
        parent = openat(parent_dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (parent < 0 || renameat(parent, hidden, parent, name) < 0 || fsync(parent) < 0)
                return err_set_errno(err, ERR_IO, errno, "cannot give the archive %s its name", name);
        free(archive->path);
        archive->path = TAKE_PTR(path);
        return 0;
}

int archive_abandon(int parent_dirfd, const char *name)
{
        char hidden[NAME_MAX + 1];

        hidden_name(name, hidden);
        return file_remove_tree(parent_dirfd, hidden);
}

int archive_open(int parent_dirfd, const char *path, struct archive **ret, struct err *err)
{
        _cleanup_close_ int fd = openat(parent_dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), data = -1;
        int r;

        if (fd < 0)
                return err_set_errno(err, errno == ENOENT || errno == ENOTDIR ? ERR_USAGE : ERR_IO, errno,
                                     "cannot open the archive %s", path);
        data = file_open_dir(fd, "data");
        if (data < 0)
                return err_set_errno(err, ERR_DATA, -data, "%s is not an archive: it has no folder data", path);
        r = archive_new(fd, path, ret, err);
        if (r == 0)
                TAKE_FD(fd);
        return r;
}

void archive_free(struct archive *archive)
{
        if (!archive)
                return;
        close(archive->fd);
        free(archive->path);
        free(archive);
}

int archive_dirfd(const struct archive *archive)
{
        return archive->fd;
}

bool archive_is_finished(const struct archive *archive)
{
        return faccessat(archive->fd, BAG_TAG_MANIFEST, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int cut_journal(struct archive *archive)
{
        _cleanup_close_ int data = file_open_dir(archive->fd, "data"), fd = -1;

        if (data < 0)
                return data == -ENOENT ? 0 : data; /* a new archive */
        fd = openat(data, "journal.jsonl", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        return journal_cut(fd);
}

int archive_lock(struct archive *archive, struct err *err)
{
        int r;

        if (flock(archive->fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK)
                        return err_set_errno(err, ERR_IO, errno, "cannot lock %s", archive->path);
                return err_set(err, ERR_ENVIRONMENT, EBUSY, "%s is in use: another campaign is writing to it",
                               archive->path);
        }
        /* a finished archive is not touched, and may be on a medium that cannot be */
        r = archive_is_finished(archive) ? 0 : cut_journal(archive);
        if (r < 0)
                return err_set_errno(err, ERR_IO, -r, "cannot mend the end of %s/%s", archive->path, ARCHIVE_JOURNAL);
        archive->is_locked = true;
        return 0;
}

static int check_locked(const struct archive *archive, struct err *err)
{
        return archive->is_locked ? 0 : err_set(err, ERR_BUG, EPERM, "%s is not locked", archive->path);
}

int archive_check_writable(const struct archive *archive, struct err *err)
{
        int r = check_locked(archive, err);

        if (r == 0 && archive_is_finished(archive))
                return err_set(err, ERR_BUG, EROFS, "%s is finished: its digests would not agree any more",
                               archive->path);
        return r;
}

/* Opens the folder that @path is in, below @dirfd, making what is not there yet, and syncs each folder that gets a new
 * one. *@ret_name is the last part of @path. Return: a descriptor or a negative errno. */
static int make_parents(int dirfd, const char *path, const char **ret_name)
{
        _cleanup_close_ int fd = file_open_dir(dirfd, ".");
        const char *slash;

        if (fd < 0)
                return fd;
        for (; (slash = strchr(path, '/')); path = slash + 1) {
                _cleanup_free_ char *part = strndup(path, (size_t)(slash - path));
                bool is_new;
                int next;

                if (!part)
                        return -ENOMEM;
                is_new = mkdirat(fd, part, 0755) == 0;
                if ((!is_new && errno != EEXIST) || (is_new && fsync(fd) < 0))
                        return -errno;
                next = file_open_dir(fd, part);
                if (next < 0)
                        return next;
                close(fd);
                fd = next;
        }
        *ret_name = path;
        return TAKE_FD(fd);
}

int archive_write(struct archive *archive, const char *path, struct span data, struct err *err)
{
        bool is_attestation = streq(path, ARCHIVE_ATTESTATION);
        _cleanup_close_ int folder = -1;
        const char *name = NULL;
        int r;

        r = is_attestation ? check_locked(archive, err) : archive_check_writable(archive, err);
        if (r < 0)
                return r;
        if (!is_attestation && (strncmp(path, "data/", 5) != 0 || !file_is_beneath(path)))
                return err_set(err, ERR_BUG, EINVAL, "\"%s\" is not a path below data/", path);
        folder = make_parents(archive->fd, path, &name);
        if (folder < 0)
                return err_set_errno(err, ERR_IO, -folder, "cannot make the folder of %s", path);
        return file_write_atomic(folder, name, 0644, data, err);
}

int archive_write_json(struct archive *archive, const char *path, const json_t *value, struct err *err)
{
        _cleanup_free_ char *text = json_format(value);

        if (!text)
                return err_set_nomem(err);
        return archive_write(archive, path, span_of_text(text), err);
}

int archive_journal_append(struct archive *archive, const json_t *line, struct err *err)
{
        const char *event = json_string_value(json_object_get(line, "event"));
        int r;

        if (!event || streq(event, "trial"))
                return err_set(err, ERR_BUG, EINVAL, "a line of the journal needs an event, and not \"trial\"");
        r = archive_check_writable(archive, err);
        return r < 0 ? r : journal_append(archive->fd, line, err);
}

bool archive_trial_name_is_valid(const char *name)
{
        size_t len = strlen(name);

        return len > 0 && len <= TRIAL_NAME_MAX && name[0] != '.' && name[0] != '-' &&
               strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") == len;
}

/* Opens data/trials, making it, and gives the name that the folder of @name has while it is partial. */
static int open_trials(struct archive *archive, const char *name, char partial[static NAME_MAX + 1], struct err *err)
{
        const char *rest;
        int fd, r;

        r = archive_check_writable(archive, err);
        if (r < 0)
                return r;
        if (!archive_trial_name_is_valid(name))
                return err_set(err, ERR_BUG, EINVAL, "\"%s\" cannot be the name of a trial", name);
        snprintf(partial, NAME_MAX + 1, ".%s.partial", name);
        fd = make_parents(archive->fd, ARCHIVE_TRIALS "/", &rest);
        return fd < 0 ? err_set_errno(err, ERR_IO, -fd, "cannot make %s", ARCHIVE_TRIALS) : fd;
}

int archive_trial_begin(struct archive *archive, const char *name, struct err *err)
{
        _cleanup_close_ int trials = -1;
        char partial[NAME_MAX + 1];
        int fd, r;

        trials = open_trials(archive, name, partial, err);
        if (trials < 0)
                return trials;
        if (faccessat(trials, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return err_set(err, ERR_BUG, EEXIST, "the trial %s was committed before", name);
        r = file_remove_tree(trials, partial);
        if (r < 0)
                return err_set_errno(err, ERR_IO, -r, "cannot clear away %s/%s", ARCHIVE_TRIALS, partial);
        fd = file_make_dir(trials, partial, 0755);
        return fd < 0 ? err_set_errno(err, ERR_IO, -fd, "cannot make %s/%s", ARCHIVE_TRIALS, partial) : fd;
}

/* Syncs all files and folders below @dirfd, and itself. */
static int sync_tree(int dirfd, struct err *err)
{
        _cleanup_tree_ struct tree tree = {0};
        int r;

        r = tree_list(dirfd, &tree, err);
        for (size_t i = 0; r == 0 && i < tree.n; i++) {
                _cleanup_close_ int fd = file_open_beneath(dirfd, tree.entries[i].path);

                if (fd < 0)
                        r = err_set_errno(err, ERR_IO, -fd, "cannot open %s", tree.entries[i].path);
                else if (fsync(fd) < 0)
                        r = err_set_errno(err, ERR_IO, errno, "cannot sync %s", tree.entries[i].path);
        }
        if (r == 0 && fsync(dirfd) < 0)
                r = err_set_errno(err, ERR_IO, errno, "cannot sync its folder");
        return r;
}

static int commit_folder(int trials, const char *partial, const char *name, struct err *err)
{
        _cleanup_close_ int fd = file_open_dir(trials, partial);
        int r;

        if (fd < 0)
                return err_set_errno(err, ERR_IO, -fd, "cannot open %s/%s", ARCHIVE_TRIALS, partial);
        r = sync_tree(fd, err);
        if (r < 0)
                return r;
        if (renameat(trials, partial, trials, name) < 0 || fsync(trials) < 0)
                return err_set_errno(err, ERR_IO, errno, "cannot rename the folder");
        return 0;
}

int archive_trial_commit(struct archive *archive, const char *name, const json_t *line, struct err *err)
{
        _cleanup_json_ json_t *whole_line = json_copy((json_t *)line);
        _cleanup_close_ int trials = -1;
        char partial[NAME_MAX + 1];
        int r;

        if (!json_is_object(line))
                return err_set(err, ERR_BUG, EINVAL, "the journal line of %s is not an object", name);
        if (!whole_line || json_object_set_new(whole_line, "event", json_string("trial")) < 0 ||
            json_object_set_new(whole_line, "trial", json_string(name)) < 0)
                return err_set_nomem(err);
        trials = open_trials(archive, name, partial, err);
        if (trials < 0)
                return trials;
        r = commit_folder(trials, partial, name, err);
        if (r == 0)
                r = journal_append(archive->fd, whole_line, err);
        if (r < 0)
                err_prefix(err, "cannot commit the trial %s", name);
        return r;
}

int archive_trial_open(const struct archive *archive, const char *name, struct err *err)
{
        _cleanup_free_ char *path = text_format("%s/%s/", ARCHIVE_TRIALS, name); /* the last "/": only a folder */
        int fd;

        if (!path)
                return err_set_nomem(err);
        if (!archive_trial_name_is_valid(name))
                return err_set(err, ERR_DATA, EINVAL, "\"%s\" cannot be the name of a trial", name);
        fd = file_open_beneath(archive->fd, path);
        return fd < 0 ? err_set_errno(err, ERR_DATA, -fd, "cannot open the trial %s", path) : fd;
}
