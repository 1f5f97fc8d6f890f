/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/proof-cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/macro.h"
#include "base/text.h"
#include "sandbox/bundle.h"
#include "sandbox/policy.h"
#include "sandbox/runner-internal.h"
#include "seal/digest.h"

#define RECORD_MAX 65536
#define PREFIX     "proof-"
#define NAME_SIZE  (sizeof(PREFIX) + 16)
#define KEPT_MAX   64 /* proofs */
#define KEPT_S     ((int64_t)24 * 60 * 60)

#define PROGRAM_FORMAT "program %ju %ju"

/* ---- the folder ---- */

#define FALLBACK_PARENT "/dev/shm"

/* Anywhere but below /run and /dev, of which a command has its own, it could be visible to the command. */
static void choose_folder(char path[static PATH_MAX])
{
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        unsigned uid = (unsigned)geteuid();

        if (runtime && strncmp(runtime, "/run/", 5) == 0 && !strstr(runtime, "/..")) {
                snprintf(path, PATH_MAX, "%s/assay", runtime);
                return;
        }
        snprintf(path, PATH_MAX, "/run/user/%u/assay", uid);
        if (uid == 0)
                snprintf(path, PATH_MAX, "/run/assay");
        else if (mkdir(path, 0700) < 0 && errno != EEXIST)
                snprintf(path, PATH_MAX, FALLBACK_PARENT "/assay-%u", uid);
}

/* Where everybody may make files, but the folder of one cannot be taken away by another. */
static bool is_sticky(const char *path)
{
        struct stat st;

        return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == 0 && (st.st_mode & S_ISVTX);
}

/* Nobody else may write there, nor have put it there. Return: a descriptor or -1. */
static int open_folder(void)
{
        _cleanup_close_ int fd = -1;
        char path[PATH_MAX];
        struct stat st;

        choose_folder(path);
        if (strncmp(path, FALLBACK_PARENT "/", sizeof(FALLBACK_PARENT)) == 0 && !is_sticky(FALLBACK_PARENT))
                return -1;
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return -1;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_mode & 077)
                return -1;
        return TAKE_FD(fd);
}

/* ---- the key ---- */

/* Names the file; what is in the file decides, whose first lines are the whole key. */
static uint64_t hash_of(const char *text)
{
        return hash_bytes(HASH_START, text, strlen(text));
}

/* The filter follows from the program and how it was asked for. The time of the last change of anything about the
 * program's file cannot be set by whom it belongs to. */
static int add_program(struct text *key)
{
        struct stat st;

        if (stat("/proc/self/exe", &st) < 0)
                return -errno;
        text_addf(key, PROGRAM_FORMAT " %jd %jd.%09ld\n", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino,
                  (intmax_t)st.st_size, (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
        return 0;
}

static int add_kernel(struct text *key)
{
        _cleanup_free_ char *boot = NULL;
        struct utsname kernel = {0};
        size_t len;
        int r;

        if (uname(&kernel) < 0)
                return -errno;
        r = file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64, &boot, &len, NULL);
        if (r == 0)
                text_addf(key, "kernel %s %s\nboot %s\n", kernel.release, kernel.version, boot);
        return r;
}

static void add_run(struct text *key, const struct run *run)
{
        const struct sandbox_options *o = run->options;
        const struct policy *policy = run->sandbox.policy;
        char hex[DIGEST_HEX_SIZE];

        text_addf(key, "enforcer %s rootless %d nested %d files %d user %u inside %u\n", run->sandbox.enforcer->name,
                  run->identity.is_rootless, o->nested, o->read.n + o->write.n > 0, (unsigned)run->identity.uid,
                  (unsigned)run->identity.inner_uid);
        for (size_t i = 0; i < policy->n_layers; i++)
                text_addf(key, "policy %s\n", digest_format(&policy->layers[i]->digest, hex));
}

/* Return: the text of everything that a proof depends on, which the caller frees; NULL where it is not known. */
static char *make_key(const struct run *run)
{
        struct text key = {0};

        if (add_program(&key) < 0 || add_kernel(&key) < 0) {
                text_done(&key);
                return NULL;
        }
        add_run(&key, run);
        text_add(&key, "\n"); /* ends the key */
        return text_take(&key);
}

static void name_file(const char *key, char buf[static NAME_SIZE])
{
        snprintf(buf, NAME_SIZE, PREFIX "%016" PRIx64, hash_of(key));
}

/* ---- what is kept no longer ---- */

struct kept {
        char name[NAME_SIZE];
        int64_t changed_s;
};

/* Whether the beginning of a kept proof is of a program that was changed since, or of another kernel or boot, so that
 * it will never be asked for again. Programs are told apart by their first two numbers. */
static bool is_outdated(const char *text, const char *key)
{
        static const char kernel[] = "\nkernel ", run[] = "\nenforcer ";
        const char *theirs = strstr(text, kernel), *theirs_end = strstr(text, run);
        const char *ours = strstr(key, kernel), *ours_end = strstr(key, run);
        uintmax_t device[2], inode[2];

        if (!theirs || !theirs_end || theirs_end < theirs || theirs_end - theirs != ours_end - ours ||
            memcmp(theirs, ours, (size_t)(ours_end - ours)) != 0)
                return true;
        if (sscanf(text, PROGRAM_FORMAT, &device[0], &inode[0]) != 2 ||
            sscanf(key, PROGRAM_FORMAT, &device[1], &inode[1]) != 2)
                return true;
        return device[0] == device[1] && inode[0] == inode[1] &&
               (theirs - text != ours - key || memcmp(text, key, (size_t)(ours - key)) != 0);
}

static bool is_stale(int folder, const char *name, const char *key, int64_t now_s, int64_t *ret_changed_s)
{
        _cleanup_free_ char *text = NULL;
        struct stat st;
        size_t len;

        if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || now_s - st.st_mtim.tv_sec > KEPT_S)
                return true;
        *ret_changed_s = st.st_mtim.tv_sec;
        return file_read(folder, name, RECORD_MAX, &text, &len, NULL) < 0 || is_outdated(text, key);
}

/* What is left of a proof whose writer was killed. */
static bool is_left_over(int folder, const char *name, int64_t now_s)
{
        struct stat st;

        return strncmp(name, "." PREFIX, strlen("." PREFIX)) == 0 &&
               fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && now_s - st.st_mtim.tv_sec > KEPT_S;
}

static int newest_first(const void *a, const void *b)
{
        const struct kept *x = a, *y = b;

        return (x->changed_s < y->changed_s) - (x->changed_s > y->changed_s);
}

/* Removes what is of no use any more, and the oldest of what is too much, but for @own. */
static void sweep(int folder, const char *key, const char *own)
{
        int64_t now_s = clock_now_ns(CLOCK_REALTIME) / NSEC_PER_SEC;
        int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        struct kept kept[KEPT_MAX];
        const struct dirent *entry;
        size_t n = 0;

        if (!dir && fd >= 0)
                close(fd);
        while (dir && (entry = readdir(dir))) {
                struct kept *next = &kept[n];

                if (is_left_over(folder, entry->d_name, now_s))
                        unlinkat(folder, entry->d_name, 0);
                if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 || streq(entry->d_name, own))
                        continue;
                if (strlen(entry->d_name) >= NAME_SIZE ||
                    is_stale(folder, entry->d_name, key, now_s, &next->changed_s)) {
                        unlinkat(folder, entry->d_name, 0);
                        continue;
                }
                memcpy(next->name, entry->d_name, strlen(entry->d_name) + 1);
                if (++n == KEPT_MAX) { /* with its own as many as there may be, and one more */
                        qsort(kept, n, sizeof(kept[0]), newest_first);
                        unlinkat(folder, kept[--n].name, 0);
                }
        }
        if (dir)
                closedir(dir);
}

/* ---- get and put ---- */

static void replay(struct bundle *bundle, char *record)
{
        char *save = NULL;

        for (char *line = strtok_r(record, "\n", &save); line && bundle; line = strtok_r(NULL, "\n", &save)) {
                char *detail = strstr(line, ": ");

                if (!detail)
                        continue;
                *detail = '\0';
                bundle_proof(bundle, line,
                             strncmp(line, PROOF_CONTROL, strlen(PROOF_CONTROL)) == 0 ? BUNDLE_PROOF_ARRIVED
                                                                                      : BUNDLE_PROOF_STOPPED,
                             detail + 2, true);
        }
}

bool proof_cache_get(const struct run *run)
{
        _cleanup_free_ char *key = make_key(run), *record = NULL;
        _cleanup_close_ int folder = open_folder();
        char name[NAME_SIZE];
        size_t len;

        if (folder < 0 || !key)
                return false;
        name_file(key, name);
        if (file_read(folder, name, RECORD_MAX, &record, &len, NULL) < 0 || strncmp(record, key, strlen(key)) != 0)
                return false;
        replay(run->sandbox.bundle, record + strlen(key));
        return true;
}

void proof_cache_put(const struct run *run, const char *record)
{
        _cleanup_free_ char *key = make_key(run), *whole = key ? text_format("%s%s", key, record) : NULL;
        _cleanup_close_ int folder = open_folder();
        char name[NAME_SIZE];

        if (folder < 0 || !whole)
                return;
        name_file(key, name);
        if (file_write_atomic(folder, name, 0600, span_of_text(whole), NULL) == 0)
                sweep(folder, key, name);
}
