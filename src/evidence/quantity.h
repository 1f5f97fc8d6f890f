/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "config/unit.h"

#define QUANTITY_SIZE 64

/* quantity_format - a value for people, to its last digit: "44.321 us", "1.083721", "0.0125%", "480 mbit"
 * @value:  in the unit's base unit; BOUNDS_INFINITE is "lost"
 *
 * A verdict compares exactly, so what it says must not be rounded: 1.25 is not above 1.25. Return: @buf.
 */
char *quantity_format(enum unit unit, int64_t value, char buf[static QUANTITY_SIZE]);
