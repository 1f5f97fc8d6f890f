/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/runc.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/macro.h"

#define PARENT   "/run"
#define PREFIX   "assay-runc-"
#define ENDED_MS 5000
#define EMPTY_MS 5000
#define RETRY_MS 5

#define PROCS_BYTES ((size_t)1 << 20)
#define BUNDLES_MAX 8 /* of a trial: what it runs, and looks around before and after */

/* Folders of this host that a container does not get, for it has its own. */
static bool is_own(const char *name)
{
        static const char *const names[] = {".", "..", "proc", "dev", "sys"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (streq(names[i], name))
                        return true;
        return false;
}

static const char *name_of(const struct runc *runc)
{
        return strrchr(runc->folder, '/') + 1;
}

/* ---- what is left ---- */

/* Ends the processes of a group, as far as they can be seen from here, and waits until they have ended. */
static void kill_group(int group)
{
        _cleanup_free_ char *text = NULL;
        char *rest = NULL;
        size_t len;

        if (file_read_beneath(group, "cgroup.procs", PROCS_BYTES, &text, &len, NULL) < 0)
                return;
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
                pid_t pid = (pid_t)strtol(line, NULL, 10); /* 0: of another PID namespace */
                _cleanup_close_ int pidfd = pid > 0 ? pidfd_open(pid, 0) : -1;

                if (pidfd >= 0 && pidfd_send_signal(pidfd, SIGKILL, NULL, 0) == 0)
                        (void)poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, ENDED_MS);
        }
}

/* A group that has just become empty may be busy for a moment still. */
static bool remove_group(int parent, const char *name)
{
        _cleanup_close_ int group = file_open_dir(parent, name);

        if (group < 0)
                return group == -ENOENT;
        for (int waited_ms = 0; waited_ms < EMPTY_MS; waited_ms += RETRY_MS) {
                kill_group(group);
                if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
                        return true;
                if (errno != EBUSY)
                        return false;
                (void)poll(NULL, 0, RETRY_MS);
        }
        return false;
}

static bool remove_groups_below(const char *hierarchy, const char *prefix)
{
        _cleanup_closedir_ DIR *dir = opendir(hierarchy);
        size_t len = strlen(prefix);
        struct dirent *entry;
        bool are_gone = true;

        while (dir && (entry = readdir(dir)))
                if (strncmp(entry->d_name, prefix, len) == 0 && entry->d_name[len] == '-')
                        are_gone = remove_group(dirfd(dir), entry->d_name) && are_gone;
        return are_gone;
}

/* The groups of the containers of one folder, in every hierarchy that there is. */
static bool remove_groups(const char *prefix)
{
        FILE *mounts = setmntent("/proc/self/mounts", "re");
        struct mntent *mount;
        bool are_gone = true;

        while (mounts && (mount = getmntent(mounts)))
                if (streq(mount->mnt_type, "cgroup") || streq(mount->mnt_type, "cgroup2"))
                        are_gone = remove_groups_below(mount->mnt_dir, prefix) && are_gone;
        if (mounts)
                endmntent(mounts);
        return are_gone;
}

/* Only what is empty, and links: whatever were mounted there would be this host's files. */
static void remove_root(int folder)
{
        int fd = file_open_dir(folder, "root");
        _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;

        if (!dir && fd >= 0)
                close(fd);
        while (dir && (entry = readdir(dir)))
                if (unlinkat(fd, entry->d_name, AT_REMOVEDIR) < 0 && errno == ENOTDIR)
                        (void)unlinkat(fd, entry->d_name, 0);
        (void)unlinkat(folder, "root", AT_REMOVEDIR);
}

/* The folder goes last, and stays where a group did, so that it is found again. */
static void remove_all(struct runc *runc)
{
        char name[16];

        if (!remove_groups(name_of(runc)))
                return;
        remove_root(runc->dirfd);
        (void)file_remove_tree(runc->dirfd, "state");
        for (unsigned i = 0; i < runc->n; i++) {
                snprintf(name, sizeof(name), "%u", i);
                (void)file_remove_tree(runc->dirfd, name);
        }
        (void)rmdir(runc->folder);
}

void runc_down(struct runc *runc)
{
        if (runc->folder[0])
                remove_all(runc);
        close_cleanup(&runc->dirfd);
        *runc = (struct runc)RUNC_INIT;
}

/* The same for folders whose process is gone, however it went. */
static void sweep(void)
{
        _cleanup_closedir_ DIR *dir = opendir(PARENT);
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                struct runc left = RUNC_INIT;

                if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 ||
                    strlen(entry->d_name) + sizeof(PARENT) >= sizeof(left.folder))
                        continue;
                left.dirfd = file_open_dir(dirfd(dir), entry->d_name);
                left.n = BUNDLES_MAX;
                if (left.dirfd >= 0 && flock(left.dirfd, LOCK_EX | LOCK_NB) == 0)
                        snprintf(left.folder, sizeof(left.folder), PARENT "/%s", entry->d_name);
                runc_down(&left);
        }
}

/* ---- bundles ---- */

/* A container's configuration is what `runc spec` proposes, but for the network, the terminal and the files. */

static const struct mount {
        const char *destination, *type, *source;
        const char *options[8];
} own_mounts[] = {
        {"/proc", "proc", "proc", {NULL}},
        {"/dev", "tmpfs", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"}},
        {"/dev/pts", "devpts", "devpts", {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
        {"/dev/shm", "tmpfs", "shm", {"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
        {"/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"}},
        {"/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", "ro"}},
        {"/sys/fs/cgroup", "cgroup", "cgroup", {"nosuid", "noexec", "nodev", "relatime", "ro"}},
};

static int add_mount(json_t *mounts, const struct mount *mount, struct err *err)
{
        json_t *options = json_array();

        for (size_t i = 0; mount->options[i]; i++)
                if (json_array_append_new(options, json_string(mount->options[i])) < 0) {
                        json_decref(options);
                        return err_set_nomem(err);
                }
        if (json_array_append_new(mounts, json_pack("{s:s, s:s, s:s, s:o}", "destination", mount->destination, "type",
                                                    mount->type, "source", mount->source, "options", options)) < 0)
                return err_set_nomem(err);
        return 0;
}

/* One entry of this host's root folder: a link becomes the same link, and a folder is mounted. */
static int add_file(int host, int root, const char *name, json_t *mounts, struct err *err)
{
        char path[NAME_MAX + 2], target[PATH_MAX];
        const struct mount mount = {path, "none", path, {"rbind", "ro"}};
        struct stat st;
        ssize_t n;

        if (is_own(name) || fstatat(host, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        snprintf(path, sizeof(path), "/%s", name);
        if (S_ISDIR(st.st_mode))
                return add_mount(mounts, &mount, err);
        n = S_ISLNK(st.st_mode) ? readlinkat(host, name, target, sizeof(target) - 1) : -1;
        if (n < 0)
                return 0;
        target[n] = '\0';
        if (symlinkat(target, root, name) < 0 && errno != EEXIST)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make the root folder of a container");
        return 0;
}

static int add_mounts(const struct runc *runc, json_t *mounts, struct err *err)
{
        _cleanup_close_ int root = file_open_dir(runc->dirfd, "root");
        _cleanup_closedir_ DIR *host = opendir("/");
        struct dirent *entry;
        int r = 0;

        if (root < 0 || !host)
                return err_set_errno(err, ERR_ENVIRONMENT, root < 0 ? -root : errno,
                                     "cannot open the root folder of a container, or the host's");
        while (r >= 0 && (entry = readdir(host)))
                r = add_file(dirfd(host), root, entry->d_name, mounts, err);
        for (size_t i = 0; i < ARRAY_SIZE(own_mounts) && r >= 0; i++)
                r = add_mount(mounts, &own_mounts[i], err);
        return r;
}

/* Return: a new reference, or NULL if memory ran out; so with the next one. */
static json_t *process_json(const struct command_line *line)
{
        static const char *const sets[] = {"bounding", "effective", "permitted"};
        _cleanup_json_ json_t *args = json_array(), *capabilities = json_object();
        const char *path = getenv("PATH");

        for (size_t i = 0; i < line->n; i++)
                if (json_array_append_new(args, json_string(line->words[i])) < 0)
                        return NULL;
        for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
                if (json_object_set_new(capabilities, sets[i],
                                        json_pack("[sss]", "CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE")) < 0)
                        return NULL;
        return json_pack("{s:{s:i, s:i}, s:s, s:b, s:O, s:O, s:[s+]}", "user", "uid", 0, "gid", 0, "cwd", "/",
                         "noNewPrivileges", 1, "capabilities", capabilities, "args", args, "env",
                         "PATH=", path ? path : "/usr/bin:/bin");
}

static json_t *linux_json(const char *id)
{
        return json_pack("{s:s+, s:[{s:s}, {s:s}, {s:s}, {s:s}], s:{s:[{s:b, s:s}]}, s:[sssssssss], s:[sssss]}",
                         "cgroupsPath", "/", id, "namespaces", "type", "pid", "type", "ipc", "type", "uts", "type",
                         "mount", "resources", "devices", "allow", 0, "access", "rwm", "maskedPaths", "/proc/acpi",
                         "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
                         "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "readonlyPaths", "/proc/bus", "/proc/fs",
                         "/proc/irq", "/proc/sys", "/proc/sysrq-trigger");
}

static int write_config(const struct runc *runc, const struct command_line *line, const char *bundle, const char *id,
                        struct err *err)
{
        _cleanup_json_ json_t *mounts = json_array(), *config = NULL;
        char path[64];
        int r = add_mounts(runc, mounts, err);

        if (r < 0)
                return r;
        config = json_pack("{s:s, s:o, s:o, s:{s:s+, s:b}, s:O}", "ociVersion", "1.0.2", "process", process_json(line),
                           "linux", linux_json(id), "root", "path", runc->folder, "/root", "readonly", 1, "mounts",
                           mounts);
        if (!config)
                return err_set_nomem(err);
        if (mkdirat(runc->dirfd, bundle, 0700) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make %s/%s", runc->folder, bundle);
        snprintf(path, sizeof(path), "%s/config.json", bundle);
        return json_save(runc->dirfd, path, config, err);
}

int runc_wrap(struct runc *runc, struct command_line *line, struct err *err)
{
        char bundle[16], id[64];
        int r;

        if (runc->n == BUNDLES_MAX)
                return err_set(err, ERR_BUG, E2BIG, "more than %d commands in one trial's containers", BUNDLES_MAX);
        snprintf(bundle, sizeof(bundle), "%u", runc->n++);
        snprintf(id, sizeof(id), "%s-%s", name_of(runc), bundle);
        r = write_config(runc, line, bundle, id, err);
        if (r < 0)
                return r;
        command_line_done(line);
        command_line_add(line, "runc");
        command_line_add(line, "--root");
        command_line_add(line, "%s/state", runc->folder);
        command_line_add(line, "run");
        command_line_add(line, "--bundle");
        command_line_add(line, "%s/%s", runc->folder, bundle);
        command_line_add(line, "%s", id);
        return 0;
}

int runc_up(struct runc *runc, struct err *err)
{
        char folder[] = PARENT "/" PREFIX "XXXXXX";

        static_assert(sizeof(folder) <= sizeof(runc->folder), "a folder's path fits");
        sweep();
        if (!mkdtemp(folder))
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make a folder in " PARENT);
        memcpy(runc->folder, folder, sizeof(folder));
        runc->dirfd = file_open_dir(AT_FDCWD, folder);
        if (runc->dirfd >= 0 && flock(runc->dirfd, LOCK_EX | LOCK_NB) == 0 && mkdirat(runc->dirfd, "root", 0755) == 0)
                return 0;
        err_set_errno(err, ERR_ENVIRONMENT, runc->dirfd < 0 ? -runc->dirfd : errno, "cannot use the folder %s", folder);
        runc_down(runc);
        return -EIO;
}
