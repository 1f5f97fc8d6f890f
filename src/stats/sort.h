/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* sort_u64 - put @n values into ascending order
 * @scratch: room for @n values; its content is undefined afterwards
 *
 * A radix sort over the bits in which the values differ: durations of one trial lie close together, so two or three
 * passes do where a comparison sort needs fifteen.
 */
void sort_u64(uint64_t *values, uint64_t *scratch, size_t n);

/* sort_i64 - put @n signed values into ascending order; for the few values of rounds */
void sort_i64(int64_t *values, size_t n);
