/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/proportion.h"

#include <errno.h>
#include <math.h>

#define PPB_ONE INT64_C(1000000000)

/* 5%, and as much as a sum of doubles may be off, so that a tail of exactly 5% (one of one) counts as 5%. */
#define PROPORTION_ALPHA (0.05 * (1 + 1e-12))

/* log(n!) less Stirling's formula. The series is good to the last bits of a double from 16 on; below, the factorial is
 * exact in a double. */
static double stirling_error(double n)
{
        static const double series[] = {1.0 / 12, 1.0 / 360, 1.0 / 1260, 1.0 / 1680, 1.0 / 1188};
        double factorial = 1, square = n * n;

        if (n >= 16)
                return (series[0] -
                        (series[1] - (series[2] - (series[3] - series[4] / square) / square) / square) / square) /
                       n;
        for (int i = 2; i <= (int)n; i++)
                factorial *= i;
        return log(factorial) - (n + 0.5) * log(n) + n - 0.5 * log(2 * M_PI);
}

/* x log(x / mean) + mean - x. Near the mean the terms cancel; there it is summed from a series in (x - mean)/(x +
 * mean).
 */
static double deviance(double x, double mean)
{
        double v = (x - mean) / (x + mean), sum, power, next;

        if (fabs(x - mean) >= 0.1 * (x + mean))
                return x * log(x / mean) + mean - x;
        sum = (x - mean) * v;
        power = 2 * x * v;
        for (int i = 1;; i++) {
                power *= v * v;
                next = sum + power / (2 * i + 1);
                if (next == sum)
                        return sum;
                sum = next;
        }
}

/* P(Bin(n, p) = k) for 0 < p < 1, by C. Loader's saddle-point expansion (2000), which keeps full precision for large n.
 */
static double binomial_at(double k, double n, double p)
{
        double log_p;

        if (k == 0)
                return exp(n * log1p(-p));
        if (k == n)
                return exp(n * log(p));
        log_p = stirling_error(n) - stirling_error(k) - stirling_error(n - k) - deviance(k, n * p) -
                deviance(n - k, n * (1 - p));
        return exp(log_p) * sqrt(n / (2 * M_PI * k * (n - k)));
}

/* P(Bin(n, p) <= k), for p over k / n, so that the terms fall from k down. */
static double binomial_tail(double k, double n, double p)
{
        double term = binomial_at(k, n, p), sum = 0, odds = (1 - p) / p;

        while (sum + term > sum) { /* at the latest until k is 0, which makes the next term 0 */
                sum += term;
                term *= k / (n - k + 1) * odds;
                k--;
        }
        return sum;
}

/* The smallest p in ppb with P(Bin(n, p) <= k) <= 5%. The tail falls with p; at k / n it is over 5%. */
static int64_t upper_bound(uint64_t k, uint64_t n)
{
        int64_t low = (int64_t)((unsigned __int128)k * PPB_ONE / n), high = PPB_ONE;

        if (k == n)
                return PPB_ONE;
        while (high - low > 1) {
                int64_t middle = low + (high - low) / 2;

                if (binomial_tail((double)k, (double)n, (double)middle / PPB_ONE) <= PROPORTION_ALPHA)
                        high = middle;
                else
                        low = middle;
        }
        return high;
}

int proportion_of(uint64_t k, uint64_t n, struct proportion *ret)
{
        if (n == 0)
                return -ENODATA;
        if (k > n || n > UINT64_C(1) << 53)
                return -EINVAL;
        *ret = (struct proportion){
                .ppb = (int64_t)(((unsigned __int128)k * PPB_ONE * 2 + n) / ((unsigned __int128)n * 2)),
                .lower = PPB_ONE - upper_bound(n - k, n), /* of what was not counted */
                .upper = upper_bound(k, n),
        };
        return 0;
}
