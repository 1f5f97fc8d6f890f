/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/number.h"
#include "cli/print.h"
#include "cli/table.h"
#include "cli/verb-reflex.h"
#include "config/unit.h"
#include "reflex/monitor.h"

struct decide_options {
        int authority, slew;
        bool is_stopped, is_held, json;
};

static const char *const slews[] = {"window", "request", NULL};

static const struct option options[] = {
        {"authority", 0, OPTION_CHOICE, offsetof(struct decide_options, authority), "WHO", "learned",
         .choices = authority_choices, .help = "who asks: learned, mission, operator or safety"},
        {"slew", 0, OPTION_CHOICE, offsetof(struct decide_options, slew), "RULE", "window", .choices = slews,
         .help = "what a step is counted from: the window's start, or each request"},
        {"stopped", 0, OPTION_FLAG, offsetof(struct decide_options, is_stopped), .help = "after an emergency stop"},
        {"held", 0, OPTION_FLAG, offsetof(struct decide_options, is_held), .help = "while the channel is held"},
        {"json", 0, OPTION_FLAG, offsetof(struct decide_options, json), .help = "print the result as JSON"},
        {0},
};

/* Reads "VALUE" or "VALUE@TIME". */
static int parse_request(const char *text, int64_t *value, int64_t *now_ns, struct err *err)
{
        size_t len = strcspn(text, "@");
        int r;

        if (number_parse_i64(span_of(text, len), value) < 0)
                return err_set(err, ERR_USAGE, EINVAL,
                               "%s: expected a value of 64 bits, perhaps with a time: 90 or 90@2ms", text);
        if (text[len] == 0)
                return 0;
        r = unit_parse(UNIT_DURATION, text + len + 1, now_ns, err);
        if (r < 0)
                err_prefix(err, "%s", text);
        return r;
}

static int ask(const struct decide_options *o, struct monitor *m, uint32_t channel, const char *text,
               struct audit_record *ret, struct err *err)
{
        int64_t now_ns = m->now_ns, value;
        int r;

        r = parse_request(text, &value, &now_ns, err);
        if (r < 0)
                return r;
        monitor_decide(m, channel, value, (enum authority)o->authority, 0, now_ns);
        while (audit_next(&m->audit, ret))
                ;
        return 0;
}

static void add_row(struct table *table, const struct audit_record *record)
{
        char time[48];

        table_add(table, unit_format(UNIT_DURATION, record->now_ns, time));
        table_addf(table, "%" PRIi64, record->asked);
        table_add(table, answer_name((enum answer)record->answer));
        if (record->answer == ANSWER_REJECT)
                table_add(table, "-");
        else
                table_addf(table, "%" PRIi32, record->applied);
        table_add(table, cause_name((enum cause)record->cause));
        table_add(table, cause_meaning((enum cause)record->cause));
}

static json_t *to_json(const struct audit_record *record)
{
        json_t *json = json_pack("{s:I, s:I, s:s, s:s}", "time_ns", (json_int_t)record->now_ns, "asked",
                                 (json_int_t)record->asked, "answer", answer_name((enum answer)record->answer), "cause",
                                 cause_name((enum cause)record->cause));

        if (json && record->answer != ANSWER_REJECT)
                json_object_set_new(json, "applied", json_integer(record->applied));
        return json;
}

static int begin(const struct decide_options *o, const char *name, struct monitor *m, uint32_t *ret_channel,
                 struct err *err)
{
        struct envelope envelopes[CHANNELS];
        int r;

        if (channel_parse(span_of_text(name), ret_channel) < 0)
                return err_set(err, ERR_USAGE, EINVAL, "%s: expected a channel such as pwm:1 or gpio:17", name);
        envelopes_default(o->slew == 0 ? SLEW_WINDOW : SLEW_REQUEST, envelopes);
        r = monitor_init(m, envelopes, 0, err);
        if (r < 0)
                return r;
        if (o->is_held)
                monitor_hold(m, *ret_channel, AUTHORITY_OPERATOR, 0, 0);
        if (o->is_stopped)
                monitor_stop(m, AUTHORITY_OPERATOR, 0, 0);
        return 0;
}

static int run(const void *opts, int argc, char **argv, struct err *err)
{
        const struct decide_options *o = opts;
        _cleanup_json_ json_t *decisions = json_array();
        _cleanup_table_ struct table table;
        _cleanup_text_ struct text out = {0};
        struct monitor monitor;
        uint32_t channel;
        int r;

        table_init(&table, "rrlrll");
        for (size_t i = 0; i < 6; i++)
                table_add(&table, (const char *const[]){"time", "asked", "answer", "applied", "cause", ""}[i]);
        r = begin(o, argv[0], &monitor, &channel, err);
        for (int i = 1; i < argc && r == 0; i++) {
                struct audit_record record;

                r = ask(o, &monitor, channel, argv[i], &record, err);
                if (r < 0)
                        return r;
                add_row(&table, &record);
                json_array_append_new(decisions, to_json(&record));
        }
        if (r < 0)
                return r;
        if (o->json)
                return print_json(json_pack("{s:i, s:s, s:s, s:O}", "assay", 1, "channel", argv[0], "authority",
                                            authority_name((enum authority)o->authority), "decisions", decisions),
                                  err);
        table_render(&table, 0, &out);
        return print_text(&out, err);
}

const struct verb verb_reflex_decide = {
        .name = "decide",
        .arguments = "CHANNEL VALUE[@TIME]...",
        .summary = "what the monitor makes of requests, and why",
        .description =
                "Asks the monitor for each VALUE in turn on a channel (pwm:0 to pwm:3, gpio:0 to gpio:27) that stands "
                "at\n"
                "its safe value at time 0. A TIME, such as 500us, holds until another is given. Before a negative "
                "value,\n"
                "-- ends the options.",
        .min_args = 2,
        .max_args = -1,
        .options = options,
        .options_size = sizeof(struct decide_options),
        .run = run,
};
