/* SPDX-License-Identifier: Apache-2.0 */

/* How often the bounds of the rules of evidence hold what they promise, by simulation: one-sided 95% bounds of the
 * median over rounds on skewed, heavy-tailed, tied, lossy and drifting data, exact bounds of a proportion, and the
 * paired bootstrap. Everything is drawn from one seed, so the table comes out the same each time. */

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/rng.h"
#include "stats/bootstrap.h"
#include "stats/bounds.h"
#include "stats/effect.h"
#include "stats/proportion.h"
#include "stats/sort.h"

#define ROUNDS_MAX    30
#define REPEATS       100000
#define BOOT_REPEATS  1000
#define SCALE         1e6 /* a value of 1.0 in the integers that are ranked */
#define NO_TRUE_VALUE (-1)

static double uniform(struct rng *rng)
{
        return ((double)(rng_next(rng) >> 11) + 0.5) * 0x1p-53;
}

static double normal(struct rng *rng)
{
        return sqrt(-2 * log(uniform(rng))) * cos(2 * M_PI * uniform(rng));
}

static int64_t scaled(double value)
{
        return value >= 9e12 ? BOUNDS_INFINITE - 1 : (int64_t)(value * SCALE);
}

static int64_t skewed(struct rng *rng, double drift)
{
        return scaled(1 - log(uniform(rng)));
}

static int64_t heavy_tailed(struct rng *rng, double drift)
{
        return scaled(1 / uniform(rng)); /* Pareto with index 1: not even a mean */
}

static int64_t tied(struct rng *rng, double drift)
{
        double u = uniform(rng);

        return scaled(u < 0.2 ? 1.0 : u < 0.7 ? 1.0185 : 1.037); /* a timer of three ticks */
}

static int64_t lossy(struct rng *rng, double drift)
{
        return uniform(rng) < 0.1 ? BOUNDS_INFINITE : scaled(1 - log(uniform(rng)));
}

static int64_t drifting(struct rng *rng, double drift)
{
        return scaled((1 + drift) * exp(0.05 * normal(rng)));
}

static const struct data {
        const char *name;
        int64_t (*draw)(struct rng *rng, double drift); /* one value of a round */
        double median;                                  /* its true one; NO_TRUE_VALUE where it moves */
} data[] = {
        {"skewed (exponential)", skewed, 1 + M_LN2},
        {"heavy-tailed (Pareto 1)", heavy_tailed, 2},
        {"tied (three ticks)", tied, 1.0185},
        {"lossy (10% infinite)", lossy, 1.810930216216329}, /* 1 - ln(1 - 0.5 / 0.9) */
        {"drifting (+50% over the rounds)", drifting, NO_TRUE_VALUE},
};

/* What the bounds cover at least: 1 less the tail that bounds_rank() allows. */
static double nominal(size_t n)
{
        double term = pow(0.5, (double)n), tail = 0;

        for (size_t k = n; k >= bounds_rank(n); k--) {
                tail += term;
                term *= (double)k / (double)(n - k + 1);
        }
        return 1 - tail;
}

static double percent(size_t part, size_t whole)
{
        return 100 * (double)part / (double)whole;
}

struct coverage {
        size_t upper, lower, undefined;
};

/* Values of @n rounds of two cells that are the same, or of one; and whether the bounds cover the truth. */
static void simulate(const struct data *d, size_t n, bool is_ratio, struct rng *rng, struct coverage *c)
{
        int64_t values[ROUNDS_MAX], truth = is_ratio ? 1000000 : scaled(d->median);
        struct bounds b;

        for (size_t i = 0; i < n; i++) {
                double drift = 0.5 * (double)i / (double)n;
                int64_t of = d->draw(rng, drift), versus = d->draw(rng, drift);

                values[i] = of;
                if (is_ratio && effect_ratio(of, versus, &values[i]) < 0) {
                        c->undefined++;
                        return;
                }
        }
        sort_i64(values, n);
        if (bounds_at(values, n, &b) < 0)
                return;
        c->upper += b.upper >= truth;
        c->lower += b.lower <= truth;
}

static void bounds_row(const struct data *d, size_t n, bool is_ratio, struct rng *rng)
{
        struct coverage c = {0};

        for (size_t r = 0; r < REPEATS; r++)
                simulate(d, n, is_ratio, rng, &c);
        printf("%-32s %-6s %6zu %7.2f%% %7.2f%% %7.2f%%", d->name, is_ratio ? "ratio" : "value", n, 100 * nominal(n),
               percent(c.upper + c.undefined, REPEATS), percent(c.lower + c.undefined, REPEATS));
        if (c.undefined > 0)
                printf("  (%.0f%% inconclusive: infinite denominator)", percent(c.undefined, REPEATS));
        printf("\n");
}

static void bounds_table(struct rng *rng)
{
        static const size_t rounds[] = {6, 8, 12, 20, 30};

        printf("bounds of the median over rounds, %d campaigns each; an inconclusive one is not wrong\n", REPEATS);
        printf("%-32s %-6s %6s %8s %8s %8s\n", "data", "form", "rounds", "nominal", "upper", "lower");
        for (size_t i = 0; i < ARRAY_SIZE(data); i++)
                for (int is_ratio = data[i].median < 0; is_ratio < 2; is_ratio++)
                        for (size_t k = 0; k < ARRAY_SIZE(rounds); k++)
                                bounds_row(&data[i], rounds[k], is_ratio, rng);
}

/* Coverage of the bounds of k of @n at @p, weighted with the probabilities of k: exact, no simulation. */
static void proportion_row(uint64_t n, double p)
{
        double log_q = log1p(-p), term = exp((double)n * log_q), upper = 0, lower = 0;

        for (uint64_t k = 0; k <= n && (term > 1e-15 || (double)k < (double)n * p); k++) {
                struct proportion b;

                if (proportion_of(k, n, &b) == 0) {
                        upper += (double)b.upper >= p * 1e9 ? term : 0;
                        lower += (double)b.lower <= p * 1e9 ? term : 0;
                }
                term *= (double)(n - k) / (double)(k + 1) * p / (1 - p);
        }
        printf("%-32s %-6s %6llu %8s %7.2f%% %7.2f%%\n", "losses", "value", (unsigned long long)n, "95.00%",
               100 * upper, 100 * lower);
}

/* Both medians are the same, so the true ratio is 1. */
static void bootstrap_row(const struct data *d, size_t n, struct rng *rng)
{
        int64_t of[ROUNDS_MAX], versus[ROUNDS_MAX];
        size_t covered = 0, defined = 0;
        struct bootstrap b;

        for (size_t r = 0; r < BOOT_REPEATS; r++) {
                for (size_t i = 0; i < n; i++) {
                        double drift = 0.5 * (double)i / (double)n;

                        of[i] = d->draw(rng, drift);
                        versus[i] = d->draw(rng, drift);
                }
                if (bootstrap_paired(of, versus, n, BOOTSTRAP_RATIO, r, 0, &b) < 0)
                        continue;
                defined++;
                covered += b.low <= 1000000 && b.high >= 1000000;
        }
        printf("%-32s %-6s %6zu %8s %7.2f%%\n", d->name, "ratio", n, "95.00%", percent(covered, defined));
}

int main(void)
{
        struct rng rng;

        rng_seed(&rng, 1);
        bounds_table(&rng);
        printf("\nexact bounds of a proportion of 1e-4 and 5e-4 of as many packets, computed\n");
        printf("%-32s %-6s %6s %8s %8s %8s\n", "data", "form", "sent", "nominal", "upper", "lower");
        proportion_row(2000, 5e-4);
        proportion_row(30000, 1e-4);
        proportion_row(240000, 5e-4);
        printf("\npaired bootstrap of the ratio of medians, %d campaigns each, two-sided\n", BOOT_REPEATS);
        printf("%-32s %-6s %6s %8s %8s\n", "data", "form", "rounds", "nominal", "covers");
        for (size_t i = 0; i < ARRAY_SIZE(data); i++)
                bootstrap_row(&data[i], 20, &rng);
        return 0;
}
