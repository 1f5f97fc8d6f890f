/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/text.h"
#include "load/figures.h"
#include "load/probe.h"

/* The result of `assay probe send`. */
struct print_probe {
        const struct probe *probe;
        bool is_same_clock; /* the user says so */
        int64_t *scratch;   /* room for as many values as the probe has slots */
};

/* print_probe_text - for people: figures, counts, and what was odd */
void print_probe_text(const struct print_probe *result, struct text *out);

/* print_probe_json - the same as an object, figures in ns; a quantile for which there are too few values is null, and
 * one that falls on a lost packet "lost". Return: a new reference, or NULL if memory ran out.
 */
json_t *print_probe_json(const struct print_probe *result);

/* print_probe_ns - a duration for people; "-" where there is none, "lost" for a lost packet. Return: @buf or a text. */
const char *print_probe_ns(int64_t ns, char buf[static 48]);
