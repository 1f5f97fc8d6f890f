/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "wire/openmetrics.h"

/* What a metric's name is made of after its first character, which is no digit. ":" is reserved for calculated ones. */
#define OPENMETRICS_NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

/* openmetrics_name_is_valid - whether @name can be the name of a family or, as @is_label, of a label, where a leading
 * "_" is reserved */
bool openmetrics_name_is_valid(const char *name, bool is_label);

/* openmetrics_unit_fits - whether @name ends in "_" and @unit, as it has to; always for an empty unit */
bool openmetrics_unit_fits(const char *name, const char *unit);
