/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* What one value is against another, where a value may be BOUNDS_INFINITE: infinite over (or less) something finite is
 * infinite; over (or less) something infinite it is undefined. */

/* effect_ratio - @of / @versus in parts per million, rounded half up
 *
 * Return: 0; -EDOM if @versus is infinite or not positive, or @of negative; -ERANGE if it does not fit.
 */
int effect_ratio(int64_t of, int64_t versus, int64_t *ret_ppm);

/* effect_difference - @of - @versus
 *
 * Return: 0; -EDOM if @versus is infinite; -ERANGE if it does not fit.
 */
int effect_difference(int64_t of, int64_t versus, int64_t *ret);
