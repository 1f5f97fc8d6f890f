/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/sample.h"

/* A field is at most the 19 digits of INT64_MAX and a sign, and has one byte behind it: "," or the row's LF. */
#define SAMPLES_FIELD_BYTES_MAX 20
#define SAMPLES_ROW_BYTES_MAX   ((size_t)SAMPLE_COLUMNS_MAX * (SAMPLES_FIELD_BYTES_MAX + 1))

/* A column's name: lower-case letters, digits and "_", starting with a letter. */
#define SAMPLES_NAME_BYTES_MAX   40
#define SAMPLES_HEADER_BYTES_MAX ((size_t)SAMPLE_COLUMNS_MAX * (SAMPLES_NAME_BYTES_MAX + 1))

bool samples_is_column_name(const char *name, size_t len);
