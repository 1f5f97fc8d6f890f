/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "bpfvm/cost.h"

/* A cost table measured on this machine: programs that hold one kind of instruction many times are run in the
 * interpreter, what stands around it is taken off, and of all rounds the slow end is kept. Caches and predictors are
 * warm: a first run after a long sleep is slower, which a margin has to cover. */

struct calibration {
        struct cost_table table;
        uint64_t predicted_ps; /* by the table, of a mixed program */
        uint64_t measured_ps;  /* the same program, at the same quantile */
};

/* calibrate_run - measure all classes, and the helpers that do not reach outside (the others keep their assumed costs)
 * @margin_ppm: what is measured times this, in parts per million, goes into the table; at least 1000000
 *
 * Takes about a second of processor time. Return: 0; -EINVAL for a margin below 1; -ENOMEM.
 */
int calibrate_run(uint32_t margin_ppm, struct calibration *ret, struct err *err);
