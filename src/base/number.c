/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/macro.h"

static bool is_digit(uint8_t c)
{
        return c >= '0' && c <= '9';
}

int number_parse_u64(struct span s, uint64_t *ret)
{
        uint64_t value = 0;

        if (s.len == 0 || (s.len > 1 && s.data[0] == '0'))
                return -EINVAL;
        for (size_t i = 0; i < s.len; i++)
                if (!is_digit(s.data[i]))
                        return -EINVAL;
        for (size_t i = 0; i < s.len; i++)
                if (__builtin_mul_overflow(value, 10, &value) ||
                    __builtin_add_overflow(value, (uint64_t)(s.data[i] - '0'), &value))
                        return -ERANGE;
        *ret = value;
        return 0;
}

int number_parse_i64(struct span s, int64_t *ret)
{
        bool negative = s.len > 0 && s.data[0] == '-';
        uint64_t magnitude;
        int r;

        r = number_parse_u64(span_of(s.data + negative, s.len - negative), &magnitude);
        if (r < 0)
                return r;
        if (magnitude > (uint64_t)INT64_MAX + negative)
                return -ERANGE;
        *ret = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
        return 0;
}

/* A decimal number taken apart: digits x 10^exponent. */
struct decimal {
        bool negative;
        uint64_t digits;
        int exponent;
};

static int decimal_digits(struct span s, size_t *at, bool fraction, struct decimal *d)
{
        size_t start = *at;

        for (; *at < s.len && is_digit(s.data[*at]); (*at)++) {
                if (__builtin_mul_overflow(d->digits, 10, &d->digits) ||
                    __builtin_add_overflow(d->digits, (uint64_t)(s.data[*at] - '0'), &d->digits))
                        return -ERANGE;
                if (fraction)
                        d->exponent--;
        }
        if (*at == start || (!fraction && *at > start + 1 && s.data[start] == '0'))
                return -EINVAL;
        return 0;
}

/* What follows the "e": a sign perhaps, and digits, which may start with zeros as printf() writes them. */
static int decimal_exponent(struct span s, struct decimal *d)
{
        bool negative = s.len > 0 && s.data[0] == '-';
        size_t at = negative || (s.len > 0 && s.data[0] == '+');
        uint64_t exponent;
        int r;

        while (at + 1 < s.len && s.data[at] == '0')
                at++;
        r = number_parse_u64(span_of(s.data + at, s.len - at), &exponent);
        if (r < 0)
                return r;
        if (exponent > 100)
                return -ERANGE;
        d->exponent += negative ? -(int)exponent : (int)exponent;
        return 0;
}

static int decimal_parse(struct span s, struct decimal *ret)
{
        struct decimal d = {0};
        size_t at = 0;
        int r;

        if (s.len > 0 && s.data[0] == '-') {
                d.negative = true;
                at++;
        }
        r = decimal_digits(s, &at, false, &d);
        if (r < 0)
                return r;
        if (at < s.len && s.data[at] == '.') {
                at++;
                r = decimal_digits(s, &at, true, &d);
                if (r < 0)
                        return r;
        }
        if (at < s.len && (s.data[at] == 'e' || s.data[at] == 'E')) {
                r = decimal_exponent(span_of(s.data + at + 1, s.len - at - 1), &d);
                if (r < 0)
                        return r;
                at = s.len;
        }
        if (at != s.len)
                return -EINVAL;
        *ret = d;
        return 0;
}

int number_parse_scaled(struct span s, int64_t scale, int64_t *ret)
{
        struct decimal d;
        __int128 value;
        int r;

        if (scale <= 0)
                return -EINVAL;
        r = decimal_parse(s, &d);
        if (r < 0)
                return r;

        value = (__int128)d.digits * scale;
        for (; d.exponent < 0; d.exponent++) {
                if (value % 10 != 0)
                        return -EDOM;
                value /= 10;
        }
        for (; d.exponent > 0 && value != 0; d.exponent--) {
                if (value > INT64_MAX)
                        return -ERANGE;
                value *= 10;
        }
        if (value > INT64_MAX)
                return -ERANGE;
        *ret = d.negative ? -(int64_t)value : (int64_t)value;
        return 0;
}

char *number_format_scaled(int64_t value, int64_t scale, unsigned digits, char buf[static 48])
{
        unsigned __int128 magnitude =
                value < 0 ? (unsigned __int128)0 - (unsigned __int128)(__int128)value : (unsigned __int128)value;
        uint64_t power = 1, whole, fraction;
        unsigned __int128 scaled;

        digits = MIN(digits, 18u);
        for (unsigned i = 0; i < digits; i++)
                power *= 10;
        scaled = (magnitude * power * 2 + (unsigned __int128)scale) / ((unsigned __int128)scale * 2);
        whole = (uint64_t)(scaled / power);
        fraction = (uint64_t)(scaled % power);
        if (digits == 0)
                snprintf(buf, 48, "%s%" PRIu64, value < 0 && whole ? "-" : "", whole);
        else
                snprintf(buf, 48, "%s%" PRIu64 ".%0*" PRIu64, value < 0 && (whole || fraction) ? "-" : "", whole,
                         (int)digits, fraction);
        return buf;
}

char *number_format_ns(int64_t ns, char buf[static 48])
{
        static const struct {
                int64_t scale;
                const char *unit;
        } units[] = {{1, "ns"}, {NSEC_PER_USEC, "us"}, {NSEC_PER_MSEC, "ms"}, {NSEC_PER_SEC, "s"}};
        uint64_t magnitude = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
        size_t u = 0, len;
        unsigned digits;

        /* 999.95 us and above would print as 1000.0 us: those are milliseconds */
        while (u + 1 < ARRAY_SIZE(units) && magnitude >= (uint64_t)units[u + 1].scale - (uint64_t)units[u].scale / 20)
                u++;
        digits = u == 0 || magnitude >= (uint64_t)units[u].scale * 1000 ? 0
                 : magnitude < (uint64_t)units[u].scale * 10            ? 2
                                                                        : 1;
        number_format_scaled(ns, units[u].scale, digits, buf);
        len = strlen(buf);
        snprintf(buf + len, 48 - len, " %s", units[u].unit);
        return buf;
}

int number_ratio_ppm(int64_t a, int64_t b, int64_t *ret)
{
        __int128 ppm;

        if (b <= 0 || a < 0)
                return -EDOM;
        ppm = ((__int128)a * 2000000 + b) / ((__int128)b * 2);
        if (ppm > INT64_MAX)
                return -ERANGE;
        *ret = (int64_t)ppm;
        return 0;
}
