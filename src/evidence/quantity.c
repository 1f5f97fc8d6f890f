/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/quantity.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/number.h"
#include "stats/bounds.h"

struct scale {
        int64_t scale;
        unsigned digits; /* log10 of @scale */
        const char *suffix;
};

static const struct scale durations[] = {{1, 0, " ns"}, {1000, 3, " us"}, {1000000, 6, " ms"}, {1000000000, 9, " s"}};
static const struct scale picoseconds[] = {{1, 0, " ps"},
                                           {1000, 3, " ns"},
                                           {1000000, 6, " us"},
                                           {1000000000, 9, " ms"},
                                           {INT64_C(1000000000000), 12, " s"}};
static const struct scale rates[] = {{1, 0, " bit"},
                                     {1000, 3, " kbit"},
                                     {1000000, 6, " mbit"},
                                     {1000000000, 9, " gbit"}};
static const struct scale ratio = {1000000, 6, ""}, proportion = {10000000, 7, "%"}, whole = {1, 0, ""};

/* The largest scale that leaves at least one whole unit. */
static const struct scale *pick(const struct scale *scales, size_t n, int64_t value)
{
        uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

        while (n > 1 && magnitude < (uint64_t)scales[n - 1].scale)
                n--;
        return &scales[n - 1];
}

char *quantity_format(enum unit unit, int64_t value, char buf[static QUANTITY_SIZE])
{
        const struct scale *s = &whole;
        char digits[48];
        size_t len;

        if (value == BOUNDS_INFINITE) {
                snprintf(buf, QUANTITY_SIZE, "lost");
                return buf;
        }
        if (unit == UNIT_DURATION)
                s = pick(durations, ARRAY_SIZE(durations), value);
        else if (unit == UNIT_PICOSECONDS)
                s = pick(picoseconds, ARRAY_SIZE(picoseconds), value);
        else if (unit == UNIT_RATE)
                s = pick(rates, ARRAY_SIZE(rates), value);
        else if (unit == UNIT_RATIO)
                s = &ratio;
        else if (unit == UNIT_PROPORTION)
                s = &proportion;

        number_format_scaled(value, s->scale, s->digits, digits);
        len = strlen(digits);
        while (s->digits > 0 && digits[len - 1] == '0')
                len--;
        if (digits[len - 1] == '.')
                len--;
        snprintf(buf, QUANTITY_SIZE, "%.*s%s", (int)len, digits, s->suffix);
        return buf;
}
