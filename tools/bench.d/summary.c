/* SPDX-License-Identifier: Apache-2.0 */

/* Makes a large archive (13 cells, 8 rounds, 40 s of 1000 packets/s each: twice a full exp-001) with round trips as a
 * queue gives them, then summarises it in a process of its own, and prints how fast and in how much memory. */

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "archive/samples.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "evidence/summary.h"

#define CELLS  13
#define ROUNDS 8
#define SLOTS  40000
#define WARMUP 10000

static const struct column columns[] = {
        {"slot", "index", SAMPLE_CLOCK_NONE, ""},      {"lateness_ns", "ns", SAMPLE_CLOCK_MONOTONIC, ""},
        {"ksend_ns", "ns", SAMPLE_CLOCK_REALTIME, ""}, {"precv_ns", "ns", SAMPLE_CLOCK_PEER, ""},
        {"residence_ns", "ns", SAMPLE_CLOCK_PEER, ""}, {"krtt_ns", "ns", SAMPLE_CLOCK_REALTIME, ""},
        {"urtt_ns", "ns", SAMPLE_CLOCK_MONOTONIC, ""},
};

static double uniform(struct rng *rng)
{
        return ((double)(rng_next(rng) >> 11) + 0.5) * 0x1p-53;
}

/* A duration with a least value and an exponential tail. */
static int64_t duration(struct rng *rng, int64_t least, double mean)
{
        return least - (int64_t)(mean * log(uniform(rng)));
}

static int write_samples(int dirfd, struct rng *rng, struct err *err)
{
        _cleanup_samples_writer_ struct samples_writer *writer = NULL;
        int r;

        r = samples_create(dirfd, "samples.csv.zst", columns, ARRAY_SIZE(columns), &writer, err);
        for (int64_t slot = 0; slot < SLOTS && r >= 0; slot++) {
                int64_t lateness = duration(rng, 900, 4000), residence = duration(rng, 4000, 1500);
                int64_t krtt = residence + duration(rng, 30000, 9000);
                int64_t row[] = {slot,      lateness, lateness + duration(rng, 2500, 500), lateness + krtt / 2,
                                 residence, krtt,     krtt + duration(rng, 7000, 2000)};

                if (rng_below(rng, 20000) == 0) /* lost */
                        row[3] = row[4] = row[5] = row[6] = SAMPLE_MISSING;
                r = sample_write(samples_writer_base(writer), row, err);
        }
        return r < 0 ? r : samples_finish(writer, err);
}

static json_t *trial_json(const char *name, const char *cell, int round)
{
        return json_pack("{s:i, s:s, s:i, s:s, s:i, s:i, s:i, s:s, s:s, s:i, s:i, s:{}, s:{s:i, s:i}, s:{}, s:{},"
                         " s:{s:{s:b}, s:{s:b}}, s:{s:i}, s:b, s:s}",
                         "assay", 1, "trial", name, "index", 1, "cell", cell, "round", round, "extra", 0, "campaign", 1,
                         "host", "bench", "failure", "", "started_realtime_ns", 0, "ended_realtime_ns", 0, "boundary",
                         "counts", "slots", SLOTS, "warmup_slots", WARMUP, "notes", "background", "proof", "before",
                         "holds", 1, "after", "holds", 1, "clock", "realtime_step_ns", 0, "valid", 1, "reason", "");
}

static int make_trial(struct archive *archive, const char *cell, int round, struct rng *rng, struct err *err)
{
        _cleanup_json_ json_t *json = NULL, *line = NULL;
        _cleanup_close_ int dirfd = -1;
        char name[64];
        int r;

        snprintf(name, sizeof(name), "%s-r%d", cell, round);
        json = trial_json(name, cell, round);
        line = json_pack("{s:s, s:s}", "event", "trial", "trial", name);
        dirfd = archive_trial_begin(archive, name, err);
        if (dirfd < 0)
                return dirfd;
        r = write_samples(dirfd, rng, err);
        if (r >= 0)
                r = json_save(dirfd, "trial.json", json, err);
        return r < 0 ? r : archive_trial_commit(archive, name, line, err);
}

static int make_archive(struct archive *archive, const struct manifest *manifest, struct err *err)
{
        struct rng rng;
        int r = 0;

        rng_seed(&rng, 1);
        for (size_t c = 0; c < manifest->n_cells; c++)
                for (int round = 1; round <= ROUNDS && r >= 0; round++)
                        r = make_trial(archive, manifest->cells[c].name, round, &rng, err);
        return r;
}

/* In a process of its own, so that its peak memory is that of the summary. Return: 0 or a negative errno. */
static int summarise(struct archive *archive, const struct plan *plan, struct err *err)
{
        int64_t start = clock_now_ns(CLOCK_MONOTONIC), end;
        _cleanup_json_ json_t *summary = NULL;
        struct rusage usage;
        double samples = (double)CELLS * ROUNDS * SLOTS;
        int r;

        r = summary_make(archive, plan, &summary, err);
        if (r < 0)
                return r;
        end = clock_now_ns(CLOCK_MONOTONIC);
        getrusage(RUSAGE_SELF, &usage);
        printf("summary of %.2f million samples: %.2f s (%.2f s of CPU), %.1f million samples/s (wanted 6), %.1f MB "
               "resident (wanted under 64)\n",
               samples / 1e6, (double)(end - start) / 1e9,
               (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
               samples * 1e3 / (double)(end - start), (double)usage.ru_maxrss / 1024);
        return 0;
}

static int measure(struct archive *archive, const struct plan *plan, int times, struct err *err)
{
        for (int i = 0; i < times; i++) {
                int status;
                pid_t pid;

                fflush(stdout);
                pid = fork();
                if (pid < 0)
                        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot fork");
                if (pid == 0) {
                        int r = summarise(archive, plan, err);

                        if (r < 0)
                                fprintf(stderr, "%s\n", err->text);
                        fflush(stdout);
                        _exit(r < 0);
                }
                if (waitpid(pid, &status, 0) < 0 || status != 0)
                        return err_set(err, ERR_ENVIRONMENT, ECHILD, "the summary failed");
        }
        return 0;
}

static int run(int scratch, struct err *err)
{
        _cleanup_archive_ struct archive *archive = NULL;
        struct manifest_cell cells[CELLS] = {0};
        struct manifest manifest = {.n_cells = CELLS, .cells = cells, .rounds = ROUNDS, .campaigns = 1};
        struct plan plan = {.manifest = &manifest};
        char names[CELLS][16];
        int r;

        for (size_t c = 0; c < CELLS; c++) {
                snprintf(names[c], sizeof(names[c]), "cell-%zu", c);
                cells[c].name = names[c];
        }
        r = archive_create(scratch, "archive", &archive, err);
        if (r >= 0)
                r = make_archive(archive, &manifest, err);
        return r < 0 ? r : measure(archive, &plan, 3, err);
}

int main(void)
{
        char path[] = "/tmp/assay-bench-XXXXXX";
        _cleanup_close_ int scratch = -1;
        struct err err = {0};
        int r;

        scratch = mkdtemp(path) ? file_open_dir(AT_FDCWD, path) : -errno;
        r = scratch < 0 ? err_set_errno(&err, ERR_IO, -scratch, "cannot make %s", path) : run(scratch, &err);
        if (scratch >= 0)
                (void)file_remove_tree(AT_FDCWD, path);
        if (r < 0)
                fprintf(stderr, "bench-summary: %s\n", err.text);
        return r < 0;
}
