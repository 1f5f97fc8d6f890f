/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/bootstrap.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/rng.h"
#include "stats/effect.h"
#include "stats/quantile.h"
#include "stats/sort.h"

/* One side: its values in order, and the place of each round in that order, so that the median of a resample is found
 * by counting and not by sorting. */
struct side {
        int64_t *sorted;
        size_t *place;
        uint32_t *drawn; /* how often the value at each place is in the resample */
};

static void side_done(struct side *s)
{
        free(s->sorted);
        free(s->place);
        free(s->drawn);
}

static int side_init(struct side *s, const int64_t *values, size_t n)
{
        s->sorted = calloc(n, sizeof(*s->sorted));
        s->place = calloc(n, sizeof(*s->place));
        s->drawn = calloc(n, sizeof(*s->drawn));
        if (!s->sorted || !s->place || !s->drawn)
                return -ENOMEM;
        memcpy(s->sorted, values, n * sizeof(*values));
        sort_i64(s->sorted, n);
        for (size_t i = 0; i < n; i++)
                while (s->sorted[s->place[i]] != values[i])
                        s->place[i]++;
        return 0;
}

static int64_t side_median(const struct side *s, size_t n)
{
        size_t i = 0;

        for (size_t seen = s->drawn[0]; seen < (n + 1) / 2; seen += s->drawn[i])
                i++;
        return s->sorted[i];
}

static int compare(const struct side sides[2], size_t n, enum bootstrap_form form, int64_t *ret)
{
        int64_t of = side_median(&sides[0], n), versus = side_median(&sides[1], n);

        return form == BOOTSTRAP_RATIO ? effect_ratio(of, versus, ret) : effect_difference(of, versus, ret);
}

/* The rounds as they are: each drawn once. */
static void draw_all(struct side sides[2], size_t n)
{
        for (size_t s = 0; s < 2; s++) {
                memset(sides[s].drawn, 0, n * sizeof(*sides[s].drawn));
                for (size_t i = 0; i < n; i++)
                        sides[s].drawn[sides[s].place[i]]++;
        }
}

static void draw(struct rng *rng, struct side sides[2], size_t n)
{
        memset(sides[0].drawn, 0, n * sizeof(*sides[0].drawn));
        memset(sides[1].drawn, 0, n * sizeof(*sides[1].drawn));
        for (size_t i = 0; i < n; i++) {
                size_t round = rng_below(rng, n);

                sides[0].drawn[sides[0].place[round]]++;
                sides[1].drawn[sides[1].place[round]]++;
        }
}

static int64_t percentile(const int64_t *sorted, uint32_t ppm)
{
        uint64_t rank = 1;

        quantile_rank(BOOTSTRAP_RESAMPLES, ppm, &rank);
        return sorted[rank - 1];
}

static int resample(struct side sides[2], size_t n, enum bootstrap_form form, struct rng *rng, struct bootstrap *ret)
{
        _cleanup_free_ int64_t *effects = calloc(BOOTSTRAP_RESAMPLES, sizeof(*effects));
        struct bootstrap b;
        int r;

        if (!effects)
                return -ENOMEM;
        draw_all(sides, n);
        r = compare(sides, n, form, &b.point);
        for (size_t i = 0; r == 0 && i < BOOTSTRAP_RESAMPLES; i++) {
                draw(rng, sides, n);
                r = compare(sides, n, form, &effects[i]);
        }
        if (r < 0)
                return r;
        sort_i64(effects, BOOTSTRAP_RESAMPLES);
        b.low = percentile(effects, 25000);
        b.high = percentile(effects, 975000);
        b.is_degenerate = effects[0] == effects[BOOTSTRAP_RESAMPLES - 1];
        *ret = b;
        return 0;
}

int bootstrap_paired(const int64_t *of, const int64_t *versus, size_t n, enum bootstrap_form form, uint64_t seed,
                     uint64_t stream, struct bootstrap *ret)
{
        struct side sides[2] = {0};
        struct rng rng;
        int r;

        if (n == 0)
                return -ENODATA;
        rng_seed_stream(&rng, seed, stream);
        r = side_init(&sides[0], of, n);
        if (r >= 0)
                r = side_init(&sides[1], versus, n);
        if (r >= 0)
                r = resample(sides, n, form, &rng, ret);
        side_done(&sides[0]);
        side_done(&sides[1]);
        return r;
}
