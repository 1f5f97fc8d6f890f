/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* Quantities as they are written: a decimal number and a unit without space. The unit may be left out only for 0. */

enum unit {
        UNIT_RATE,        /* bit, kbit, mbit, gbit: bits of layer 2 a second (powers of 1000) */
        UNIT_DURATION,    /* ns, us, ms, s, min, h: nanoseconds */
        UNIT_PICOSECONDS, /* ps, ns, us, ms, s: picoseconds */
        UNIT_BYTES,       /* B, KiB, MiB, GiB */
        UNIT_PACKETS,     /* p */
        UNIT_FREQUENCY,   /* /s: events a second */
        UNIT_COUNT,       /* a whole number without unit */
        UNIT_RATIO,       /* a number without unit, as parts per million: "1.25" is 1250000 */
        UNIT_PROPORTION,  /* a number from 0 to 1 without unit, as parts per thousand million: "5e-4" is 500000 */
};

/* unit_parse - the value of @text in the base unit that the enum names; exact, or refused
 *
 * Return: 0; -EINVAL, -ERANGE or -EDOM with a reason (kind usage, no position) that names what was expected.
 */
int unit_parse(enum unit unit, const char *text, int64_t *ret, struct err *err);

/* unit_expected - what a person should write: "a rate such as 500mbit" */
const char *unit_expected(enum unit unit);

/* unit_format - @value as it would be written, in the largest unit that keeps it whole; unit_parse() gives @value back
 * @buf: at least 48 bytes
 *
 * Return: @buf.
 */
char *unit_format(enum unit unit, int64_t value, char buf[static 48]);
