/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kind-command.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "campaign/cpu.h"
#include "campaign/enclosure.h"
#include "campaign/local.h"
#include "campaign/quantiles.h"
#include "stats/sort.h"
#include "sys/sched.h"

#define SPAWNS          31 /* of processes that do nothing, to say what starting one costs */
#define RUN_GUESS_NS    (5 * NSEC_PER_MSEC)
#define CANNOT_RUN      127
#define COMPLAINT_BYTES 300

#define FIELD(name) offsetof(struct command_keys, name)

static const struct key keys[] = {
        {.name = "argv",
         .type = KEY_STRINGS,
         .offset = FIELD(argv),
         .is_required = true,
         .help = "The program and its arguments."},
        {.name = "runs",
         .type = KEY_QUANTITY,
         .offset = FIELD(runs),
         .fallback = "20",
         .unit = UNIT_COUNT,
         .min = 1,
         .max = 100000,
         .help = "How often it is run and measured, one run after the other."},
        {.name = "warmup",
         .type = KEY_QUANTITY,
         .offset = FIELD(warmup),
         .fallback = "2",
         .unit = UNIT_COUNT,
         .max = 100000,
         .help = "How often it is run before; stored, and left out of every number."},
        {.name = "timeout",
         .type = KEY_QUANTITY,
         .offset = FIELD(timeout_ns),
         .fallback = "10s",
         .unit = UNIT_DURATION,
         .min = 1000000,
         .max = INT64_C(600000000000),
         .help = "When a run has failed; it is killed."},
        {.name = "cpu",
         .type = KEY_QUANTITY,
         .offset = FIELD(cpu),
         .fallback = "0",
         .unit = UNIT_COUNT,
         .max = 1023,
         .help = "Processor that it is pinned to."},
        {},
};

const struct key_table command_table = {
        .name = "command",
        .help = "A program that is run again and again inside the boundary, timed from start to exit.",
        .size = sizeof(struct command_keys),
        .has_kind = true,
        .keys = keys,
};

const struct metric command_metrics[] = {
        QUANTILES("wall"),
        {.name = "failed", .unit = METRIC_COUNT, .source = METRIC_COUNTER, .series = "failed"},
        {},
};

static const struct column columns[] = {
        {"slot", "index", SAMPLE_CLOCK_NONE, "number of the run, from 0"},
        {"wall_ns", "ns", SAMPLE_CLOCK_MONOTONIC,
         "from before its process is made until it has ended; empty: it failed"},
};

/* What the process writes. */
struct shared {
        struct sched_grant grant;
        int64_t spawn_ns[SPAWNS];
        char complaint[COMPLAINT_BYTES]; /* of the first run that failed */
        int64_t wall_ns[];               /* SAMPLE_MISSING: it failed */
};

struct command_runs {
        struct local base;
        struct command_keys keys;
        struct command_line line;
        struct shared *shared;
        size_t shared_bytes;
        size_t n; /* warm-up included */
        int err_fd;
};

static struct command_runs *command_runs_of(struct workload *w)
{
        return (struct command_runs *)w; /* the first member's first member */
}

/* Makes a process that becomes @words, or that ends at once where there are none. It shares the memory of this one
 * until then, so making it costs the same however large this one is; and it is killed with this one. */
static pid_t spawn(char *const *words)
{
        pid_t pid = vfork();

        if (pid != 0)
                return pid;
        if (!words)
                _exit(0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(words[0], words);
        _exit(CANNOT_RUN);
}

/* Return: 0 with the wall time where it exited with status 0; else its status, with 128 and more for a signal;
 * -ETIMEDOUT; another negative errno. */
static int run_once(char *const *words, int64_t timeout_ns, int64_t *ret_ns)
{
        const struct timespec timeout = timespec_of_nsec(timeout_ns);
        int64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC);
        pid_t pid = spawn(words);
        _cleanup_close_ int pidfd = pid < 0 ? -1 : pidfd_open(pid, 0);
        struct pollfd pfd = {.fd = pidfd, .events = POLLIN};
        int status, n;

        if (pid < 0)
                return -errno;
        n = pidfd < 0 ? -1 : ppoll(&pfd, 1, &timeout, NULL);
        if (n <= 0)
                kill(pid, SIGKILL);
        if (waitpid(pid, &status, 0) < 0)
                return -errno;
        *ret_ns = clock_now_ns(CLOCK_MONOTONIC) - begin_ns;
        if (n <= 0)
                return -ETIMEDOUT;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The first failure is told with the end of what was said on standard error. */
static void note_failure(struct command_runs *c, size_t i, int outcome)
{
        char *text = c->shared->complaint;
        off_t end;
        ssize_t len;

        if (text[0])
                return;
        if (outcome < 0)
                len = snprintf(text, COMPLAINT_BYTES, "run %zu: %s: ", i, strerror(-outcome));
        else
                len = snprintf(text, COMPLAINT_BYTES, "run %zu ended with status %d: ", i, outcome);
        end = lseek(c->err_fd, 0, SEEK_END);
        (void)!pread(c->err_fd, text + len, (size_t)(COMPLAINT_BYTES - 1 - len),
                     MAX(end - (COMPLAINT_BYTES - 1 - len), (off_t)0));
}

static int open_process(struct workload *w, struct err *err)
{
        struct command_runs *c = command_runs_of(w);
        const struct sched_request request = {.cpu = (int)c->keys.cpu};

        sched_apply(&request, &c->shared->grant);
        c->err_fd = memfd_create("messages", MFD_CLOEXEC);
        if (c->err_fd < 0 || dup2(c->err_fd, STDERR_FILENO) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "no memory for the messages of the command");
        return 0;
}

static int run_process(struct workload *w, int64_t start_ns, struct err *err)
{
        struct command_runs *c = command_runs_of(w);
        int r = clock_sleep_until_ns(CLOCK_MONOTONIC, start_ns, NULL);

        if (r < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "cannot wait for the start");
        for (size_t i = 0; i < SPAWNS; i++)
                if (run_once(NULL, c->keys.timeout_ns, &c->shared->spawn_ns[i]) != 0)
                        return err_set(err, ERR_ENVIRONMENT, EIO, "cannot start a process");
        for (size_t i = 0; i < c->n; i++) {
                r = run_once(c->line.words, c->keys.timeout_ns, &c->shared->wall_ns[i]);
                if (r == 0)
                        continue;
                note_failure(c, i, r);
                c->shared->wall_ns[i] = SAMPLE_MISSING;
        }
        return 0;
}

static void command_runs_free(struct workload *w)
{
        struct command_runs *c = command_runs_of(w);

        if (!c)
                return;
        local_done(&c->base);
        if (c->shared)
                munmap(c->shared, c->shared_bytes);
        command_line_done(&c->line);
        key_table_done(&command_table, &c->keys);
        free(c);
}

static int build(struct workload *w, struct boundary *b, const struct node *config, struct err *err)
{
        struct command_runs *c = command_runs_of(w);
        struct enclosure *e = enclosure_of(b);
        void *shared;
        int r;

        r = key_table_read(&command_table, config, "workload", &c->keys, err);
        if (r >= 0)
                r = enclosure_stage(e, err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < c->keys.argv.n; i++)
                command_line_add(&c->line, "%s", c->keys.argv.names[i]);
        r = enclosure_wrap(e, &c->line, err);
        if (r < 0)
                return r;
        c->base.netns = &e->stage.netns;
        c->n = (size_t)(c->keys.warmup + c->keys.runs);
        c->shared_bytes = sizeof(*c->shared) + c->n * sizeof(c->shared->wall_ns[0]);
        shared = mmap(NULL, c->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (shared == MAP_FAILED)
                return err_set_nomem(err);
        c->shared = shared;
        return 0;
}

static const struct local_work work = {
        .name = "command",
        .size = sizeof(struct command_runs),
        .ops = &command_ops,
        .build = build,
        .open = open_process,
        .run = run_process,
};

static int command_prepare_runs(struct boundary *b, const char *name, const struct node *config, struct workload **ret,
                                struct err *err)
{
        return local_new(&work, b, config, ret, err);
}

static int command_collect(struct workload *w, struct sample_writer *out, struct workload_result *ret, struct err *err)
{
        struct command_runs *c = command_runs_of(w);
        struct shared *s = c->shared;
        json_int_t failed = 0;
        int r = 0;

        for (size_t i = 0; i < c->n && r >= 0; i++) {
                failed += i >= (size_t)c->keys.warmup && s->wall_ns[i] == SAMPLE_MISSING;
                r = sample_write(out, (const int64_t[]){(int64_t)i, s->wall_ns[i]}, err);
        }
        if (r < 0)
                return r;
        sort_i64(s->spawn_ns, SPAWNS);
        s->complaint[COMPLAINT_BYTES - 1] = '\0';
        ret->counts = json_pack("{s:I, s:I, s:I}", "slots", (json_int_t)c->n, "warmup_slots",
                                (json_int_t)c->keys.warmup, "failed", failed);
        ret->notes = json_pack("{s:I, s:s, s:o*}", "spawn_p50_ns", (json_int_t)s->spawn_ns[SPAWNS / 2], "first_failure",
                               text_is_utf8(s->complaint, strlen(s->complaint)) ? s->complaint : "?", "command",
                               sched_grant_json(&s->grant));
        return ret->counts && ret->notes ? 0 : err_set_nomem(err);
}

const struct workload_ops command_ops = {
        .columns = columns,
        .n_columns = ARRAY_SIZE(columns),
        .prepare = command_prepare_runs,
        .start = local_start,
        .event_fd = local_event_fd,
        .stop = local_stop,
        .collect = command_collect,
        .free = command_runs_free,
};

int command_size(const struct node *map, struct workload_size *ret, struct err *err)
{
        struct command_keys k = {0};
        int r = key_table_read(&command_table, map, "workload", &k, err);

        if (r >= 0)
                *ret = (struct workload_size){
                        .duration_ns = (k.runs + k.warmup) * RUN_GUESS_NS,
                        .rows = k.runs + k.warmup,
                        .values = k.runs,
                };
        key_table_done(&command_table, &k);
        return r;
}

int command_missing(const struct node *map, struct err *err)
{
        struct command_keys k = {0};
        char path[PATH_MAX];
        int r = key_table_read(&command_table, map, "workload", &k, err);

        if (r >= 0)
                r = cpu_missing("workload.cpu", k.cpu, err);
        if (r >= 0 && !strchr(k.argv.names[0], '/'))
                r = command_find(k.argv.names[0], path, sizeof(path), err);
        key_table_done(&command_table, &k);
        return r;
}

int command_check(const struct node *map, struct err *err)
{
        const struct node *argv = node_get(map, "argv");

        if (argv && argv->n_items > 0)
                return 0;
        return err_set_at(err, ERR_USAGE, &map->position, "workload.argv names no program");
}
