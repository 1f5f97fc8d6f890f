/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/print-probe.h"

#include <inttypes.h>

#include "base/macro.h"
#include "base/number.h"
#include "cli/instrument.h"
#include "cli/table.h"

const char *print_probe_ns(int64_t ns, char buf[static 48])
{
        if (ns == SAMPLE_MISSING)
                return "-";
        return ns == FIGURE_LOST ? "lost" : number_format_ns(ns, buf);
}

/* One-way delays need one clock, or two that both say that they are synchronised, in one timescale. */
static bool has_one_way(const struct print_probe *r)
{
        const struct slots *s = probe_slots(r->probe);

        return r->is_same_clock || (probe_notes(r->probe)->own_error.is_synchronised && s->peer_error.is_synchronised &&
                                    s->peer_error.format == STAMP_FORMAT_NTP);
}

/* Whether a figure can be shown at all. */
static bool is_shown(const struct print_probe *r, enum figure figure)
{
        bool is_realtime = figure != FIGURE_RTT_USER && figure != FIGURE_RESPONSE && figure != FIGURE_LATENESS &&
                           figure != FIGURE_RESIDENCE;

        if (is_realtime && probe_notes(r->probe)->is_realtime_stepped)
                return false;
        return (figure != FIGURE_THERE && figure != FIGURE_BACK) || has_one_way(r);
}

static void print_figures(const struct print_probe *r, struct text *out)
{
        _cleanup_table_ struct table table;

        table_init(&table, "lrrrrrr");
        for (size_t i = 0; i < 7; i++)
                table_add(&table, (const char *const[]){"", "p50", "p95", "p99", "min", "max", "values"}[i]);
        for (int f = 0; f < N_FIGURES; f++) {
                struct figure_values v;
                char buf[48];

                if (!is_shown(r, (enum figure)f) ||
                    figure_take(probe_slots(r->probe), 0, probe_slots(r->probe)->n, (enum figure)f, r->scratch, &v) < 0)
                        continue;
                table_add(&table, figure_name((enum figure)f));
                table_add(&table, print_probe_ns(v.p50, buf));
                table_add(&table, print_probe_ns(v.p95, buf));
                table_add(&table, print_probe_ns(v.p99, buf));
                table_add(&table, print_probe_ns(v.min, buf));
                table_add(&table, print_probe_ns(v.max, buf));
                table_addf(&table, "%zu", v.n);
        }
        table_render(&table, 2, out);
}

static void print_hops(const char *direction, uint8_t ttl_min, uint8_t ttl_max, struct text *out)
{
        if (ttl_max == 0)
                text_addf(out, "  hops %s: not known\n", direction);
        else if (ttl_min == ttl_max)
                text_addf(out, "  hops %s: %d\n", direction, STAMP_TTL - ttl_max);
        else
                text_addf(out, "  hops %s: %d to %d\n", direction, STAMP_TTL - ttl_max, STAMP_TTL - ttl_min);
}

static void print_counts(const struct probe *p, const struct slots_counts *c, struct text *out)
{
        const struct slots *s = probe_slots(p);
        uint64_t lost_forward;
        int64_t ppm = 0;
        char share[48];

        (void)number_ratio_ppm((int64_t)c->lost, (int64_t)MAX(c->sent, UINT64_C(1)), &ppm);
        text_addf(out,
                  "\n  %" PRIu64 " slots: %" PRIu64 " sent, %" PRIu64 " missed; %" PRIu64 " answered, %" PRIu64
                  " lost (%s %%)\n",
                  c->slots, c->sent, c->missed, c->received, c->lost, number_format_scaled(ppm, 10000, 3, share));
        if (c->lost > 0 && slots_lost_forward(s, &lost_forward) == 0)
                text_addf(out, "  of the lost, %" PRIu64 " did not reach the reflector\n", lost_forward);
        text_addf(out, "  %" PRIu64 " duplicates, %" PRIu64 " reordered\n", c->duplicates, c->reordered);
        print_hops("there", c->forward_ttl_min, c->forward_ttl_max, out);
        print_hops("back", c->return_ttl_min, c->return_ttl_max, out);
}

static void print_troubles(const struct probe *p, const struct slots_counts *c, struct text *out)
{
        const struct probe_notes *n = probe_notes(p);
        const struct slots *s = probe_slots(p);
        char buf[48];

        if (n->is_realtime_stepped)
                text_addf(out, "  CLOCK_REALTIME was set during the run (by %s): figures of that clock are left out\n",
                          number_format_ns(n->realtime_step_ns, buf));
        if (c->negative > 0)
                text_addf(out, "  %" PRIu64 " round trips are negative by some pair of stamps: they are wrong\n",
                          c->negative);
        if (c->refused > 0)
                text_addf(out, "  %" PRIu64 " packets were refused by the kernel: %s\n", c->refused,
                          strerror(n->last_refusal));
        if (n->n_unreachable > 0)
                text_addf(out, "  %" PRIu64 " ICMP errors: nobody listens there, or no way leads there\n",
                          n->n_unreachable);
        if (n->receive_overflow > 0)
                text_addf(out, "  %" PRIu32 " replies were lost here, in a full receive buffer\n", n->receive_overflow);
        if (s->n_unmatched > 0)
                text_addf(out, "  %" PRIu64 " packets answered nothing that was sent\n", s->n_unmatched);
        for (int i = STAMP_FAULT_NONE + 1; i < N_STAMP_FAULTS; i++)
                if (s->n_faults[i] > 0)
                        text_addf(out, "  %" PRIu64 " packets were no reply (%s)\n", s->n_faults[i],
                                  stamp_fault_name((enum stamp_fault)i));
        if (c->unstamped_send + c->unstamped_receive + c->unstamped_peer > 0)
                text_addf(out,
                          "  without a stamp: %" PRIu64 " sent, %" PRIu64 " received, %" PRIu64 " by the reflector\n",
                          c->unstamped_send, c->unstamped_receive, c->unstamped_peer);
}

static void print_clocks(const struct print_probe *r, struct text *out)
{
        const struct stamp_error *own = &probe_notes(r->probe)->own_error, *peer = &probe_slots(r->probe)->peer_error;
        uint64_t error_ns = stamp_error_ns(own) + stamp_error_ns(peer);
        char buf[48];

        if (r->is_same_clock)
                text_addf(out, "  both ends read one clock\n");
        else if (has_one_way(r))
                text_addf(out, "  both clocks are synchronised: one-way delays are within %s\n",
                          number_format_ns((int64_t)MIN(error_ns, (uint64_t)INT64_MAX), buf));
        else
                text_addf(out, "  one-way delays are not shown: the %s clock is not synchronised%s\n",
                          own->is_synchronised ? "reflector's" : "own",
                          peer->format == STAMP_FORMAT_PTP ? ", and the reflector counts PTP time" : "");
}

void print_probe_text(const struct print_probe *r, struct text *out)
{
        struct slots_counts c;

        slots_count(probe_slots(r->probe), 0, probe_slots(r->probe)->n, &c);
        print_figures(r, out);
        print_counts(r->probe, &c, out);
        print_clocks(r, out);
        instrument_add_grant(&probe_notes(r->probe)->sched, out);
        print_troubles(r->probe, &c, out);
}

static json_t *value_json(int64_t ns)
{
        if (ns == SAMPLE_MISSING)
                return json_null();
        return ns == FIGURE_LOST ? json_string("lost") : json_integer(ns);
}

static json_t *figures_json(const struct print_probe *r)
{
        _cleanup_json_ json_t *object = json_object();

        for (int f = 0; f < N_FIGURES; f++) {
                struct figure_values v;

                if (!is_shown(r, (enum figure)f) ||
                    figure_take(probe_slots(r->probe), 0, probe_slots(r->probe)->n, (enum figure)f, r->scratch, &v) < 0)
                        continue;
                if (json_object_set_new(object, figure_name((enum figure)f),
                                        json_pack("{s:I,s:I,s:o,s:o,s:o,s:o,s:o}", "values", (json_int_t)v.n, "lost",
                                                  (json_int_t)v.lost, "p50_ns", value_json(v.p50), "p95_ns",
                                                  value_json(v.p95), "p99_ns", value_json(v.p99), "min_ns",
                                                  value_json(v.min), "max_ns", value_json(v.max))) < 0)
                        return NULL;
        }
        return TAKE_PTR(object);
}

json_t *print_probe_json(const struct print_probe *r)
{
        struct slots_counts c;

        slots_count(probe_slots(r->probe), 0, probe_slots(r->probe)->n, &c);
        return json_pack("{s:i,s:o,s:o,s:o}", "assay", 1, "counts", slots_counts_json(&c), "figures", figures_json(r),
                         "notes", probe_notes_json(r->probe));
}
