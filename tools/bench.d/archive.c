/* SPDX-License-Identifier: Apache-2.0 */

/* How fast an archive's bytes are made and checked: SHA-256 beside sha256sum on the same file, and a sample file
 * written, read and parsed beside the zstd program that only decompresses it. Processor time of one core, best of
 * several, page cache warm. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "archive/bag.h"
#include "archive/samples.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "seal/digest.h"

#define REPEATS    5
#define FILE_BYTES (256 * 1024 * 1024)
#define ROWS       2000000

static const struct column columns[] = {
        {"slot", "index", SAMPLE_CLOCK_NONE, ""},      {"lateness_ns", "ns", SAMPLE_CLOCK_MONOTONIC, ""},
        {"ksend_ns", "ns", SAMPLE_CLOCK_REALTIME, ""}, {"precv_ns", "ns", SAMPLE_CLOCK_PEER, ""},
        {"residence_ns", "ns", SAMPLE_CLOCK_PEER, ""}, {"krtt_ns", "ns", SAMPLE_CLOCK_REALTIME, ""},
        {"urtt_ns", "ns", SAMPLE_CLOCK_MONOTONIC, ""},
};

struct bench {
        const char *path; /* of the scratch folder */
        int fd;
        struct archive *archive;
        struct err err;
};

typedef int (*bench_fn)(struct bench *b);

/* Processor time of this process and the programs that it ran. */
static int64_t used_ns(void)
{
        static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
        int64_t used = 0;

        for (size_t i = 0; i < ARRAY_SIZE(whose); i++) {
                struct rusage usage;

                getrusage(whose[i], &usage);
                used += (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NSEC_PER_SEC;
                used += (int64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NSEC_PER_USEC;
        }
        return used;
}

/* Nanoseconds of the fastest of several runs, or a negative errno. */
static int64_t best_ns(struct bench *b, bench_fn run)
{
        int64_t best = INT64_MAX;

        for (int i = 0; i < REPEATS; i++) {
                int64_t start = used_ns(), took;
                int r = run(b);

                if (r < 0)
                        return r;
                took = used_ns() - start;
                best = MIN(best, took);
        }
        return best;
}

static int write_payload(struct bench *b)
{
        size_t block = 1024 * 1024;
        _cleanup_free_ uint64_t *words = malloc(block);
        _cleanup_close_ int fd = openat(b->fd, "payload", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        struct rng rng;
        int r = 0;

        if (!words || fd < 0)
                return -ENOMEM;
        rng_seed(&rng, 1);
        for (size_t i = 0; i < block / 8; i++)
                words[i] = rng_next(&rng);
        for (size_t done = 0; r == 0 && done < FILE_BYTES; done += block)
                r = file_write_all(fd, words, block);
        return r;
}

static int run_digest(struct bench *b)
{
        _cleanup_close_ int fd = file_open_beneath(b->fd, "payload");
        struct digest digest;

        return digest_of_file(fd, &digest, NULL, &b->err);
}

static int run_sha256sum(struct bench *b)
{
        return system("sha256sum payload >/dev/null") == 0 ? 0 : -EIO;
}

static int run_check(struct bench *b)
{
        _cleanup_bag_report_ struct bag_report report = {0};
        int r = bag_check(b->archive, BAG_AS_ARCHIVE, &report, &b->err);

        return r == 0 && report.n_faults > 0 ? -EBADMSG : r;
}

static int run_write(struct bench *b)
{
        _cleanup_samples_writer_ struct samples_writer *writer = NULL;
        struct rng rng;
        int r;

        rng_seed(&rng, 1);
        unlinkat(b->fd, "samples.csv.zst", 0);
        r = samples_create(b->fd, "samples.csv.zst", columns, ARRAY_SIZE(columns), &writer, &b->err);
        for (int64_t slot = 0; r == 0 && slot < ROWS; slot++) {
                uint64_t x = rng_next(&rng);
                int64_t lateness = 900 + (int64_t)(x & 0x3fff), residence = 4000 + (int64_t)(x >> 14 & 0xfff);
                int64_t krtt = residence + 30000 + (int64_t)(x >> 26 & 0x7fff);
                int64_t row[] = {slot,      lateness, lateness + 2500 + (int64_t)(x >> 41 & 0x3ff), lateness + krtt / 2,
                                 residence, krtt,     krtt + 7000 + (int64_t)(x >> 51 & 0xfff)};

                r = sample_write(samples_writer_base(writer), row, &b->err);
        }
        return r < 0 ? r : samples_finish(writer, &b->err);
}

static int run_read(struct bench *b)
{
        _cleanup_samples_reader_ struct samples_reader *reader = NULL;
        const int64_t *const *block;
        int64_t rows = 0;
        int r;

        r = samples_open(b->fd, "samples.csv.zst", &reader, &b->err);
        while (r == 0 && (r = samples_read(reader, &block, &b->err)) > 0) {
                rows += r;
                r = 0;
        }
        return r < 0 ? r : rows == ROWS ? 0 : -EBADMSG;
}

static int run_zstd(struct bench *b)
{
        return system("zstd -dcq samples.csv.zst >/dev/null") == 0 ? 0 : -EIO;
}

static int measure(struct bench *b)
{
        int64_t ours, theirs;

        ours = best_ns(b, run_digest);
        theirs = best_ns(b, run_sha256sum);
        if (ours < 0 || theirs < 0)
                return -EIO;
        printf("SHA-256 of a file       %5.2f GB/s, %.2fx sha256sum\n", (double)FILE_BYTES / (double)ours,
               (double)theirs / (double)ours);

        ours = best_ns(b, run_write);
        if (ours < 0)
                return (int)ours;
        printf("samples written         %5.1f million rows/s\n", ROWS * 1e3 / (double)ours);
        ours = best_ns(b, run_read);
        theirs = best_ns(b, run_zstd);
        if (ours < 0 || theirs < 0)
                return -EIO;
        printf("samples read and parsed %5.1f million rows/s, %.2fx the time of zstd -dc\n", ROWS * 1e3 / (double)ours,
               (double)ours / (double)theirs);

        if (renameat(b->fd, "payload", b->fd, "a/data/payload") < 0 || bag_seal(b->archive, NULL, 0, &b->err) < 0)
                return -EIO;
        ours = best_ns(b, run_check);
        if (ours < 0)
                return (int)ours;
        printf("digests of an archive   %5.2f GB/s checked\n", (double)FILE_BYTES / (double)ours);
        return 0;
}

int main(void)
{
        char path[] = "/tmp/assay-bench-XXXXXX";
        struct bench b = {.path = mkdtemp(path), .fd = -1};
        int r = -EIO;

        if (b.path && chdir(b.path) == 0)
                b.fd = file_open_dir(AT_FDCWD, ".");
        if (b.fd >= 0)
                r = archive_create(b.fd, "a", &b.archive, &b.err);
        if (r == 0)
                r = write_payload(&b);
        if (r == 0)
                r = measure(&b);
        if (r < 0)
                fprintf(stderr, "bench-archive: %s %s\n", strerror(-r), b.err.text);
        archive_free(b.archive);
        if (b.path)
                (void)file_remove_tree(AT_FDCWD, path);
        return r < 0;
}
