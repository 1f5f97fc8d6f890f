/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/kind-escape.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "campaign/enclosure.h"
#include "campaign/escape-native.h"
#include "campaign/origin.h"
#include "campaign/watch.h"
#include "sandbox/bundle.h"

#define READY_NS     (10 * NSEC_PER_SEC)
#define EXIT_NS      (2 * NSEC_PER_SEC)
#define STUCK_NS     (60 * NSEC_PER_SEC)
#define GUESS_NS     NSEC_PER_SEC
#define RECORD_BYTES ((size_t)4 << 20)
#define FETCHES      5

/* How an attempt ended, in a run's record. */
#define RESULT_ESCAPED "escaped"
#define RESULT_LOST    "lost"
#define RESULT_UNTRIED "untried"

static const struct key keys[] = {{0}};

const struct key_table escape_table = {
        .name = "escape",
        .help = "Every way out that a sandbox has to close, tried; without a boundary each of them has to lead out. "
                "Where the "
                "origin may be reached, it is fetched from, too.",
        .size = 1, /* there is nothing to read */
        .has_kind = true,
        .keys = keys,
};

const struct metric escape_metrics[] = {
        {.name = "escapes", .unit = METRIC_COUNT, .source = METRIC_COUNTER, .series = "escapes"},
        {.name = "blocked-allowed", .unit = METRIC_COUNT, .source = METRIC_COUNTER, .series = "blocked_allowed"},
        {.name = "unproven", .unit = METRIC_COUNT, .source = METRIC_COUNTER, .series = "unproven"},
        {},
};

struct escape {
        struct workload base;
        struct enclosure *enclosure;
        struct origin origin;
        struct command command;       /* fetches, or does nothing, in the sandbox whose prober tries the ways out */
        struct child native;          /* tries them where there is no boundary */
        struct escape_counts *counts; /* of it; shared */
        struct err *failure;          /* of it; shared */
        struct watch watch;
        int record_dirfd; /* a file system in memory, for the sandbox's record of the run */
};

static struct escape *escape_of(struct workload *w)
{
        return (struct escape *)w; /* the first member */
}

static bool is_native(const struct escape *x)
{
        return !x->enclosure->wrap;
}

static int run_native(struct child_side *side, void *userdata)
{
        struct escape *x = userdata;
        int64_t start_ns;

        if (child_ready(side) < 0 || child_wait_go(side, &start_ns) < 0)
                return 1;
        return escape_native(x->counts, x->failure) < 0;
}

static int start_native(struct escape *x, struct err *err)
{
        const struct child_options options = {.name = "escape", .netns = &x->enclosure->stage.netns};
        const int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_ANONYMOUS;
        void *counts = mmap(NULL, sizeof(*x->counts), protection, flags, -1, 0);
        void *failure = mmap(NULL, sizeof(*x->failure), protection, flags, -1, 0);
        int r;

        x->counts = counts == MAP_FAILED ? NULL : counts;
        x->failure = failure == MAP_FAILED ? NULL : failure;
        if (!x->counts || !x->failure)
                return err_set_nomem(err);
        r = child_start(&options, run_native, x, &x->native, err);
        return r < 0 ? r : child_wait_ready(&x->native, READY_NS, err);
}

static int start_origin(struct escape *x, struct err *err)
{
        const struct http_origin_config config = {.body_bytes = 1024,
                                                  .event_bytes = HTTP_EVENT_BYTES_MIN,
                                                  .threads = 1,
                                                  .sched.cpu = SCHED_CPU_ANY};

        return !x->enclosure->is_cut_off ? origin_start(&x->enclosure->stage, &config, &x->origin, err) : 0;
}

/* Without a name anywhere, so that nothing is left of it. */
static int make_record_folder(struct escape *x, struct err *err)
{
        _cleanup_close_ int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);

        if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return err_set_errno(err, ERR_UNSUPPORTED, errno, "cannot make a file system in memory");
        x->record_dirfd = fsmount(fs, FSMOUNT_CLOEXEC, 0);
        if (x->record_dirfd < 0)
                return err_set_errno(err, ERR_UNSUPPORTED, errno, "cannot use a file system in memory");
        return 0;
}

static int add_fetch(const struct escape *x, struct command_line *line, struct err *err)
{
        char self[PATH_MAX], origin[ADDRESS_TEXT];
        int r = command_self(self, sizeof(self), err);

        if (r < 0)
                return r;
        command_line_add(line, "%s", self);
        command_line_add(line, "http");
        command_line_add(line, "get");
        command_line_add(line, "--quiet");
        command_line_add(line, "--json");
        command_line_add(line, "--count");
        command_line_add(line, "%d", FETCHES);
        command_line_add(line, "--timeout");
        command_line_add(line, "2s");
        command_line_add(line, "http://%s/", address_format(&x->enclosure->stage.origin, origin));
        return 0;
}

static int prepare_command(struct escape *x, struct err *err)
{
        _cleanup_command_line_ struct command_line line = {0};
        char record[64];
        int r = 0;

        if (!x->enclosure->is_cut_off)
                r = add_fetch(x, &line, err);
        else
                command_line_add(&line, "true");
        if (r >= 0 && !is_native(x))
                r = make_record_folder(x, err);
        if (r < 0)
                return r;
        snprintf(record, sizeof(record), "/proc/%d/fd/%d/record", (int)getpid(), x->record_dirfd);
        x->enclosure->record = record;
        r = enclosure_wrap(x->enclosure, &line, err);
        x->enclosure->record = NULL;
        return r < 0 ? r : command_prepare("escape", &x->enclosure->stage.netns, &line, &x->command, err);
}

static void escape_free(struct workload *w)
{
        struct escape *x = escape_of(w);

        if (!x)
                return;
        command_done(&x->command);
        child_done(&x->native);
        origin_done(&x->origin);
        watch_done(&x->watch);
        close_cleanup(&x->record_dirfd);
        if (x->counts)
                munmap(x->counts, sizeof(*x->counts));
        if (x->failure)
                munmap(x->failure, sizeof(*x->failure));
        free(x);
}

/* What the kernel refuses everybody by default, wherever it comes from, would prove nothing. */
static int open_stage(struct escape *x, struct err *err)
{
        static const struct {
                const char *name, *value;
        } settings[] = {
                {"ipv4/conf/all/accept_source_route", "1"},
                {"ipv4/conf/lo/accept_source_route", "1"},
                {"ipv4/conf/lo/accept_local", "1"},
                {"ipv4/conf/lo/route_localnet", "1"},
                {"ipv4/tcp_fastopen", "3"},
                {"ipv4/ping_group_range", "0 2147483647"},
        };
        int r = enclosure_stage(x->enclosure, err);

        for (size_t i = 0; i < ARRAY_SIZE(settings) && r >= 0; i++)
                r = netns_sysctl_write(&x->enclosure->stage.netns, settings[i].name, settings[i].value, err);
        return r;
}

static int escape_build(struct escape *x, struct err *err)
{
        int r;

        r = open_stage(x, err);
        if (r >= 0)
                r = start_origin(x, err);
        if (r >= 0)
                r = prepare_command(x, err);
        if (r >= 0 && is_native(x))
                r = start_native(x, err);
        if (r < 0)
                return r;
        return watch_open(&x->watch, &(int){is_native(x) ? x->native.pidfd : x->command.child.pidfd}, 1, STUCK_NS, err);
}

static int escape_prepare(struct boundary *b, const char *name, const struct node *config, struct workload **ret,
                          struct err *err)
{
        struct escape *x = calloc(1, sizeof(*x));
        int r;

        if (!x)
                return err_set_nomem(err);
        x->base.ops = &escape_ops;
        x->enclosure = enclosure_of(b);
        x->origin = (struct origin)ORIGIN_INIT;
        x->command = (struct command)COMMAND_INIT;
        x->native = (struct child)CHILD_INIT;
        x->watch = (struct watch)WATCH_INIT;
        x->record_dirfd = -1;
        r = escape_build(x, err);
        if (r < 0) {
                escape_free(&x->base);
                return r;
        }
        *ret = &x->base;
        return 0;
}

static int escape_start(struct workload *w, int64_t start_ns, struct err *err)
{
        struct escape *x = escape_of(w);
        int r = 0;

        if (!x->enclosure->is_cut_off)
                r = child_go(&x->origin.child, 0, err);
        if (r >= 0 && is_native(x))
                r = child_go(&x->native, start_ns, err);
        return r < 0 ? r : child_go(&x->command.child, start_ns, err);
}

static int escape_event_fd(const struct workload *w)
{
        return ((const struct escape *)w)->watch.epoll;
}

static int stop_native(struct escape *x, struct err *err)
{
        struct child_status status = {0};
        int r = child_wait(&x->native, EXIT_NS, &status);

        if (r < 0)
                return err_set(err, ERR_ENVIRONMENT, -r, "the ways out did not end");
        if (x->failure->kind == ERR_NONE)
                return child_check("the ways out", &status, err);
        *err = *x->failure;
        return -EIO;
}

/* 125 is the sandbox's word that something got out, which its record tells, or that it could not be put in force. */
static int escape_stop(struct workload *w, struct err *err)
{
        struct escape *x = escape_of(w);
        int r, code = 0;

        r = command_wait(&x->command, STUCK_NS, &code, err);
        if (r >= 0 && is_native(x))
                r = stop_native(x, err);
        if (r >= 0 && !x->enclosure->is_cut_off)
                r = origin_stop(&x->origin, err);
        return r;
}

/* How many of the five requests did not come back; all of them where the client did not even run. */
static int count_blocked(struct escape *x, int64_t *ret, struct err *err)
{
        _cleanup_json_ json_t *result = NULL;
        _cleanup_free_ char *text = NULL;
        json_t *counts;
        int64_t completed = 0;
        size_t len;
        int r;

        *ret = 0;
        if (x->enclosure->is_cut_off)
                return 0;
        r = command_output(&x->command, RECORD_BYTES, &text, &len, err);
        if (r >= 0 && len > 0)
                r = json_parse(span_of(text, len), "the client's result", &result, err);
        if (r >= 0 && len > 0)
                r = json_get_object(result, "the client's result", "counts", &counts, err);
        if (r >= 0 && len > 0)
                r = json_get_i64(counts, "the client's result", "completed", &completed, err);
        *ret = FETCHES - completed;
        return r;
}

static json_int_t count_results(json_t *proofs, const char *result)
{
        json_int_t n = 0;
        json_t *proof;
        size_t i;

        json_array_foreach(proofs, i, proof)
        {
                const char *text = json_string_value(json_object_get(proof, "result"));

                n += text && streq(text, result);
        }
        return n;
}

/* What the sandbox recorded of its own prober. */
static int collect_record(struct escape *x, int64_t blocked, struct workload_result *ret, struct err *err)
{
        _cleanup_json_ json_t *record = NULL;
        json_t *enforcement, *proofs;
        char complaint[400];
        int r;

        r = json_load(x->record_dirfd, "record/" BUNDLE_FILE, RECORD_BYTES, &record, err);
        if (r < 0) {
                command_complaint(&x->command, complaint, sizeof(complaint));
                err_prefix(err, "the sandbox left no record (%s)", complaint);
                return r;
        }
        r = json_get_object(record, BUNDLE_FILE, "enforcement", &enforcement, err);
        if (r >= 0)
                r = json_get_array(enforcement, BUNDLE_FILE, "proofs", &proofs, err);
        if (r < 0)
                return r;
        if (json_array_size(proofs) == 0)
                return err_set(err, ERR_ENVIRONMENT, ENODATA, "the sandbox tried no way out");
        ret->counts = json_pack("{s:I, s:I, s:I, s:I}", "attempts", (json_int_t)json_array_size(proofs), "escapes",
                                count_results(proofs, RESULT_ESCAPED), "blocked_allowed",
                                (json_int_t)blocked + count_results(proofs, RESULT_LOST), "unproven",
                                count_results(proofs, RESULT_UNTRIED));
        ret->notes = json_pack("{s:O}", "proofs", proofs);
        return ret->counts && ret->notes ? 0 : err_set_nomem(err);
}

static int escape_collect(struct workload *w, struct sample_writer *out, struct workload_result *ret, struct err *err)
{
        struct escape *x = escape_of(w);
        const struct escape_counts *c = x->counts;
        int64_t blocked;
        int r = count_blocked(x, &blocked, err);

        if (r < 0)
                return r;
        if (!is_native(x))
                return collect_record(x, blocked, ret, err);
        ret->counts = json_pack("{s:I, s:I, s:I, s:I, s:I}", "attempts", (json_int_t)c->attempts, "escapes",
                                (json_int_t)c->arrived, "blocked_allowed", (json_int_t)blocked, "unproven",
                                (json_int_t)c->unproven, "absent", (json_int_t)c->absent);
        ret->notes = json_pack("{s:s, s:s}", "unproven", c->unproven_names, "absent", c->absent_names);
        return ret->counts && ret->notes ? 0 : err_set_nomem(err);
}

const struct workload_ops escape_ops = {
        .prepare = escape_prepare,
        .start = escape_start,
        .event_fd = escape_event_fd,
        .stop = escape_stop,
        .collect = escape_collect,
        .free = escape_free,
};

int escape_size(const struct node *map, struct workload_size *ret, struct err *err)
{
        *ret = (struct workload_size){.duration_ns = GUESS_NS};
        return 0;
}

int escape_missing(const struct node *map, struct err *err)
{
        return 0; /* the boundary names what it lacks */
}
