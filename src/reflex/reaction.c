/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex/reaction.h"

#include <inttypes.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "bpfvm/assemble.h"
#include "reflex/pipeline.h"
#include "reflex/trigger.h"

#define RATE_MAX  100000
#define LINGER_NS NSEC_PER_SEC

/* Who runs it, and who started that one, see this. */
struct shared {
        struct sched_grant grant, trigger_grant;
        uint64_t cost_ps;
        uint64_t n_handled;
        struct reaction_event events[];
};

struct reaction {
        struct reaction_options options;
        struct shared *shared;
        size_t shared_bytes;

        /* Of who opened it. */
        struct output *output;
        struct pipeline *pipeline;
        struct trigger *trigger;
        uint32_t number;
        volatile int is_over;
        const volatile int *stop;
};

int reaction_new(const struct reaction_options *options, struct reaction **ret, struct err *err)
{
        _cleanup_reaction_ struct reaction *r = calloc(1, sizeof(*r));

        if (!r)
                return err_set_nomem(err);
        if (options->rate_hz < 1 || options->rate_hz > RATE_MAX || options->n_events < 1 ||
            options->n_events > REACTION_EVENTS_MAX || options->n_instructions > REACTION_INSTRUCTIONS_MAX)
                return err_set(err, ERR_USAGE, EINVAL,
                               "%" PRIu64 " events, %" PRIu64 " a second, and a program of %" PRIu32
                               " more instructions; at most %d, %d and %d are possible",
                               options->n_events, options->rate_hz, options->n_instructions, REACTION_EVENTS_MAX,
                               RATE_MAX, REACTION_INSTRUCTIONS_MAX);
        r->options = *options;
        r->shared_bytes = sizeof(*r->shared) + (size_t)options->n_events * sizeof(r->shared->events[0]);
        r->shared =
                mmap(NULL, r->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (r->shared == MAP_FAILED) {
                r->shared = NULL;
                return err_set_nomem(err);
        }
        *ret = TAKE_PTR(r);
        return 0;
}

/* Asks for 0 to 19 in turn, which is within a step. */
static int make_program(uint32_t n_instructions, struct object **ret, struct err *err)
{
        _cleanup_text_ struct text text = {0};
        _cleanup_free_ uint8_t *slots = NULL;
        struct fault fault;
        size_t len;
        int r;

        text_add(&text, "r2 = *(u64 *)(r1 + 0)\nr2 %= 20\nr3 = 0\n");
        for (uint32_t i = 0; i < n_instructions; i++)
                text_addf(&text, "r3 += %" PRIu32 "\n", i % 100);
        text_add(&text, "r1 = 1\ncall pwm_write\nexit\n");
        if (text.failed)
                return err_set_nomem(err);
        r = assemble_text(span_of(text.data, text.len), "reaction", &slots, &len, err);
        return r < 0 ? r : object_of_slots(span_of(slots, len), "reaction", NULL, 0, ret, &fault, err);
}

static int make_routine(struct reaction *reaction, struct routine **ret, struct err *err)
{
        const struct routine_options how = {.may_actuate = true};
        _cleanup_object_ struct object *object = NULL;
        _cleanup_verdict_ struct verdict verdict = {0};
        int r;

        r = make_program(reaction->options.n_instructions, &object, err);
        if (r == 0)
                r = routine_new(&object, object->programs[0], &how, ret, &verdict, err);
        if (r == 1)
                return err_set(err, ERR_USAGE, EINVAL, "the program is refused: %s", verdict.fault.text);
        if (r == 0)
                reaction->shared->cost_ps = verdict.cost_ps;
        return r;
}

static void observe(void *userdata, const struct pipeline_trace *trace)
{
        struct reaction *r = userdata;

        if (trace->sequence >= r->options.n_events)
                return;
        r->shared->events[trace->sequence].woke_ns = trace->woke_ns;
        r->shared->events[trace->sequence].entered_ns = trace->entered_ns;
        r->shared->events[trace->sequence].output_ns = trace->output_ns;
        r->shared->n_handled++;
        r->is_over = r->shared->n_handled == r->options.n_events || (r->stop && *r->stop);
}

static int attach(struct reaction *reaction, struct err *err)
{
        const struct pipeline_options how = {.output = reaction->output, .observe = observe, .userdata = reaction};
        const struct attachment attachment = {.kind = ATTACH_EVENT,
                                              .rate_hz = reaction->options.rate_hz,
                                              .authority = AUTHORITY_LEARNED};
        _cleanup_routine_ struct routine *routine = NULL;
        struct fault fault;
        int r;

        r = pipeline_new(&how, &reaction->pipeline, err);
        if (r == 0)
                r = make_routine(reaction, &routine, err);
        if (r == 0)
                r = pipeline_attach(reaction->pipeline, &attachment, &routine, &reaction->number, &fault, err);
        return r == 1 ? err_set(err, ERR_USAGE, EINVAL, "%s", fault.text) : r;
}

int reaction_open(struct reaction *reaction, struct err *err)
{
        struct trigger_options trigger = {
                .rate_hz = reaction->options.rate_hz,
                .n_events = reaction->options.n_events,
                .sched = reaction->options.trigger_sched,
        };
        int r;

        r = output_find("sim")->open(&reaction->output, err);
        if (r == 0)
                r = attach(reaction, err);
        if (r < 0)
                return r;
        trigger.event_fd = pipeline_event_fd(reaction->pipeline, reaction->number);
        r = trigger_new(&trigger, &reaction->trigger, err);
        if (r == 0)
                sched_apply(&reaction->options.sched, &reaction->shared->grant);
        return r;
}

/* What the other process wrote, into the memory that stays. */
static void take_made(struct reaction *reaction)
{
        for (uint64_t i = 0; i < reaction->options.n_events; i++) {
                reaction->shared->events[i].due_ns = trigger_due_ns(reaction->trigger, i);
                reaction->shared->events[i].made_ns = trigger_made_ns(reaction->trigger, i);
        }
        reaction->shared->trigger_grant = trigger_grant(reaction->trigger);
}

int reaction_run(struct reaction *reaction, int64_t start_ns, const volatile int *stop, struct err *err)
{
        int r;

        reaction->stop = stop;
        r = trigger_start(reaction->trigger, start_ns, err);
        if (r < 0)
                return r;
        r = pipeline_run(reaction->pipeline,
                         trigger_due_ns(reaction->trigger, reaction->options.n_events - 1) + LINGER_NS,
                         &reaction->is_over, err);
        take_made(reaction);
        if (r == -EINTR && reaction->shared->n_handled == reaction->options.n_events)
                return 0;
        return r;
}

struct reaction_event reaction_event(const struct reaction *reaction, uint64_t sequence)
{
        return sequence < reaction->options.n_events ? reaction->shared->events[sequence] : (struct reaction_event){0};
}

json_t *reaction_notes_json(const struct reaction *r)
{
        return json_pack("{s:I, s:I, s:o, s:o}", "program_instructions", (json_int_t)r->options.n_instructions + 6,
                         "program_cost_ps", (json_int_t)r->shared->cost_ps, "pipeline",
                         sched_grant_json(&r->shared->grant), "trigger", sched_grant_json(&r->shared->trigger_grant));
}

void reaction_free(struct reaction *r)
{
        if (!r)
                return;
        trigger_free(r->trigger);
        pipeline_free(r->pipeline);
        if (r->output)
                r->output->ops->close(r->output);
        if (r->shared)
                munmap(r->shared, r->shared_bytes);
        free(r);
}
