/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

/* How long the verifier of the running kernel takes for a program, by the kernel's own account: the statistics that it
 * writes to the log of a load (level 4, since Linux 5.2). What a load does besides, such as translating the program to
 * machine code, is not in it. */

/* kernel_verifier_measure - load a program as a socket filter, and unload it again
 * @slots:       instructions as the kernel wants them
 * @ret_time_ns: a whole number of microseconds, since the kernel counts those
 *
 * Return: 0; -EOPNOTSUPP (kind unsupported) with the missing right or feature named; -EINVAL where the kernel refuses
 * the program; another negative errno.
 */
int kernel_verifier_measure(struct span slots, int64_t *ret_time_ns, struct err *err);

/* kernel_verifier_missing - whether it can be asked here: tries it with the least program. Return: as above. */
int kernel_verifier_missing(struct err *err);

/* kernel_verifier_time_of_log - the time in a log, in nanoseconds
 *
 * Return: 0; -ENODATA if the log does not say.
 */
int kernel_verifier_time_of_log(const char *log, int64_t *ret_time_ns);
