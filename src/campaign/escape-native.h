/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* The ways out of sandbox/way.h, tried where nothing closes them. */

#define ESCAPE_NAMES_BYTES 1024

struct escape_counts {
        int64_t attempts;
        int64_t arrived;  /* noticed by a listener outside, or not refused */
        int64_t unproven; /* neither: they would prove nothing in a sandbox */
        int64_t absent;   /* this kernel has no such thing */
        char unproven_names[ESCAPE_NAMES_BYTES], absent_names[ESCAPE_NAMES_BYTES];
};

/* escape_native - try them all from the network namespace of the calling process, in processes with mounts and process
 * numbers of their own, so that nothing of it lasts
 *
 * The process must have one thread, and is of no other use afterwards. Return: 0; a negative errno with the reason.
 */
int escape_native(struct escape_counts *ret, struct err *err);
