/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"

/* Results on stdout. */

/* print_json - print @json in its canonical form. The reference is taken; NULL says that memory ran out. Return: 0 or
 * -ENOMEM. */
int print_json(json_t *json, struct err *err);

/* print_text - print what was gathered, unless memory ran out. Return: 0 or -ENOMEM. */
int print_text(const struct text *text, struct err *err);

/* print_visible - add a string of outside bytes to @out, so that a terminal shows it and does not obey it; NULL adds
 * nothing */
void print_visible(struct text *out, const char *outside);
