/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/text.h"
#include "reflex/pipeline.h"
#include "stats/histogram.h"

/* What `assay reflex run` prints. */

struct print_reflex_row {
        uint32_t number; /* of the attachment */
        const char *program;
        enum attach_kind kind;
        uint64_t rate_hz;
        uint64_t cost_ps;
        struct histogram wake;   /* from when the event was made, or due, until the loop was told, ns */
        struct histogram output; /* from when the program was entered until its first value was out, ns */
};

struct print_reflex {
        struct pipeline *pipeline; /* that ran; its audit is emptied */
        const struct print_reflex_row *rows;
        size_t n_rows;
};

/* print_reflex_text - the result for a person; with the audit's records if @with_audit */
void print_reflex_text(const struct print_reflex *result, bool with_audit, struct text *out);

/* print_reflex_json - the result as an object; NULL if memory ran out */
json_t *print_reflex_json(const struct print_reflex *result);
