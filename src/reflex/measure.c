/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex/measure.h"

#include "base/clock.h"
#include "base/macro.h"
#include "base/rng.h"
#include "stats/quantile.h"
#include "stats/sort.h"

#define CLOCK_READINGS 1001
#define REQUEST_NS     (10 * NSEC_PER_USEC)

const char *const measure_case_names[] = {"mixed", "allow", "clamp", "safe", "reject", NULL};

/* The median of what passes between two readings with nothing between them. */
static int64_t clock_cost_ns(void)
{
        int64_t costs[CLOCK_READINGS];

        for (size_t i = 0; i < CLOCK_READINGS; i++) {
                int64_t before_ns = clock_now_ns(CLOCK_MONOTONIC);

                costs[i] = clock_now_ns(CLOCK_MONOTONIC) - before_ns;
        }
        sort_i64(costs, CLOCK_READINGS);
        return costs[CLOCK_READINGS / 2];
}

static struct measure_request draw(struct rng *rng, enum measure_case which)
{
        struct measure_request request = {.channel = channel_pwm(1 + rng_below(rng, 2))};

        switch (which) {
        case MEASURE_MIXED:
                request.channel = (uint32_t)rng_below(rng, CHANNELS + 4);
                request.value = (int64_t)rng_below(rng, 128) - 16;
                break;
        case MEASURE_CLAMP:
                request.value = rng_below(rng, 2) ? INT64_MAX : INT64_MIN;
                break;
        case MEASURE_REJECT:
                request.channel = CHANNELS + (uint32_t)rng_below(rng, CHANNELS);
                break;
        default:
                request.value = (int64_t)rng_below(rng, 20);
                break;
        }
        return request;
}

void measure_init(struct measure *m, enum measure_case which, uint64_t seed)
{
        struct envelope envelopes[CHANNELS];
        struct rng rng;

        *m = (struct measure){.clock_cost_ns = clock_cost_ns()};
        envelopes_default(SLEW_WINDOW, envelopes);
        for (uint32_t i = 0; i < CHANNEL_PWMS; i++)
                envelopes[channel_pwm(i)] = envelopes[channel_pwm(1)];
        (void)monitor_init(&m->monitor, envelopes, 0, NULL); /* the defaults are valid */
        if (which == MEASURE_SAFE)
                monitor_stop(&m->monitor, AUTHORITY_SAFETY, 0, 0);
        rng_seed(&rng, seed);
        for (size_t i = 0; i < MEASURE_REQUESTS; i++)
                m->requests[i] = draw(&rng, which);
}

int64_t measure_batch(struct measure *m, size_t n, unsigned repeat)
{
        int64_t began_ns = clock_now_ns(CLOCK_MONOTONIC), took_ns;

        for (size_t i = 0; i < n; i++) {
                const struct measure_request *r = &m->requests[m->next++ % MEASURE_REQUESTS];

                m->now_ns += REQUEST_NS;
                for (unsigned k = 0; k < repeat; k++)
                        m->sum += monitor_decide(&m->monitor, r->channel, r->value, AUTHORITY_LEARNED, 0, m->now_ns)
                                          .value;
        }
        took_ns = clock_now_ns(CLOCK_MONOTONIC) - began_ns - m->clock_cost_ns;
        return MAX(took_ns, INT64_C(0));
}
