/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/effect.h"

#include <errno.h>

#include "base/number.h"
#include "stats/bounds.h"

int effect_ratio(int64_t of, int64_t versus, int64_t *ret_ppm)
{
        int64_t ppm;
        int r;

        if (versus == BOUNDS_INFINITE || versus <= 0 || of < 0)
                return -EDOM;
        if (of == BOUNDS_INFINITE) {
                *ret_ppm = BOUNDS_INFINITE;
                return 0;
        }
        r = number_ratio_ppm(of, versus, &ppm);
        if (r < 0)
                return r;
        if (ppm == BOUNDS_INFINITE)
                return -ERANGE;
        *ret_ppm = ppm;
        return 0;
}

int effect_difference(int64_t of, int64_t versus, int64_t *ret)
{
        int64_t difference;

        if (versus == BOUNDS_INFINITE)
                return -EDOM;
        if (of == BOUNDS_INFINITE) {
                *ret = BOUNDS_INFINITE;
                return 0;
        }
        if (__builtin_sub_overflow(of, versus, &difference) || difference == BOUNDS_INFINITE)
                return -ERANGE;
        *ret = difference;
        return 0;
}
