/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* cpu_missing - whether a processor that @where asks for may be used here
 *
 * Return: 0; -EOPNOTSUPP with the processor named (kind unsupported) in @err.
 */
int cpu_missing(const char *where, int64_t cpu, struct err *err);
