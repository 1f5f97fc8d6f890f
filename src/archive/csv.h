/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/text.h"

/* csv_add_field - add a text field to a line of CSV, in quotes where RFC 4180 asks for them: where @value holds a
 * comma, a quote, CR or LF. The caller adds the commas between fields and the line's end. */
void csv_add_field(struct text *out, const char *value);
