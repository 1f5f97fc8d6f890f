/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

#define CGROUPS        "/sys/fs/cgroup"
#define MOUNTINFO_MAX  (16 * 1024 * 1024)
#define KEPT_PATHS_MAX (1 + 2 * SANDBOX_PATHS_MAX)
#define SHIELD         (MS_NOSUID | MS_NODEV)

static int mount_failed(struct err *err, const char *what, const char *where)
{
        return err_set_errno(err, errno == EPERM ? ERR_UNSUPPORTED : ERR_ENVIRONMENT, errno,
                             "cannot mount %s on %s inside the sandbox", what, where);
}

static int mount_tmpfs(const char *where, unsigned long flags, const char *options, struct err *err)
{
        return mount("tmpfs", where, "tmpfs", SHIELD | flags, options) < 0 ? mount_failed(err, "a tmpfs", where) : 0;
}

bool files_is_within(const char *path, const char *folder)
{
        size_t len = strlen(folder);

        return strncmp(path, folder, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

/* Creates the folders that lead to @path; what is there already stays. */
static int make_parents(const char *path, struct err *err)
{
        char part[PATH_MAX];

        for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
                if (mkdir(part, 0755) < 0 && errno != EEXIST)
                        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot create %s inside the sandbox", part);
        }
        return 0;
}

static int write_file(const char *path, const char *text, struct err *err)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
        int r = fd < 0 ? -errno : file_write_all(fd, text, strlen(text));

        return r < 0 ? err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot write %s inside the sandbox", path) : 0;
}

/* ---- folders of the host that are covered, and what in them is shown all the same ---- */

struct kept {
        size_t n;
        struct {
                const char *path;
                int tree_fd; /* a copy of the mounts there, -1 where it is not below a covered folder */
        } items[KEPT_PATHS_MAX];
};

static void kept_done(struct kept *kept)
{
        for (size_t i = 0; i < kept->n; i++)
                close_cleanup(&kept->items[i].tree_fd);
        kept->n = 0;
}

#define _cleanup_kept_ _cleanup_(kept_done)

/* Only what lies below /tmp: who works there expects to find it. In /run are other programs' sockets. */
static int keep(struct kept *kept, const char *path, bool is_read_only, struct err *err)
{
        struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
        int fd;

        if (!files_is_within(path, "/tmp") || streq(path, "/tmp"))
                return 0;
        fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
        if (fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot keep %s visible inside the sandbox", path);
        kept->items[kept->n].path = path;
        kept->items[kept->n++].tree_fd = fd;
        /* Landlock cannot tell it from the rest of /tmp */
        if (is_read_only && mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &read_only, sizeof(read_only)) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make %s read-only inside the sandbox", path);
        return 0;
}

static int show(const char *path, int tree_fd, struct err *err)
{
        struct stat st;
        int r;

        r = make_parents(path, err);
        if (r < 0)
                return r;
        if (fstat(tree_fd, &st) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot examine %s", path);
        if (S_ISDIR(st.st_mode) && mkdir(path, 0755) < 0 && errno != EEXIST)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot create %s inside the sandbox", path);
        if (!S_ISDIR(st.st_mode) && (r = write_file(path, "", err)) < 0)
                return r;
        if (move_mount(tree_fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return mount_failed(err, "the host's folder", path);
        return 0;
}

/* The folder that the desktop's specification asks for, which belongs to the user alone. */
static int make_runtime_folder(const struct files *files, struct err *err)
{
        const char *path = getenv("XDG_RUNTIME_DIR");
        int r;

        if (!path || !files_is_within(path, "/run") || streq(path, "/run") || strstr(path, "/.."))
                return 0;
        r = make_parents(path, err);
        if (r < 0)
                return r;
        if ((mkdir(path, 0700) < 0 && errno != EEXIST) || chown(path, files->uid, files->gid) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot create %s inside the sandbox", path);
        return 0;
}

static int cover_folders(const struct files *files, struct err *err)
{
        _cleanup_kept_ struct kept kept = {0};
        char var_run[PATH_MAX];
        int r = 0;

        if (files->read->n == 0 && files->write->n == 0)
                r = keep(&kept, files->cwd, false, err);
        for (size_t i = 0; r == 0 && i < files->read->n; i++)
                r = keep(&kept, files->read->items[i], true, err);
        for (size_t i = 0; r == 0 && i < files->write->n; i++)
                r = keep(&kept, files->write->items[i], false, err);
        if (r == 0 && realpath("/var/run", var_run) && !files_is_within(var_run, "/run"))
                r = mount_tmpfs(var_run, 0, "mode=755", err);
        if (r == 0)
                r = mount_tmpfs("/run", 0, "mode=755", err);
        if (r == 0 && chown("/run", files->uid, files->gid) < 0)
                r = err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot hand over /run inside the sandbox");
        if (r == 0)
                r = mount_tmpfs("/tmp", 0, "mode=1777", err);
        for (size_t i = 0; r == 0 && i < kept.n; i++)
                r = show(kept.items[i].path, kept.items[i].tree_fd, err);
        return r < 0 ? r : make_runtime_folder(files, err);
}

/* ---- names ---- */

/* Puts @text where the programs look for @path. A link that leads into a covered folder leads to the new file. */
static int replace_file(const char *path, const char *copy, const char *text, struct err *err)
{
        char target[PATH_MAX];
        ssize_t len;
        int r;

        len = readlink(path, target, sizeof(target) - 1);
        if (len > 0) {
                _cleanup_free_ char *absolute = NULL;

                target[len] = '\0';
                absolute = target[0] == '/' ? strdup(target) : text_format("/etc/%s", target);
                if (!absolute)
                        return err_set_nomem(err);
                if (access(path, F_OK) < 0) { /* it was in a covered folder, or was never there */
                        r = make_parents(absolute, err);
                        return r < 0 ? r : write_file(absolute, text, err);
                }
        } else if (access(path, F_OK) < 0) {
                return 0; /* it cannot be created without changing the host's files; libraries then look at 127.0.0.1 */
        }
        r = write_file(copy, text, err);
        if (r < 0)
                return r;
        return mount(copy, path, NULL, MS_BIND, NULL) < 0 ? mount_failed(err, "a file", path) : 0;
}

static int replace_names(const struct files *files, struct err *err)
{
        char resolv[128], hosts[256], host[65] = "localhost";
        int r;

        gethostname(host, sizeof(host) - 1);
        snprintf(resolv, sizeof(resolv), "nameserver %s\n", files->resolver);
        snprintf(hosts, sizeof(hosts), "127.0.0.1\tlocalhost %s\n::1\tlocalhost\n", host);
        r = replace_file("/etc/resolv.conf", "/run/resolv.conf", resolv, err);
        if (r == 0)
                r = replace_file("/etc/hosts", "/run/hosts", hosts, err);
        if (r == 0)
                r = replace_file("/etc/nsswitch.conf", "/run/nsswitch.conf",
                                 "passwd: files\ngroup: files\nshadow: files\ngshadow: files\nhosts: files dns\n"
                                 "networks: files\nprotocols: files\nservices: files\nethers: files\nrpc: files\n",
                                 err);
        return r;
}

/* ---- devices ---- */

static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};

static const struct {
        const char *path, *target;
} device_links[] = {
        {"/dev/fd", "/proc/self/fd"},       {"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"},
        {"/dev/stderr", "/proc/self/fd/2"}, {"/dev/ptmx", "pts/ptmx"},
};

static int place_device(const char *name, int tree_fd, struct err *err)
{
        char path[32];
        int r;

        snprintf(path, sizeof(path), "/dev/%s", name);
        r = write_file(path, "", err);
        if (r < 0)
                return r;
        if (move_mount(tree_fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return mount_failed(err, "the device", path);
        return 0;
}

static int replace_devices(struct err *err)
{
        int trees[ARRAY_SIZE(devices)], r = 0;
        char path[32];

        for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
                snprintf(path, sizeof(path), "/dev/%s", devices[i]);
                trees[i] = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        }
        r = mount_tmpfs("/dev", MS_NOEXEC, "mode=755,size=64m", err);
        for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
                if (r == 0 && trees[i] >= 0) /* else the host has it not either */
                        r = place_device(devices[i], trees[i], err);
                close_cleanup(&trees[i]);
        }
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(device_links); i++)
                if (symlink(device_links[i].target, device_links[i].path) < 0)
                        r = err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot create %s", device_links[i].path);
        if (r == 0 && (mkdir("/dev/pts", 0755) < 0 || mkdir("/dev/shm", 0777) < 0 || chmod("/dev/shm", 01777) < 0))
                r = err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot create the folders of /dev");
        if (r == 0 && mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666") < 0)
                r = mount_failed(err, "terminals", "/dev/pts");
        return r;
}

/* ---- control groups ---- */

/* A path as /proc/self/mountinfo writes it: spaces and such are \ooo. */
static void unescape(char *path)
{
        char *to = path;

        for (const char *from = path; *from; to++) {
                if (from[0] == '\\' && from[1] && from[2] && from[3]) {
                        *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
                        from += 4;
                } else {
                        *to = *from++;
                }
        }
        *to = '\0';
}

/* Whether a line is of a cgroup's mount that nothing covers yet; @ret is then where. */
static bool is_bare_cgroup(char *line, const char **ret)
{
        const char *type = strstr(line, " - ");
        char *save = NULL, *path = NULL;

        if (!type || strncmp(type + 3, "cgroup", 6) != 0)
                return false;
        for (int i = 0; i < 5; i++) /* number, parent, device, root, mount point */
                path = strtok_r(i == 0 ? line : NULL, " ", &save);
        if (!path)
                return false;
        unescape(path);
        *ret = path;
        return !files_is_within(path, CGROUPS) && !files_is_within(path, "/run") && !files_is_within(path, "/tmp") &&
               !files_is_within(path, "/dev") && !files_is_within(path, "/proc");
}

/* By them a process could leave the group that it is counted in, and read what runs on the host. */
static int hide_cgroups(struct err *err)
{
        _cleanup_free_ char *mounts = NULL;
        const char *where;
        char *save = NULL;
        size_t len;
        int r;

        r = access(CGROUPS, F_OK) < 0 ? 0 : mount_tmpfs(CGROUPS, MS_RDONLY | MS_NOEXEC, "mode=755,size=4k", err);
        if (r == 0)
                r = file_read(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &mounts, &len, err);
        if (r < 0)
                return r;
        for (char *line = strtok_r(mounts, "\n", &save); line && r == 0; line = strtok_r(NULL, "\n", &save))
                if (is_bare_cgroup(line, &where))
                        r = mount_tmpfs(where, MS_RDONLY | MS_NOEXEC, "mode=755,size=4k", err);
        return r;
}

/* ---- all of it ---- */

int files_arrange(const struct files *files, struct err *err)
{
        int r;

        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return mount_failed(err, "nothing that the host would see", "/");
        r = hide_cgroups(err);
        if (r == 0 && !files->shares_network)
                r = cover_folders(files, err);
        if (r == 0 && !files->shares_network)
                r = replace_names(files, err);
        if (r == 0)
                r = replace_devices(err);
        if (r == 0 && mount("proc", "/proc", "proc", SHIELD | MS_NOEXEC, NULL) < 0)
                r = mount_failed(err, "its processes", "/proc");
        if (r == 0 && chdir(files->cwd) < 0 && chdir("/") < 0)
                r = err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot enter %s", files->cwd);
        return r;
}
