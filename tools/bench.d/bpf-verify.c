/* SPDX-License-Identifier: Apache-2.0 */

/* How long verification takes: beside the time that the running kernel reports for its own, round by round on the same
 * bytes; by length and branching; and as a command, in time and memory. Here a verification is everything from the
 * bytes to the verdict. */

#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "bpfvm/specimen.h"
#include "bpfvm/verifier.h"
#include "stats/sort.h"
#include "sys/kernel-verifier.h"

#define ROUNDS    31
#define BATCH_NS  (2 * NSEC_PER_MSEC) /* of verifications here, in a round */
#define LOADS     20                  /* by the kernel, in a round */
#define PROCESSES 201

extern char **environ;

struct subject {
        const char *name;
        struct object *object;
        struct span slots;
        int64_t batch;
        int64_t ours_ps[ROUNDS], kernel_ps[ROUNDS];
};

static int64_t median(int64_t *values, size_t n)
{
        sort_i64(values, n);
        return values[n / 2];
}

static int verify(const struct subject *s, struct err *err)
{
        const struct verifier_options options = {.profile = profile_find("embedded")};
        _cleanup_object_ struct object *object = NULL;
        _cleanup_verdict_ struct verdict verdict = {0};
        struct fault fault;
        int r;

        r = object_of_slots(s->slots, s->name, NULL, 0, &object, &fault, err);
        if (r < 0)
                return r;
        object->programs[0]->context = s->object->programs[0]->context;
        r = verifier_check(object->programs[0], &options, &verdict, err);
        return r > 0 ? err_set(err, ERR_BUG, EINVAL, "%s: %s", s->name, verdict.fault.text) : r;
}

/* Picoseconds of processor time that a verification takes, the mean of a batch. */
static int measure(const struct subject *s, int64_t batch, int64_t *ret_ps, struct err *err)
{
        int64_t start_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
        int r = 0;

        for (int64_t i = 0; i < batch && r == 0; i++)
                r = verify(s, err);
        *ret_ps = (clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns) * 1000 / batch;
        return r;
}

static int subject_init(struct subject *s, const char *name, struct err *err)
{
        const struct program *program;
        int64_t ps = 1;
        int r;

        *s = (struct subject){.name = name};
        r = specimen_new(name, &s->object, err);
        if (r < 0)
                return r;
        program = s->object->programs[0];
        s->slots = span_of(program->slots, (size_t)program->n_insns * INSN_SLOT_BYTES);
        r = measure(s, 3, &ps, err);
        s->batch = BATCH_NS * 1000 / MAX(ps, INT64_C(1)) + 1;
        return r;
}

static int beside_kernel(const char *name, struct err *err)
{
        int64_t ratios_ppm[ROUNDS];
        struct subject s;
        int r = subject_init(&s, name, err);

        for (size_t round = 0; round < ROUNDS && r == 0; round++) {
                int64_t sum_ns = 0, time_ns = 0;

                r = measure(&s, s.batch, &s.ours_ps[round], err);
                for (unsigned i = 0; i < LOADS && r == 0; i++) {
                        r = kernel_verifier_measure(s.slots, &time_ns, err);
                        sum_ns += time_ns;
                }
                s.kernel_ps[round] = sum_ns * 1000 / LOADS;
                ratios_ppm[round] = s.kernel_ps[round] * 1000000 / MAX(s.ours_ps[round], INT64_C(1));
        }
        if (r == 0) {
                int64_t ratio = median(ratios_ppm, ROUNDS);

                printf("%-14s here %8.3f us, kernel %8.2f us: %6.1f times faster%s\n", name,
                       (double)median(s.ours_ps, ROUNDS) / 1e6, (double)median(s.kernel_ps, ROUNDS) / 1e6,
                       (double)ratio / 1e6, streq(name, "add:1000") || streq(name, "minimal") ? " (wanted 20)" : "");
        }
        object_free(s.object);
        return r;
}

/* Time an instruction, by length: rounds take turns over the lengths. */
static int growth(const char *const *names, size_t n, double wanted, struct err *err)
{
        _cleanup_free_ struct subject *subjects = calloc(n, sizeof(*subjects));
        double least = 0, most = 0;
        int r = subjects ? 0 : err_set_nomem(err);

        for (size_t i = 0; i < n && r == 0; i++)
                r = subject_init(&subjects[i], names[i], err);
        for (size_t round = 0; round < ROUNDS && r == 0; round++)
                for (size_t i = 0; i < n && r == 0; i++)
                        r = measure(&subjects[i], subjects[i].batch, &subjects[i].ours_ps[round], err);
        for (size_t i = 0; i < n && r == 0; i++) {
                double each_ns = (double)median(subjects[i].ours_ps, ROUNDS) / 1e3 /
                                 (double)subjects[i].object->programs[0]->n_insns;

                printf("%-14s %6" PRIu32 " instructions, %6.2f ns each\n", names[i],
                       subjects[i].object->programs[0]->n_insns, each_ns);
                least = i == 0 ? each_ns : MIN(least, each_ns);
                most = MAX(most, each_ns);
        }
        if (r == 0)
                printf("%-14s most over least an instruction: %.2f (wanted at most %.1f)\n", "", most / least, wanted);
        for (size_t i = 0; subjects && i < n; i++)
                object_free(subjects[i].object);
        return r;
}

/* Runs a program without its output. Return: 0 with its time and the most memory it had; a negative errno. */
static int run_process(const char *const argv[], int64_t *ret_ns, int64_t *ret_bytes)
{
        int64_t start_ns = clock_now_ns(CLOCK_MONOTONIC);
        posix_spawn_file_actions_t actions;
        struct rusage usage;
        int status, r;
        pid_t pid;

        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        r = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
        posix_spawn_file_actions_destroy(&actions);
        if (r != 0)
                return -r;
        if (wait4(pid, &status, 0, &usage) < 0)
                return -errno;
        *ret_ns = clock_now_ns(CLOCK_MONOTONIC) - start_ns;
        *ret_bytes = (int64_t)usage.ru_maxrss * 1024;
        return status == 0 ? 0 : -ECHILD;
}

/* The command on an object file beside `true`, taking turns. */
static int command(const char *assay, const char *file, struct err *err)
{
        static int64_t ours_ns[PROCESSES], least_ns[PROCESSES];
        const char *const check[] = {assay, "bpf", "check", file, NULL}, *const nothing[] = {"true", NULL};
        int64_t bytes, ours, least;
        int r = 0;

        for (size_t i = 0; i < PROCESSES && r == 0; i++) {
                r = run_process(nothing, &least_ns[i], &bytes);
                if (r == 0)
                        r = run_process(check, &ours_ns[i], &bytes);
        }
        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "%s bpf check %s", assay, file);
        ours = median(ours_ns, PROCESSES);
        least = median(least_ns, PROCESSES);
        printf("assay bpf check of a small object, whole process: %.2f ms, true %.2f ms: %.2f times (wanted at most "
               "3)\n",
               (double)ours / 1e6, (double)least / 1e6, (double)ours / (double)least);
        return 0;
}

/* The command on 10,000 instructions. */
static int memory(const char *assay, const char *name, const char *folder, struct err *err)
{
        _cleanup_object_ struct object *object = NULL;
        _cleanup_free_ char *path = NULL;
        const struct program *program;
        int64_t ns, bytes;
        int r = specimen_new(name, &object, err);

        if (r < 0)
                return r;
        program = object->programs[0];
        if (asprintf(&path, "%s/%s.bin", folder, name) < 0)
                return err_set_nomem(err);
        r = file_write_atomic(AT_FDCWD, path, 0644, span_of(program->slots, (size_t)program->n_insns * INSN_SLOT_BYTES),
                              err);
        if (r < 0)
                return r;
        r = run_process((const char *const[]){assay, "bpf", "check", "--context", "__sk_buff", "--profile", "embedded",
                                              path, NULL},
                        &ns, &bytes);
        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "%s bpf check %s", assay, path);
        printf("%-14s %6" PRIu32 " instructions, whole process: %.1f MB resident at most (wanted under 8)\n", name,
               program->n_insns, (double)bytes / 1e6);
        return 0;
}

/* bench-bpf-verify ASSAY OBJECT FOLDER */
int main(int argc, char **argv)
{
        static const char *const ten[] = {"minimal", "arithmetic", "add:10", "add:50",     "add:100",
                                          "add:500", "add:1000",   "linear", "one-branch", "multi-branch"};
        static const char *const lengths[] = {"add:100",  "add:200",  "add:500",  "add:1000",
                                              "add:2000", "add:5000", "add:10000"};
        static const char *const diamonds[] = {"diamonds:8", "diamonds:32", "diamonds:128", "diamonds:512",
                                               "diamonds:2048"};
        struct err err = {0};
        int r = argc == 4 ? 0 : err_set(&err, ERR_USAGE, EINVAL, "expected ASSAY OBJECT FOLDER");

        if (r == 0) /* first, while this process is small: a child's memory counts from its parent's */
                r = memory(argv[1], "add:10000", argv[3], &err);
        if (r == 0)
                r = memory(argv[1], "diamonds:3333", argv[3], &err);
        if (r == 0)
                r = command(argv[1], argv[2], &err);
        if (r == 0)
                r = growth(lengths, ARRAY_SIZE(lengths), 1.3, &err);
        if (r == 0)
                r = growth(diamonds, ARRAY_SIZE(diamonds), 1.5, &err);
        if (r == 0 && kernel_verifier_missing(&err) < 0) {
                printf("beside the kernel: left out (%s)\n", err.text);
                return 0;
        }
        for (size_t i = 0; i < ARRAY_SIZE(ten) && r == 0; i++)
                r = beside_kernel(ten[i], &err);
        if (r < 0)
                fprintf(stderr, "bench-bpf-verify: %s\n", err.text);
        return r < 0;
}
