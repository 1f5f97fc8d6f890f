/* SPDX-License-Identifier: Apache-2.0 */

/* How long the monitor takes to decide, by kind of request and with the clock's own cost taken out; and how long it
 * takes from an event to an actuation in the simulated pipeline: the wake-up, and from entering the program to the
 * value being out. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/macro.h"
#include "reflex/measure.h"
#include "reflex/reaction.h"
#include "stats/quantile.h"
#include "stats/sort.h"

#define BATCH    64 /* decisions between two readings of the clock */
#define BATCHES  20000
#define WARM_UP  1000 /* batches that are not counted */
#define WANTED   10   /* ns a decision */
#define EVENTS   20000
#define RATE_HZ  5000
#define START_NS (20 * NSEC_PER_MSEC)

/* The value at a quantile of @n values, which are sorted. */
static int64_t at(const int64_t *sorted, size_t n, uint32_t ppm)
{
        uint64_t rank = 1;

        (void)quantile_rank(n, ppm, &rank);
        return sorted[rank - 1];
}

static void decisions(enum measure_case which)
{
        static int64_t took_ns[BATCHES];
        static struct measure m;

        measure_init(&m, which, 1);
        for (size_t i = 0; i < WARM_UP; i++)
                measure_batch(&m, BATCH, 1);
        for (size_t i = 0; i < BATCHES; i++)
                took_ns[i] = measure_batch(&m, BATCH, 1);
        sort_i64(took_ns, BATCHES);
        printf("monitor decision, %-6s  p50 %5.2f ns  p99 %5.2f ns (wanted %d; mean of %d at a time, clock's %" PRIi64
               " ns taken out)\n",
               measure_case_names[which], (double)at(took_ns, BATCHES, 500000) / BATCH,
               (double)at(took_ns, BATCHES, 990000) / BATCH, WANTED, BATCH, m.clock_cost_ns);
}

static void print_part(const char *name, int64_t *values, size_t n)
{
        sort_i64(values, n);
        printf("event to actuation, %-15s  p50 %6" PRIi64 " ns  p99 %6" PRIi64 " ns  p99.9 %6" PRIi64 " ns\n", name,
               at(values, n, 500000), at(values, n, 990000), at(values, n, 999000));
}

static int reactions(struct err *err)
{
        const struct reaction_options options = {
                .rate_hz = RATE_HZ,
                .n_events = EVENTS,
                .sched = {.cpu = 0, .fifo_priority = 50, .lock_memory = true, .precise_timers = true},
                .trigger_sched = {.cpu = 1, .fifo_priority = 50, .lock_memory = true, .precise_timers = true},
        };
        _cleanup_reaction_ struct reaction *reaction = NULL;
        static int64_t wake[EVENTS], output[EVENTS];
        size_t n = 0;
        int r;

        r = reaction_new(&options, &reaction, err);
        if (r == 0)
                r = reaction_open(reaction, err);
        if (r == 0)
                r = reaction_run(reaction, clock_now_ns(CLOCK_MONOTONIC) + START_NS, NULL, err);
        if (r < 0)
                return r;
        for (uint64_t i = 0; i < EVENTS; i++) {
                struct reaction_event e = reaction_event(reaction, i);

                if (e.made_ns == 0 || e.output_ns == 0)
                        continue;
                wake[n] = e.woke_ns - e.made_ns;
                output[n++] = e.output_ns - e.entered_ns;
        }
        if (n == 0)
                return err_set(err, ERR_BUG, ENODATA, "no event was handled");
        print_part("wake-up", wake, n);
        print_part("entry to output", output, n);
        printf("  (%zu of %d events at %d/s; the simulation, no hardware; entry to output has two readings of the "
               "clock in "
               "it)\n",
               n, EVENTS, RATE_HZ);
        return 0;
}

int main(void)
{
        struct err err = {0};

        for (int which = 0; which < MEASURE_CASES; which++)
                decisions((enum measure_case)which);
        if (reactions(&err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return 1;
        }
        return 0;
}
