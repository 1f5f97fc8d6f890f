/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/moments.h"

#include <errno.h>

#include "base/macro.h"

void moments_add(struct moments *m, int64_t value)
{
        double deviation = (double)value - m->mean;

        m->min = m->n == 0 ? value : MIN(m->min, value);
        m->max = m->n == 0 ? value : MAX(m->max, value);
        m->n++;
        m->mean += deviation / (double)m->n;
        m->m2 += deviation * ((double)value - m->mean);
}

int moments_mean(const struct moments *m, double *ret)
{
        if (m->n == 0)
                return -ENODATA;
        *ret = m->mean;
        return 0;
}

int moments_variance(const struct moments *m, double *ret)
{
        if (m->n < 2)
                return -ENODATA;
        *ret = m->m2 / (double)(m->n - 1);
        return 0;
}
