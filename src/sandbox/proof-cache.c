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
#include "base/text.h"
#include "sandbox/bundle.h"
#include "sandbox/policy.h"
#include "sandbox/runner-internal.h"
#include "seal/digest.h"

#define RECORD_MAX 65536
#define PREFIX     "proof-"

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

static bool add_program(struct digest_stream *key)
{
        struct stat st;
        char text[160];

        if (stat("/proc/self/exe", &st) < 0)
                return false;
        /* the time of the last change of anything about the file cannot be set by whom it belongs to */
        snprintf(text, sizeof(text), "%ju %ju %jd %jd.%09ld;", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino,
                 (intmax_t)st.st_size, (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
        return digest_stream_add(key, span_of_text(text), NULL) == 0;
}

static bool add_kernel(struct digest_stream *key)
{
        _cleanup_free_ char *boot = NULL;
        struct utsname kernel = {0};
        size_t len;

        return uname(&kernel) == 0 &&
               file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64, &boot, &len, NULL) == 0 &&
               digest_stream_add(key, span_of(&kernel, sizeof(kernel)), NULL) == 0 &&
               digest_stream_add(key, span_of(boot, len), NULL) == 0;
}

static bool add_run(struct digest_stream *key, const struct run *run)
{
        const struct policy *policy = run->sandbox.policy;
        char text[160];
        bool is_ok;

        snprintf(text, sizeof(text), "%s %d %d %u %u;", run->sandbox.enforcer->name, run->identity.is_rootless,
                 run->options->nested, (unsigned)run->identity.uid, (unsigned)run->identity.inner_uid);
        is_ok = digest_stream_add(key, span_of_text(text), NULL) == 0 &&
                digest_stream_add(key, span_of(run->filter.code, run->filter.n * sizeof(run->filter.code[0])), NULL) ==
                        0;
        for (size_t i = 0; is_ok && i < policy->n_layers; i++)
                is_ok = digest_stream_add(key, span_of(policy->layers[i]->digest.bytes, DIGEST_BYTES), NULL) == 0;
        return is_ok;
}

static bool find_name(const struct run *run, char buf[static DIGEST_HEX_SIZE + sizeof(PREFIX)])
{
        _cleanup_digest_stream_ struct digest_stream *key = NULL;
        char hex[DIGEST_HEX_SIZE];
        struct digest digest;

        if (digest_stream_new(&key, NULL) < 0 || !add_program(key) || !add_kernel(key) || !add_run(key, run) ||
            digest_stream_finish(key, &digest, NULL) < 0)
                return false;
        sprintf(buf, PREFIX "%s", digest_format(&digest, hex));
        return true;
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
        char name[DIGEST_HEX_SIZE + sizeof(PREFIX)];
        _cleanup_close_ int folder = open_folder();
        _cleanup_free_ char *record = NULL;
        size_t len;

        if (folder < 0 || !find_name(run, name) || file_read(folder, name, RECORD_MAX, &record, &len, NULL) < 0)
                return false;
        replay(run->sandbox.bundle, record);
        return true;
}

void proof_cache_put(const struct run *run, const char *record)
{
        char name[DIGEST_HEX_SIZE + sizeof(PREFIX)];
        _cleanup_close_ int folder = open_folder();

        if (folder >= 0 && find_name(run, name))
                file_write_atomic(folder, name, 0600, span_of_text(record), NULL);
}
