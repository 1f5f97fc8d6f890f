/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/print-campaign.h"

#include <inttypes.h>
#include <string.h>

#include "base/macro.h"
#include "base/number.h"
#include "cli/print.h"
#include "cli/table.h"
#include "evidence/quantity.h"
#include "stats/bounds.h"

static const char *string_of(const json_t *object, const char *key)
{
        const char *value = json_string_value(json_object_get(object, key));

        return value ? value : "";
}

static int64_t integer_of(const json_t *object, const char *key)
{
        return json_integer_value(json_object_get(object, key));
}

/* A value that may be "lost". False if @json is neither. */
static bool value_of(const json_t *json, int64_t *ret)
{
        if (json_is_integer(json))
                *ret = json_integer_value(json);
        else if (json_is_string(json) && streq(json_string_value(json), "lost"))
                *ret = BOUNDS_INFINITE;
        else
                return false;
        return true;
}

static const char *format_ns(int64_t ns, char buf[static 48])
{
        return ns == BOUNDS_INFINITE ? "lost" : number_format_ns(ns, buf);
}

/* Clusters take the place of a median: "17x 32.6 ms, 13x 74.9 ms". */
static void add_clusters(const json_t *clusters, struct table *table)
{
        struct text shown = {0};
        json_t *cluster;
        size_t i;

        json_array_foreach(clusters, i, cluster)
        {
                char median[48];
                int64_t ns;

                if (value_of(json_object_get(cluster, "median"), &ns))
                        text_addf(&shown, "%s%" PRId64 "x %s", i > 0 ? ", " : "", integer_of(cluster, "rounds"),
                                  format_ns(ns, median));
        }
        table_add(table, "clusters");
        table_add(table, shown.data && !shown.failed ? shown.data : "");
        text_done(&shown);
}

/* Two fields: median and bounds over rounds. */
static void add_over_rounds(const json_t *value, struct table *table)
{
        const json_t *clusters = json_object_get(value, "clusters");
        char a[48], b[48];
        int64_t median, lower, upper;

        if (clusters) {
                add_clusters(clusters, table);
                return;
        }
        table_add(table, value_of(json_object_get(value, "median"), &median) ? format_ns(median, a) : "-");
        if (value_of(json_object_get(value, "lower"), &lower) && value_of(json_object_get(value, "upper"), &upper))
                table_addf(table, "[%s, %s]", format_ns(lower, a), format_ns(upper, b));
        else
                table_add(table, "");
}

/* The series to show of a cell of which no rule judges one: what a probe or a client is for, else the first other one.
 */
static const char *pick_series(const json_t *all)
{
        static const char *const usual[] = {"rtt", "request"};
        const char *name;
        json_t *series;

        for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
                if (json_object_get(all, usual[i]))
                        return usual[i];
        json_object_foreach((json_t *)all, name, series)
        {
                if (!streq(name, "lateness"))
                        return name;
        }
        return "";
}

/* Whether a metric is of a series: "rtt.p99" and "rtt.per-hop.p50" of rtt, and not of rtt_user. */
static bool is_of_series(const char *metric, const char *series)
{
        size_t len = strlen(series);

        return strncmp(metric, series, len) == 0 && metric[len] == '.';
}

static bool rules_judge(const json_t *rules, const char *series)
{
        json_t *rule;
        size_t i;

        json_array_foreach(rules, i, rule)
        {
                if (is_of_series(string_of(rule, "metric"), series))
                        return true;
        }
        return false;
}

/* Whether a rule of some hypothesis or control judges a series. */
static bool is_judged(const json_t *verdict, const char *series)
{
        static const char *const parts[] = {"hypotheses", "controls"};
        json_t *part;
        size_t i;

        for (size_t p = 0; p < ARRAY_SIZE(parts); p++)
                json_array_foreach(json_object_get(verdict, parts[p]), i, part)
                {
                        if (rules_judge(json_object_get(part, "rules"), series))
                                return true;
                }
        return false;
}

/* An upper bound to three digits. It is rounded up, so that what is said is true. */
static char *format_upper(int64_t ppb, char buf[static QUANTITY_SIZE])
{
        int64_t step = 1;

        while (ppb / step >= 1000)
                step *= 10;
        return quantity_format(UNIT_PROPORTION, ppb % step > 0 ? (ppb / step + 1) * step : ppb, buf);
}

static void add_loss(const json_t *cell, bool is_first, struct table *table)
{
        const json_t *loss = json_object_get(cell, "loss"), *pooled = json_object_get(cell, "pooled");
        char upper[QUANTITY_SIZE];

        if (!is_first) { /* it is of the cell, not of a series */
                table_add(table, "");
                table_add(table, "");
                return;
        }
        if (!loss) {
                table_add(table, "-");
                table_add(table, "");
                return;
        }
        table_addf(table, "%" PRId64 " of %" PRId64, integer_of(pooled, "lost"), integer_of(pooled, "sent"));
        table_addf(table, "at most %s", format_upper(integer_of(loss, "upper_ppb"), upper));
}

static void add_rate(struct table *table, const json_t *load, const char *key)
{
        char rate[48];

        if (load)
                table_addf(table, "%s mbit", number_format_scaled(integer_of(load, key), 1000000, 1, rate));
        else
                table_add(table, "");
}

static void add_row(const json_t *cell, const char *name, bool is_first, struct table *table)
{
        static const char *const quantiles[] = {"p50_ns", "p95_ns", "p99_ns"};
        const json_t *series = json_object_get(json_object_get(cell, "series"), name);

        table_add(table, string_of(cell, "cell"));
        table_add(table, name);
        table_addf(table, "%" PRId64, integer_of(json_object_get(series, "p50_ns"), "rounds"));
        for (size_t q = 0; q < ARRAY_SIZE(quantiles); q++)
                add_over_rounds(json_object_get(series, quantiles[q]), table);
        add_loss(cell, is_first, table);
        add_rate(table, is_first ? json_object_get(json_object_get(cell, "counts"), "throughput_bps") : NULL, "median");
}

/* The rows of a cell: the series that is asked for, else each that a rule judges. */
static void add_cell(const json_t *cell, const json_t *verdict, const char *wanted, struct table *table)
{
        const json_t *all = json_object_get(cell, "series");
        bool is_first = true;
        const char *name;
        json_t *series;

        json_object_foreach((json_t *)all, name, series)
        {
                if (wanted ? !streq(name, wanted) : !is_judged(verdict, name))
                        continue;
                add_row(cell, name, is_first, table);
                is_first = false;
        }
        if (is_first)
                add_row(cell, wanted ? wanted : pick_series(all), true, table);
}

/* Whether a quantile of the table, in its fourth to ninth column, has no value in some round: then nothing is said of
 * it. */
static bool has_dash(const struct table *table)
{
        for (size_t i = 0; i < table->n; i++)
                if (i % table->n_columns > 2 && i % table->n_columns < 9 && streq(table->fields[i], "-"))
                        return true;
        return false;
}

static void add_cells(struct text *out, const json_t *summary, const json_t *verdict, const char *wanted)
{
        static const char *const head[] = {"cell", "series", "rounds", "p50",  "", "p95",
                                           "",     "p99",    "",       "lost", "", "throughput"};
        _cleanup_table_ struct table table;
        json_t *cell;
        size_t i;

        table_init(&table, "llrrlrlrlrlr");
        for (size_t h = 0; h < ARRAY_SIZE(head); h++)
                table_add(&table, head[h]);
        json_array_foreach(json_object_get(summary, "cells"), i, cell)
        {
                add_cell(cell, verdict, wanted, &table);
        }
        text_add(out, "Median over rounds, with one-sided 95% bounds of it; what was lost in all valid trials\n");
        table_render(&table, 2, out);
        if (has_dash(&table))
                text_add(out,
                         "  A dash: the trials have too few values to say (5 are needed for p50, 59 for p95, 299 for "
                         "p99).\n");
}

static void add_lateness(struct table *table, const json_t *cell, const char *quantile)
{
        const json_t *lateness = json_object_get(json_object_get(cell, "series"), "lateness");
        int64_t ns;
        char buf[48];

        if (value_of(json_object_get(json_object_get(lateness, quantile), "median"), &ns))
                table_add(table, format_ns(ns, buf));
        else
                table_add(table, "");
}

/* @load: NULL for a cell without background */
static void add_load(struct table *table, const json_t *cell, const char *name, const json_t *load)
{
        const json_t *pooled = json_object_get(cell, "pooled");

        table_add(table, string_of(cell, "cell"));
        table_add(table, name);
        add_rate(table, load, "offered_bps");
        add_rate(table, load, "sent_bps");
        add_rate(table, load, "delivered_bps");
        if (load)
                table_addf(table, "%" PRId64, integer_of(load, "dropped_packets"));
        else
                table_add(table, "");
        add_lateness(table, cell, "p50_ns");
        add_lateness(table, cell, "p99_ns");
        table_addf(table, "%" PRId64, integer_of(pooled, "missed"));
        table_addf(table, "%" PRId64, integer_of(pooled, "reordered"));
        table_addf(table, "%" PRId64, integer_of(pooled, "duplicates"));
}

/* Whether any cell has the member @name of its member @of, other than 0 */
static bool has_any(const json_t *summary, const char *of, const char *name)
{
        json_t *cell, *member;
        size_t i;

        json_array_foreach(json_object_get(summary, "cells"), i, cell)
        {
                member = json_object_get(json_object_get(cell, of), name);
                if (member && (!json_is_integer(member) || json_integer_value(member) != 0))
                        return true;
        }
        return false;
}

static bool has_background(const json_t *summary)
{
        json_t *cell;
        size_t i;

        json_array_foreach(json_object_get(summary, "cells"), i, cell)
        {
                if (json_object_size(json_object_get(cell, "background")) > 0)
                        return true;
        }
        return false;
}

/* What the table of loads is about in this campaign. False where it would say nothing. */
static bool add_loads_title(struct text *out, const json_t *summary)
{
        bool has_load = has_background(summary), has_lateness = has_any(summary, "series", "lateness");

        if (has_load)
                text_add(out, "\nBackground load (bits of layer 2) and dropped packets, over the rounds that count");
        if (has_lateness)
                text_add(out, has_load ? "; how late the probe's packets were sent\n"
                                       : "\nHow late the probe's packets were sent\n");
        else if (has_load)
                text_add(out, "\n");
        else if (has_any(summary, "pooled", "missed") || has_any(summary, "pooled", "reordered") ||
                 has_any(summary, "pooled", "duplicates"))
                text_add(out, "\nWhat the schedule missed, and what came out of order or twice\n");
        else
                return false;
        return true;
}

static bool has_drops(const json_t *summary)
{
        json_t *cell, *load;
        const char *name;
        size_t i;

        json_array_foreach(json_object_get(summary, "cells"), i, cell)
        {
                json_object_foreach(json_object_get(cell, "background"), name, load)
                {
                        if (integer_of(load, "dropped_packets") > 0)
                                return true;
                }
        }
        return false;
}

/* What was offered and got through, and whether the schedule was kept. */
static void add_loads(struct text *out, const json_t *summary)
{
        static const char *const head[] = {"cell",     "background", "offered", "sent",      "delivered", "dropped",
                                           "late p50", "late p99",   "missed",  "reordered", "duplicates"};
        _cleanup_table_ struct table table;
        json_t *cell, *load;
        const char *name;
        size_t i;

        table_init(&table, "llrrrrrrrrr");
        for (size_t h = 0; h < ARRAY_SIZE(head); h++)
                table_add(&table, head[h]);
        json_array_foreach(json_object_get(summary, "cells"), i, cell)
        {
                json_t *loads = json_object_get(cell, "background");

                if (json_object_size(loads) == 0)
                        add_load(&table, cell, "none", NULL);
                json_object_foreach(loads, name, load) add_load(&table, cell, name, load);
        }
        if (!add_loads_title(out, summary))
                return;
        table_render(&table, 2, out);
        if (has_drops(summary))
                text_add(out,
                         "  Delivered is all that arrived, also what the queues still held when the load ended: in "
                         "short trials that is more than the ceiling.\n");
}

static enum unit unit_of(const json_t *rule, const char *key)
{
        static const struct {
                const char *name;
                enum unit unit;
        } units[] = {{"ppm", UNIT_RATIO},
                     {"ns", UNIT_DURATION},
                     {"ps", UNIT_PICOSECONDS},
                     {"ppb", UNIT_PROPORTION},
                     {"bps", UNIT_RATE}};

        for (size_t i = 0; i < ARRAY_SIZE(units); i++)
                if (streq(string_of(rule, key), units[i].name))
                        return units[i].unit;
        return UNIT_COUNT;
}

static void add_quantity(struct text *out, const char *before, enum unit unit, const json_t *value)
{
        char buf[QUANTITY_SIZE];
        int64_t number;

        if (value_of(value, &number))
                text_addf(out, "%s%s", before, quantity_format(unit, number, buf));
}

static void add_rule_clusters(struct text *out, const json_t *rule)
{
        enum unit unit = unit_of(rule, "metric_unit");
        json_t *cell, *cluster;
        size_t i, k;

        json_array_foreach(json_object_get(rule, "clusters"), i, cell)
        {
                text_add(out, "\n        clusters of ");
                print_visible(out, string_of(cell, "cell"));
                json_array_foreach(json_object_get(cell, "clusters"), k, cluster)
                {
                        text_addf(out, "%s %" PRId64 " round%s", k > 0 ? "," : ":", integer_of(cluster, "rounds"),
                                  text_plural((uint64_t)integer_of(cluster, "rounds")));
                        add_quantity(out, " near ", unit, json_object_get(cluster, "median"));
                }
        }
}

/* The numbers of a rule on one line: value, bounds, margin, floor, bootstrap. */
static void add_numbers(struct text *out, const json_t *rule, bool is_control)
{
        const json_t *floor = json_object_get(rule, "floor"), *boot = json_object_get(rule, "bootstrap");
        enum unit unit = unit_of(rule, "unit");
        int64_t value;

        text_add(out, "        ");
        if (value_of(json_object_get(rule, "value"), &value))
                add_quantity(out, "value ", unit, json_object_get(rule, "value"));
        else
                text_add(out, "no value");
        add_quantity(out, ", bounds ", unit, json_object_get(rule, "lower"));
        add_quantity(out, " to ", unit, json_object_get(rule, "upper"));
        add_quantity(out, "; at least ", unit, json_object_get(rule, "at_least"));
        add_quantity(out, "; at most ", unit, json_object_get(rule, "at_most"));
        if (floor) {
                add_quantity(out, "; noise floor ", unit, json_object_get(floor, "lower"));
                add_quantity(out, " to ", unit, json_object_get(floor, "upper"));
        } else if (!is_control && !streq(string_of(rule, "form"), "value")) {
                text_add(out, "; no floor");
        }
        if (boot) {
                add_quantity(out, "\n        bootstrap: medians give ", unit, json_object_get(boot, "point"));
                add_quantity(out, ", 95% interval ", unit, json_object_get(boot, "low"));
                add_quantity(out, " to ", unit, json_object_get(boot, "high"));
                if (json_is_true(json_object_get(boot, "degenerate")))
                        text_add(out, " (degenerate: all resamples are equal)");
        }
        add_rule_clusters(out, rule);
        text_add(out, "\n");
}

static void add_rules(struct text *out, const json_t *rules, bool is_control)
{
        json_t *rule;
        size_t i;

        json_array_foreach(rules, i, rule)
        {
                text_add(out, "    ");
                print_visible(out, string_of(rule, "text"));
                text_add(out, json_is_true(json_object_get(rule, "advisory")) ? " (advisory)\n" : "\n");
                add_numbers(out, rule, is_control);
                text_add(out, "        ");
                print_visible(out, string_of(rule, "outcome"));
                text_add(out, ": ");
                print_visible(out, string_of(rule, "reason"));
                text_add(out, "\n");
        }
}

static void add_controls(struct text *out, const json_t *verdict)
{
        json_t *control;
        size_t i;

        json_array_foreach(json_object_get(verdict, "controls"), i, control)
        {
                text_add(out, "\ncontrol ");
                print_visible(out, string_of(control, "arm"));
                text_add(out, streq(string_of(control, "kind"), "harm") ? ", which has to show harm: "
                                                                        : ", which has to show nothing: ");
                print_visible(out, string_of(control, "outcome"));
                text_add(out, "\n");
                add_rules(out, json_object_get(control, "rules"), true);
        }
}

static void add_hypotheses(struct text *out, const json_t *verdict)
{
        json_t *hypothesis;
        size_t i;

        json_array_foreach(json_object_get(verdict, "hypotheses"), i, hypothesis)
        {
                text_add(out, "\n");
                print_visible(out, string_of(hypothesis, "hypothesis"));
                text_add(out, ": ");
                print_visible(out, string_of(hypothesis, "claim"));
                text_add(out, "\n");
                add_rules(out, json_object_get(hypothesis, "rules"), false);
                text_add(out, "  => ");
                print_visible(out, string_of(hypothesis, "outcome"));
                text_add(out, ": ");
                print_visible(out, string_of(hypothesis, "reason"));
                text_add(out, "\n");
        }
}

/* Trials that were not used, and rules that a short run leaves out. */
static void add_left_out(struct text *out, const json_t *summary, const json_t *verdict)
{
        json_t *item;
        size_t i;

        json_array_foreach(json_object_get(summary, "invalid"), i, item)
        {
                text_add(out, i == 0 ? "\nInvalid trials, which enter no number\n  " : "  ");
                print_visible(out, string_of(item, "trial"));
                text_add(out, ": ");
                print_visible(out, string_of(item, "reason"));
                text_add(out, "\n");
        }
        json_array_foreach(json_object_get(verdict, "unjudged"), i, item)
        {
                text_add(out, i == 0 ? "\nNot judged in this run\n  " : "  ");
                print_visible(out, json_string_value(item));
                text_add(out, "\n");
        }
}

static void add_campaign(struct text *out, const json_t *summary, const json_t *verdict)
{
        const json_t *rounds = json_object_get(summary, "rounds"), *campaign = json_object_get(verdict, "campaign");
        json_t *reason;
        size_t i;

        text_addf(out, "\n%" PRId64 " of %" PRId64 " rounds count", integer_of(rounds, "counted"),
                  integer_of(rounds, "planned"));
        if (integer_of(rounds, "campaigns") > 1)
                text_addf(out, ", in %" PRId64 " campaigns", integer_of(rounds, "campaigns"));
        text_add(out, json_is_true(json_object_get(campaign, "valid")) ? "\n" : "; the campaign is INVALID\n");
        json_array_foreach(json_object_get(campaign, "reasons"), i, reason)
        {
                text_add(out, "  ");
                print_visible(out, json_string_value(reason));
                text_add(out, "\n");
        }
}

void print_campaign_text(struct text *out, const char *archive, const char *series, const json_t *summary,
                         const json_t *verdict)
{
        add_cells(out, summary, verdict, series);
        add_loads(out, summary);
        add_campaign(out, summary, verdict);
        add_left_out(out, summary, verdict);
        add_controls(out, verdict);
        add_hypotheses(out, verdict);
        text_add(out, "\narchive: ");
        print_visible(out, archive);
        text_add(out, "\n");
}
