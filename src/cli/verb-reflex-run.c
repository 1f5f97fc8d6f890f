/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/bpf-input.h"
#include "cli/print-reflex.h"
#include "cli/print.h"
#include "cli/verb-reflex.h"
#include "reflex/trigger.h"

#define START_NS         (20 * NSEC_PER_MSEC) /* for the triggers to get ready */
#define LINGER_NS        (10 * NSEC_PER_MSEC) /* for the last events to be handled */
#define HISTOGRAM_NS     (10 * NSEC_PER_SEC)
#define EVENT_RATE       "1000/s"
#define TRIGGER_RATE_MAX 100000
#define DURATION_MAX     INT64_C(3600000000000)

static const char *const profiles[] = {"embedded", "full", NULL};

struct run_options {
        struct bpf_input input;
        struct option_strings attach;
        int64_t duration_ns;
        int authority, profile, output;
        bool with_audit, json;
};

#define RUN(name) offsetof(struct run_options, name)

static const struct option options[] = {
        {"attach", 'a', OPTION_STRINGS, RUN(attach), "SPEC",
         .help = "run on [PROGRAM=]timer:RATE or [PROGRAM=]event[:RATE]; several times for several"},
        {"duration", 't', OPTION_QUANTITY, RUN(duration_ns), "TIME", "1s", UNIT_DURATION, 1, DURATION_MAX,
         .help = "how long"},
        {"authority", 0, OPTION_CHOICE, RUN(authority), "WHO", "learned", .choices = authority_choices,
         .help = "on whose authority: learned, mission, operator or safety"},
        {"profile", 0, OPTION_CHOICE, RUN(profile), "NAME", "embedded", .choices = profiles,
         .help = "what the verifier allows: embedded or full"},
        {"output", 0, OPTION_CHOICE, RUN(output), "DRIVER", "sim", .choices = output_choices,
         .help = "where values go"},
        {"hex", 0, OPTION_FLAG, RUN(input.is_hex), .help = "FILE is hexadecimal text"},
        {"asm", 0, OPTION_FLAG, RUN(input.is_asm), .help = "FILE is assembly text"},
        {"map", 0, OPTION_STRINGS, RUN(input.maps), "SPEC",
         .help = "a map, named by its place: array:4:8:16 and so on"},
        {"audit", 0, OPTION_FLAG, RUN(with_audit), .help = "print the monitor's last records, too"},
        {"json", 0, OPTION_FLAG, RUN(json), .help = "print the result as JSON"},
        {0},
};

static volatile int quit;

static void on_signal(int signal)
{
        quit = 1;
}

/* What runs, beside the pipeline itself. */
struct session {
        const struct run_options *options;
        char *file; /* bytes of FILE */
        size_t len;
        const char *path;
        struct output *output;
        struct pipeline *pipeline;
        size_t n;
        struct print_reflex_row rows[PIPELINE_ATTACHMENTS_MAX];
        struct trigger *triggers[PIPELINE_ATTACHMENTS_MAX]; /* NULL for timers */
        char *programs[PIPELINE_ATTACHMENTS_MAX];           /* names */
};

static void session_done(struct session *s)
{
        for (size_t i = 0; i < s->n; i++) {
                trigger_free(s->triggers[i]);
                histogram_done(&s->rows[i].wake);
                histogram_done(&s->rows[i].output);
                free(s->programs[i]);
        }
        pipeline_free(s->pipeline);
        if (s->output)
                s->output->ops->close(s->output);
        free(s->file);
}

static void observe(void *userdata, const struct pipeline_trace *trace)
{
        struct session *s = userdata;
        struct print_reflex_row *row = &s->rows[trace->attachment]; /* numbered as they were attached */
        const struct trigger *trigger = s->triggers[trace->attachment];
        int64_t made_ns = trigger ? trigger_made_ns(trigger, trace->sequence) : trace->due_ns;

        if (trace->woke_ns >= made_ns)
                histogram_add(&row->wake, (uint64_t)(trace->woke_ns - made_ns));
        if (trace->output_ns > 0)
                histogram_add(&row->output, (uint64_t)(trace->output_ns - trace->entered_ns));
}

/* Reads "[PROGRAM=]KIND:RATE"; *@ret_program is NULL where none is named. */
static int parse_attach(const char *spec, char **ret_program, struct attachment *ret, struct err *err)
{
        const char *equals = strchr(spec, '='), *where = equals ? equals + 1 : spec, *colon = strchr(where, ':');
        size_t len = colon ? (size_t)(colon - where) : strlen(where);
        bool is_timer = len == 5 && strncmp(where, "timer", len) == 0;
        int64_t rate_hz;

        if ((!is_timer && (len != 5 || strncmp(where, "event", len) != 0)) || (is_timer && !colon))
                return err_set(err, ERR_USAGE, EINVAL,
                               "--attach %s: expected timer:RATE or event:RATE, such as timer:1000/s", spec);
        if (unit_parse(UNIT_FREQUENCY, colon ? colon + 1 : EVENT_RATE, &rate_hz, err) < 0) {
                err_prefix(err, "--attach %s", spec);
                return -EINVAL;
        }
        if (rate_hz < 1 || rate_hz > TRIGGER_RATE_MAX)
                return err_set(err, ERR_USAGE, EINVAL, "--attach %s: from 1/s to %d/s are possible", spec,
                               TRIGGER_RATE_MAX);
        if (equals) {
                *ret_program = strndup(spec, (size_t)(equals - spec));
                if (!*ret_program)
                        return err_set_nomem(err);
        }
        ret->kind = is_timer ? ATTACH_TIMER : ATTACH_EVENT;
        ret->rate_hz = (uint64_t)rate_hz;
        return 0;
}

static int refused(const struct session *s, const struct program *program, const struct fault *fault, struct err *err)
{
        int r = 0;

        if (s->options->json)
                r = print_json(json_pack("{s:i, s:s, s:o}", "assay", 1, "program", program->name, "refused",
                                         bpf_fault_to_json(program, fault)),
                               err);
        else
                bpf_print_fault(program, fault);
        return r < 0 ? r : 1;
}

/* A routine of its own for each attachment, with maps of its own. Return: 0; 1 refused, and said so. */
static int make_routine(const struct session *s, const char *name, struct routine **ret, struct err *err)
{
        const struct routine_options how = {.profile = profile_find(profiles[s->options->profile]),
                                            .may_actuate = true};
        struct bpf_input input = s->options->input;
        _cleanup_object_ struct object *object = NULL;
        _cleanup_verdict_ struct verdict verdict = {0};
        struct program *program = NULL;
        int r;

        input.program = name;
        r = bpf_input_load_bytes(&input, span_of(s->file, s->len), s->path, &object, err);
        if (r >= 0)
                r = bpf_input_program(&input, object, &program, err);
        if (r >= 0)
                r = routine_new(&object, program, &how, ret, &verdict, err);
        return r == 1 ? refused(s, program, &verdict.fault, err) : r;
}

static int attach_routine(struct session *s, const struct attachment *attachment, struct routine **routine,
                          struct err *err)
{
        struct program named = {.name = s->programs[s->n]};
        struct print_reflex_row *row = &s->rows[s->n];
        struct fault fault;
        int r;

        row->kind = attachment->kind;
        row->rate_hz = attachment->rate_hz;
        row->cost_ps = routine_cost_ps(*routine);
        row->program = s->programs[s->n];
        r = pipeline_attach(s->pipeline, attachment, routine, &row->number, &fault, err);
        if (r == 1)
                return refused(s, &named, &fault, err);
        if (r == 0 && (histogram_init(&row->wake, HISTOGRAM_NS) < 0 || histogram_init(&row->output, HISTOGRAM_NS) < 0))
                return err_set_nomem(err);
        return r;
}

static int add_attachment(struct session *s, const char *spec, struct err *err)
{
        struct attachment attachment = {.authority = (enum authority)s->options->authority};
        _cleanup_routine_ struct routine *routine = NULL;
        _cleanup_free_ char *program = NULL;
        int r;

        if (s->n == PIPELINE_ATTACHMENTS_MAX)
                return err_set(err, ERR_USAGE, EINVAL, "--attach: at most %d are possible", PIPELINE_ATTACHMENTS_MAX);
        r = parse_attach(spec, &program, &attachment, err);
        if (r == 0)
                r = make_routine(s, program, &routine, err);
        if (r != 0)
                return r;
        s->programs[s->n] = strdup(routine_name(routine));
        if (!s->programs[s->n])
                return err_set_nomem(err);
        r = attach_routine(s, &attachment, &routine, err);
        s->n++;
        return r;
}

static int session_open(struct session *s, struct err *err)
{
        struct pipeline_options how = {.observe = observe, .userdata = s};
        int r;

        r = output_find(output_choices[s->options->output])->open(&s->output, err);
        how.output = s->output;
        if (r == 0)
                r = pipeline_new(&how, &s->pipeline, err);
        for (size_t i = 0; i < s->options->attach.n && r == 0; i++)
                r = add_attachment(s, s->options->attach.items[i], err);
        return r;
}

static int make_triggers(struct session *s, struct err *err)
{
        int64_t duration_ns = s->options->duration_ns;

        for (size_t i = 0; i < s->n; i++) {
                const struct print_reflex_row *row = &s->rows[i];
                struct trigger_options trigger = {
                        .rate_hz = row->rate_hz,
                        .n_events = (uint64_t)((__int128)duration_ns * row->rate_hz / NSEC_PER_SEC),
                        .sched = {.cpu = SCHED_CPU_ANY, .precise_timers = true},
                };
                int r;

                if (row->kind != ATTACH_EVENT)
                        continue;
                trigger.event_fd = pipeline_event_fd(s->pipeline, row->number);
                r = trigger_new(&trigger, &s->triggers[i], err);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Until the time is over, or the user says so. */
static int session_run(struct session *s, struct err *err)
{
        const struct sigaction action = {.sa_handler = on_signal};
        int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC), end_ns = now_ns + s->options->duration_ns;
        int r = 0;

        for (size_t i = 0; i < s->n && r == 0; i++) {
                if (!s->triggers[i])
                        continue;
                r = trigger_start(s->triggers[i], now_ns + START_NS, err);
                end_ns = now_ns + START_NS + s->options->duration_ns + LINGER_NS;
        }
        if (r < 0)
                return r;
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        r = pipeline_run(s->pipeline, end_ns, &quit, err);
        return r == -EINTR ? 0 : r;
}

static int session_print(const struct session *s, struct err *err)
{
        const struct print_reflex result = {.pipeline = s->pipeline, .rows = s->rows, .n_rows = s->n};
        _cleanup_text_ struct text out = {0};

        if (s->options->json)
                return print_json(print_reflex_json(&result), err);
        print_reflex_text(&result, s->options->with_audit, &out);
        return print_text(&out, err);
}

static int run(const void *opts, int argc, char **argv, struct err *err)
{
        _cleanup_(session_done) struct session s = {.options = opts,
                                                    .path = streq(argv[0], "-") ? "standard input" : argv[0]};
        int r;

        if (s.options->attach.n == 0)
                return err_set(err, ERR_USAGE, EINVAL,
                               "when is it to run? Give --attach timer:1000/s or --attach event");
        r = bpf_input_read(argv[0], &s.file, &s.len, err);
        if (r == 0)
                r = session_open(&s, err);
        if (r == 1)
                return 3;
        if (r == 0)
                r = make_triggers(&s, err);
        if (r == 0)
                r = session_run(&s, err);
        if (r == 0)
                r = session_print(&s, err);
        return r;
}

const struct verb verb_reflex_run = {
        .name = "run",
        .arguments = "FILE",
        .summary = "run programs on timers and events",
        .description = "Verifies programs of FILE, attaches them, and lets what they ask for through the monitor to an "
                       "output.\n"
                       "An event attach point gets events from a process beside it. A program that is refused is "
                       "explained;\n"
                       "exit code 3.",
        .min_args = 1,
        .max_args = 1,
        .options = options,
        .options_size = sizeof(struct run_options),
        .run = run,
};
