/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/proof-cache.h"

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
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "sandbox/bundle.h"
#include "sandbox/policy.h"
#include "sandbox/runner-internal.h"
#include "seal/digest.h"

#define RECORD_MAX 65536
#define PREFIX     "proof-"
#define NAME_SIZE  (sizeof(PREFIX) + 16)

/* ---- the folder ---- */

/* Nobody else may write there. Return: a descriptor or -1. */
static int open_folder(void)
{
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        _cleanup_close_ int fd = -1;
        char path[PATH_MAX];
        struct stat st;

        /* anywhere else it could be visible to the command */
        if (!runtime || strncmp(runtime, "/run/", 5) != 0 || strstr(runtime, "/.."))
                runtime = "/run";
        snprintf(path, sizeof(path), "%s/assay", runtime);
        fd = file_make_dir(AT_FDCWD, path, 0700);
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
        text_addf(key, "program %ju %ju %jd %jd.%09ld\n", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino,
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
        file_write_atomic(folder, name, 0600, span_of_text(whole), NULL);
}
