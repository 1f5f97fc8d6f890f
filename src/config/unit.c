/* SPDX-License-Identifier: Apache-2.0 */
#include "config/unit.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/macro.h"
#include "base/number.h"

/* How a unit is written, and how many of the base unit it is. */
struct suffix {
        const char *text;
        int64_t scale;
};

#define SUFFIXES_MAX 7

static const struct {
        const char *expected;
        const char *grain;                    /* what a value has to be a whole number of */
        struct suffix suffixes[SUFFIXES_MAX]; /* a suffix stands before those that it ends in; the last has no text */
} units[] = {
        [UNIT_RATE] = {"a rate such as 500mbit (bit, kbit, mbit, gbit)",
                       "bits a second",
                       {{"gbit", 1000000000}, {"mbit", 1000000}, {"kbit", 1000}, {"bit", 1}}},
        [UNIT_DURATION] = {"a duration such as 30s (ns, us, ms, s, min, h)",
                           "nanoseconds",
                           {{"h", INT64_C(3600000000000)},
                            {"min", INT64_C(60000000000)},
                            {"ms", 1000000},
                            {"us", 1000},
                            {"ns", 1},
                            {"s", 1000000000}}},
        [UNIT_PICOSECONDS] = {"a duration such as 8.2ns (ps, ns, us, ms, s)",
                              "picoseconds",
                              {{"ps", 1},
                               {"ns", 1000},
                               {"us", 1000000},
                               {"ms", INT64_C(1000000000)},
                               {"s", INT64_C(1000000000000)}}},
        [UNIT_BYTES] = {"a size such as 1400B (B, KiB, MiB, GiB)",
                        "bytes",
                        {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}},
        [UNIT_PACKETS] = {"a number of packets such as 100p", "packets", {{"p", 1}}},
        [UNIT_FREQUENCY] = {"a number a second such as 1000/s", "events a second", {{"/s", 1}}},
        [UNIT_COUNT] = {"a whole number", "ones", {{"", 1}}},
        [UNIT_RATIO] = {"a number such as 1.25", "millionths", {{"", 1000000}}},
        [UNIT_PROPORTION] = {"a number from 0 to 1 such as 5e-4", "thousand millionths", {{"", 1000000000}}},
};

static bool ends_in(const char *text, const char *suffix)
{
        size_t len = strlen(text), n = strlen(suffix);

        return len >= n && streq(text + len - n, suffix);
}

static int parse_number(enum unit unit, const char *text, size_t len, int64_t scale, int64_t *ret)
{
        if (unit == UNIT_COUNT)
                return number_parse_i64(span_of(text, len), ret);
        return number_parse_scaled(span_of(text, len), scale, ret);
}

static int parse(enum unit unit, const char *text, int64_t *ret)
{
        for (const struct suffix *s = units[unit].suffixes; s->text; s++)
                if (ends_in(text, s->text))
                        return parse_number(unit, text, strlen(text) - strlen(s->text), s->scale, ret);
        if (streq(text, "0")) {
                *ret = 0;
                return 0;
        }
        return -EINVAL;
}

int unit_parse(enum unit unit, const char *text, int64_t *ret, struct err *err)
{
        int64_t value = 0;
        int r;

        r = parse(unit, text, &value);
        if (r == 0 && unit == UNIT_PROPORTION && value > 1000000000)
                r = -EINVAL;
        switch (r) {
        case 0:
                *ret = value;
                return 0;
        case -ERANGE:
                return err_set(err, ERR_USAGE, ERANGE, "\"%.64s\" is too large; expected %s", text,
                               units[unit].expected);
        case -EDOM:
                return err_set(err, ERR_USAGE, EDOM, "\"%.64s\" is not a whole number of %s", text, units[unit].grain);
        default:
                return err_set(err, ERR_USAGE, EINVAL, "\"%.64s\" is not %s", text, units[unit].expected);
        }
}

const char *unit_expected(enum unit unit)
{
        return units[unit].expected;
}

/* As many places after the point as the scale has, without trailing zeros. */
static char *format_fraction(int64_t value, int64_t scale, char buf[static 48])
{
        unsigned digits = 0;
        size_t len;

        for (int64_t s = scale; s > 1; s /= 10)
                digits++;
        number_format_scaled(value, scale, digits, buf);
        for (len = strlen(buf); buf[len - 1] == '0'; len--)
                buf[len - 1] = '\0';
        if (buf[len - 1] == '.')
                buf[len - 1] = '\0';
        return buf;
}

char *unit_format(enum unit unit, int64_t value, char buf[static 48])
{
        const struct suffix *suffixes = units[unit].suffixes, *largest = suffixes;

        if (unit == UNIT_RATIO || unit == UNIT_PROPORTION)
                return format_fraction(value, suffixes->scale, buf);

        /* the largest that divides it; every unit has one of scale 1 */
        for (const struct suffix *s = suffixes; s->text; s++)
                if (value % s->scale == 0 && (value % largest->scale != 0 || s->scale > largest->scale))
                        largest = s;
        if (value == 0)
                snprintf(buf, 48, "0");
        else
                snprintf(buf, 48, "%" PRId64 "%s", value / largest->scale, largest->text);
        return buf;
}
