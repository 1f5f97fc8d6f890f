/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/span.h"

/* Numbers as text, the same in every locale. Nothing here reads or prints floating point. */

/* number_parse_u64 - the whole of @s as a decimal number without sign, space or superfluous leading zero
 *
 * Return: 0; -EINVAL if it is not one; -ERANGE if it does not fit.
 */
int number_parse_u64(struct span s, uint64_t *ret);

/* number_parse_i64 - as number_parse_u64(), with an optional "-" */
int number_parse_i64(struct span s, int64_t *ret);

/* number_parse_scaled - the whole of @s as a decimal fraction, times @scale, exactly
 * @s:      such as "1.25", "-2", "5e-4"; ".5", "1." and "01" are refused
 * @scale:  such as 1000000 for parts per million; must be over 0
 *
 * Return: 0; -EINVAL if it is no number; -ERANGE if it does not fit; -EDOM if it is not a whole number of 1/@scale.
 */
int number_parse_scaled(struct span s, int64_t scale, int64_t *ret);

/* number_format_scaled - @value / @scale as decimal text with @digits places after the point, rounded half away from
 * zero
 * @scale:  over 0
 * @digits: more than 18 are taken as 18
 * @buf:    at least 48 bytes
 *
 * Return: @buf.
 */
char *number_format_scaled(int64_t value, int64_t scale, unsigned digits, char buf[static 48]);

/* number_format_ns - a duration for people, three or four significant digits: "842 ns", "46.3 us", "22.7 ms", "30.0 s"
 * @buf: at least 48 bytes
 *
 * Return: @buf.
 */
char *number_format_ns(int64_t ns, char buf[static 48]);

/* number_ratio_ppm - @a / @b in parts per million, rounded half up, in 128-bit integer arithmetic
 *
 * Return: 0; -EDOM if @b is 0 or either is negative; -ERANGE if it does not fit.
 */
int number_ratio_ppm(int64_t a, int64_t b, int64_t *ret);
