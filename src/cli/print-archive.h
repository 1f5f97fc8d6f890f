/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* print_archive - what a finished archive has frozen, its class and its caveats, on stdout: the same when a campaign
 * has just ended and years later
 * @path:    of the archive's folder
 * @series:  which series of durations; NULL for each that a rule judges
 * @is_json: as JSON, instead of tables
 *
 * Nothing is checked. Return: 0, or a negative errno with the reason in @err.
 */
int print_archive(const char *path, const char *series, bool is_json, struct err *err);
