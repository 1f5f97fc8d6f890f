/* SPDX-License-Identifier: Apache-2.0 */
#include "load/figures.h"

#include <errno.h>

#include "base/macro.h"
#include "stats/quantile.h"
#include "stats/sort.h"

static const char *const names[N_FIGURES] = {
        [FIGURE_RTT] = "rtt",
        [FIGURE_RTT_USER] = "rtt_user",
        [FIGURE_RESPONSE] = "response",
        [FIGURE_LATENESS] = "lateness",
        [FIGURE_RESIDENCE] = "residence",
        [FIGURE_THERE] = "there",
        [FIGURE_BACK] = "back",
        [FIGURE_VARIATION_THERE] = "variation_there",
        [FIGURE_VARIATION_BACK] = "variation_back",
};

const char *figure_name(enum figure figure)
{
        return (size_t)figure < N_FIGURES ? names[figure] : "unknown";
}

/* One way, as far as the difference of two clocks is one. */
static int64_t one_way(const struct slot *slot, bool is_back)
{
        return is_back ? sample_interval(slot->peer_sent_ns, slot->kernel_received_ns)
                       : sample_interval(slot->kernel_sent_ns, slot->peer_received_ns);
}

static int64_t variation(const struct slots *s, size_t i, bool is_back)
{
        int64_t change;

        if (i == 0 || s->slot[i - 1].state != SLOT_ANSWERED)
                return SAMPLE_MISSING;
        change = sample_interval(one_way(&s->slot[i - 1], is_back), one_way(&s->slot[i], is_back));
        return change == SAMPLE_MISSING || change >= 0 ? change : -change;
}

static int64_t value_of(const struct slots *s, size_t i, enum figure figure)
{
        const struct slot *slot = &s->slot[i];

        switch (figure) {
        case FIGURE_RTT:
                return slot_rtt_ns(slot);
        case FIGURE_RTT_USER:
                return slot_rtt_user_ns(slot);
        case FIGURE_RESPONSE:
                return sample_interval(schedule_due_ns(&s->schedule, i), slot->received_ns);
        case FIGURE_LATENESS:
                return slots_lateness_ns(s, i);
        case FIGURE_RESIDENCE:
                return sample_interval(slot->peer_received_ns, slot->peer_sent_ns);
        case FIGURE_THERE:
        case FIGURE_BACK:
                return one_way(slot, figure == FIGURE_BACK);
        case FIGURE_VARIATION_THERE:
        case FIGURE_VARIATION_BACK:
                return variation(s, i, figure == FIGURE_VARIATION_BACK);
        case N_FIGURES:
                break;
        }
        return SAMPLE_MISSING;
}

/* Whether a lost packet is a value of this figure, an infinite one. */
static bool counts_lost(enum figure figure)
{
        return figure == FIGURE_RTT || figure == FIGURE_RTT_USER || figure == FIGURE_RESPONSE;
}

static int64_t rank_of(const int64_t *sorted, size_t n, size_t lost, uint32_t ppm)
{
        uint64_t rank;

        if (!quantile_publishable(n + lost, ppm) || quantile_rank(n + lost, ppm, &rank) < 0)
                return SAMPLE_MISSING;
        return rank > n ? FIGURE_LOST : sorted[rank - 1];
}

int figure_take(const struct slots *s, size_t from, size_t to, enum figure figure, int64_t *scratch,
                struct figure_values *ret)
{
        uint64_t closed = __atomic_load_n(&s->n_closed, __ATOMIC_ACQUIRE);
        struct figure_values v = {0};

        for (size_t i = from; i < MIN(to, closed); i++) {
                uint8_t state = __atomic_load_n(&s->slot[i].state, __ATOMIC_ACQUIRE);
                int64_t value;

                if (state == SLOT_MISSED)
                        continue;
                if (state != SLOT_ANSWERED && figure != FIGURE_LATENESS) {
                        v.lost += counts_lost(figure);
                        continue;
                }
                value = value_of(s, i, figure);
                if (value == SAMPLE_MISSING)
                        continue;
                v.negative += value < 0 && figure != FIGURE_THERE && figure != FIGURE_BACK;
                scratch[v.n++] = value;
        }
        if (v.n == 0)
                return -ENODATA;

        sort_i64(scratch, v.n);
        v.min = scratch[0];
        v.max = v.lost > 0 ? FIGURE_LOST : scratch[v.n - 1];
        v.p50 = rank_of(scratch, v.n, v.lost, 500000);
        v.p95 = rank_of(scratch, v.n, v.lost, 950000);
        v.p99 = rank_of(scratch, v.n, v.lost, 990000);
        *ret = v;
        return 0;
}
