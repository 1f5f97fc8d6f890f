/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/print-reflex.h"

#include <inttypes.h>

#include "base/number.h"
#include "cli/table.h"
#include "stats/quantile.h"

static const char *const kind_names[] = {[ATTACH_TIMER] = "timer", [ATTACH_EVENT] = "event"};

static void add_quantile(struct table *table, const struct histogram *h, uint32_t ppm)
{
        uint64_t value;
        char buf[48];

        if (!quantile_publishable(h->n, ppm) || histogram_quantile(h, 0, ppm, &value) < 0)
                table_add(table, "-");
        else
                table_add(table, number_format_ns((int64_t)value, buf));
}

static void add_attachments(const struct print_reflex *result, struct text *out)
{
        static const char *const heads[] = {"program",     "on",      "events",
                                            "missed",      "delayed", "waiting",
                                            "wake-up p50", "p99",     "entry to output p50",
                                            "p99"};
        _cleanup_table_ struct table table;

        table_init(&table, "llrrrrrrrr");
        for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
                table_add(&table, heads[i]);
        for (size_t i = 0; i < result->n_rows; i++) {
                const struct print_reflex_row *row = &result->rows[i];
                struct pipeline_counts c = {0};

                pipeline_counts(result->pipeline, row->number, &c);
                table_add(&table, row->program);
                table_addf(&table, "%s:%" PRIu64 "/s", kind_names[row->kind], row->rate_hz);
                table_addf(&table, "%" PRIu64, c.events);
                table_addf(&table, "%" PRIu64, c.missed);
                table_addf(&table, "%" PRIu64, c.delayed);
                table_addf(&table, "%" PRIu64, c.waiting);
                add_quantile(&table, &row->wake, 500000);
                add_quantile(&table, &row->wake, 990000);
                add_quantile(&table, &row->output, 500000);
                add_quantile(&table, &row->output, 990000);
        }
        table_render(&table, 0, out);
}

static void add_decisions(const struct print_reflex *result, struct text *out)
{
        _cleanup_table_ struct table table;

        table_init(&table, "lrrrr");
        table_add(&table, "decisions of");
        for (unsigned i = 0; i < ANSWERS; i++)
                table_add(&table, answer_name((enum answer)i));
        for (size_t i = 0; i < result->n_rows; i++) {
                struct pipeline_counts c = {0};

                pipeline_counts(result->pipeline, result->rows[i].number, &c);
                table_add(&table, result->rows[i].program);
                for (unsigned k = 0; k < ANSWERS; k++)
                        table_addf(&table, "%" PRIu64, c.answers[k]);
        }
        text_add(out, "\n");
        table_render(&table, 0, out);
}

static void add_channels(const struct print_reflex *result, struct text *out)
{
        const struct monitor *m = pipeline_monitor(result->pipeline);
        const char *separator = "\nat the end: ";
        char name[16];

        for (uint32_t i = 0; i < CHANNELS; i++) {
                const struct monitor_channel *c = &m->channels[i];

                if (!c->exists || c->applied == c->safe)
                        continue;
                text_addf(out, "%s%s %" PRIi32, separator, channel_format(i, name), c->applied);
                separator = ", ";
        }
        text_add(out, separator[0] == '\n' ? "\nat the end: all channels at their safe values\n"
                                           : "; all others at their safe values\n");
        if (m->is_stopped)
                text_addf(out, "stopped: the emergency stop number %" PRIu32 " is latched\n", m->epoch);
        if (pipeline_output_errors(result->pipeline) > 0)
                text_addf(out, "the output refused %" PRIu64 " writes\n", pipeline_output_errors(result->pipeline));
}

static void add_utilisation(const struct print_reflex *result, struct text *out)
{
        char used[48];

        text_addf(out, "utilisation admitted: %s%% of the processor, by the cost table\n",
                  number_format_scaled((int64_t)pipeline_utilisation_ppm(result->pipeline), 10000, 3, used));
}

static void add_audit(const struct print_reflex *result, struct text *out)
{
        struct monitor *m = pipeline_monitor(result->pipeline);
        _cleanup_table_ struct table table;
        struct audit_record record;
        char channel[16];

        table_init(&table, "rlllrlrl");
        for (size_t i = 0; i < 8; i++)
                table_add(&table, (const char *const[]){"time, ns", "event", "channel", "authority", "asked", "answer",
                                                        "applied", "cause"}[i]);
        while (audit_next(&m->audit, &record)) {
                table_addf(&table, "%" PRIi64, record.now_ns);
                table_add(&table, audit_event_name((enum audit_event)record.event));
                table_add(&table, channel_format(record.channel, channel));
                table_add(&table, authority_name((enum authority)record.authority));
                table_addf(&table, "%" PRIi64, record.asked);
                table_add(&table, answer_name((enum answer)record.answer));
                if (record.answer == ANSWER_REJECT)
                        table_add(&table, "-");
                else
                        table_addf(&table, "%" PRIi32, record.applied);
                table_add(&table, cause_name((enum cause)record.cause));
        }
        text_addf(out, "\naudit, %" PRIu64 " older records overwritten:\n", audit_dropped(&m->audit));
        table_render(&table, 2, out);
}

void print_reflex_text(const struct print_reflex *result, bool with_audit, struct text *out)
{
        add_attachments(result, out);
        add_decisions(result, out);
        add_channels(result, out);
        add_utilisation(result, out);
        if (with_audit)
                add_audit(result, out);
}

/* Quantiles that the number of values is too small for are null. */
static json_t *histogram_to_json(const struct histogram *h)
{
        static const struct {
                const char *name;
                uint32_t ppm;
        } quantiles[] = {{"p50_ns", 500000}, {"p99_ns", 990000}, {"p99_9_ns", 999000}};
        json_t *json = json_pack("{s:I}", "n", (json_int_t)h->n);

        for (size_t i = 0; i < ARRAY_SIZE(quantiles) && json; i++) {
                bool is_there = quantile_publishable(h->n, quantiles[i].ppm);
                uint64_t value = 0;

                if (is_there)
                        histogram_quantile(h, 0, quantiles[i].ppm, &value);
                json_object_set_new(json, quantiles[i].name, is_there ? json_integer((json_int_t)value) : json_null());
        }
        return json;
}

static json_t *row_to_json(const struct print_reflex *result, const struct print_reflex_row *row)
{
        struct pipeline_counts c = {0};
        json_t *json;

        pipeline_counts(result->pipeline, row->number, &c);
        json = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "program", row->program, "kind",
                         kind_names[row->kind], "rate_hz", (json_int_t)row->rate_hz, "cost_ps",
                         (json_int_t)row->cost_ps, "events", (json_int_t)c.events, "missed", (json_int_t)c.missed,
                         "delayed", (json_int_t)c.delayed, "waiting", (json_int_t)c.waiting, "wake_up",
                         histogram_to_json(&row->wake), "entry_to_output", histogram_to_json(&row->output));
        for (unsigned i = 0; i < ANSWERS && json; i++)
                json_object_set_new(json, answer_name((enum answer)i), json_integer((json_int_t)c.answers[i]));
        return json;
}

static json_t *audit_to_json(struct audit *audit)
{
        json_t *records = json_array();
        struct audit_record r;
        char channel[16];

        while (audit_next(audit, &r))
                json_array_append_new(
                        records, json_pack("{s:I, s:s, s:s, s:s, s:I, s:s, s:I, s:s, s:I, s:I}", "time_ns",
                                           (json_int_t)r.now_ns, "event", audit_event_name((enum audit_event)r.event),
                                           "channel", channel_format(r.channel, channel), "authority",
                                           authority_name((enum authority)r.authority), "asked", (json_int_t)r.asked,
                                           "answer", answer_name((enum answer)r.answer), "applied",
                                           (json_int_t)r.applied, "cause", cause_name((enum cause)r.cause), "source",
                                           (json_int_t)r.source, "epoch", (json_int_t)r.epoch));
        return records;
}

json_t *print_reflex_json(const struct print_reflex *result)
{
        struct monitor *m = pipeline_monitor(result->pipeline);
        json_t *rows = json_array(), *channels = json_object(), *audit = audit_to_json(&m->audit);
        char name[16];

        for (size_t i = 0; i < result->n_rows; i++)
                json_array_append_new(rows, row_to_json(result, &result->rows[i]));
        for (uint32_t i = 0; i < CHANNELS; i++)
                if (m->channels[i].exists)
                        json_object_set_new(channels, channel_format(i, name), json_integer(m->channels[i].applied));
        return json_pack("{s:i, s:o, s:o, s:o, s:I, s:I, s:b, s:I}", "assay", 1, "attachments", rows, "channels",
                         channels, "audit", audit, "audit_dropped", (json_int_t)audit_dropped(&m->audit),
                         "utilisation_ppm", (json_int_t)pipeline_utilisation_ppm(result->pipeline), "stopped",
                         m->is_stopped, "output_errors", (json_int_t)pipeline_output_errors(result->pipeline));
}
