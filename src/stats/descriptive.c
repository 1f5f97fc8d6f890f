/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/descriptive.h"

#include <errno.h>

#include "base/macro.h"

#define PPM_ONE 1000000u

int descriptive_ratio_within(uint64_t of, uint64_t versus, uint32_t margin_ppm)
{
        if (versus == 0)
                return -EDOM;
        return (unsigned __int128)of * PPM_ONE <= (unsigned __int128)versus * margin_ppm;
}

int descriptive_growth_within(struct growth of, struct growth versus, uint32_t margin_ppm)
{
        if (of.idle == 0 || versus.idle == 0 || versus.loaded == 0)
                return -EDOM;
        if ((of.loaded | of.idle | versus.loaded | versus.idle) >> 42)
                return -ERANGE;
        return (unsigned __int128)of.loaded * versus.idle * PPM_ONE <=
               (unsigned __int128)of.idle * versus.loaded * margin_ppm;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
        return a > b ? a - b : b - a;
}

enum descriptive_delta descriptive_delta(struct spread a, struct spread b)
{
        uint64_t delta = distance(a.median, b.median), spread = MAX(a.iqr, b.iqr);

        if (delta == 0 && spread == 0)
                return DESCRIPTIVE_EQUAL;
        return delta > spread ? DESCRIPTIVE_MATTERS : DESCRIPTIVE_NOTHING;
}

bool descriptive_within_spread(struct spread arm, struct spread baseline)
{
        return distance(arm.median, baseline.median) < baseline.iqr;
}

enum descriptive_sign descriptive_interval(int64_t low, int64_t high)
{
        if (low > 0)
                return DESCRIPTIVE_HIGHER;
        return high < 0 ? DESCRIPTIVE_LOWER : DESCRIPTIVE_NO_DIFFERENCE;
}
