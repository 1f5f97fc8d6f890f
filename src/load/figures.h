/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "load/slots.h"

/* What a probe's books come to, for people: quantiles by nearest rank over all packets that were sent, lost ones above
 * every duration. An archive's numbers are made elsewhere, from its samples; the ranks are the same. */

enum figure {
        FIGURE_RTT,      /* between the kernel's stamps, less the residence */
        FIGURE_RTT_USER, /* between the user's stamps */
        FIGURE_RESPONSE, /* from the due time to the user's receive stamp */
        FIGURE_LATENESS, /* from the due time to the user's send stamp */
        FIGURE_RESIDENCE,
        FIGURE_THERE, /* one-way delays: mean something only where both clocks are one, or synchronised */
        FIGURE_BACK,
        FIGURE_VARIATION_THERE, /* of the one-way delay from packet to packet, either sign (RFC 3393): needs no common
                                 */
        FIGURE_VARIATION_BACK,  /* clock, and begins with the first pair of packets answered */
        N_FIGURES,
};

/* The value of a quantile that falls on a lost packet. */
#define FIGURE_LOST INT64_MAX

struct figure_values {
        size_t n;        /* observed */
        size_t lost;     /* ranked above them */
        size_t negative; /* observed below 0, where that cannot be */
        int64_t min, max;
        int64_t p50, p95, p99; /* SAMPLE_MISSING where there are too few to say */
};

/* figure_name - stable lower-case name, such as "rtt_user" */
const char *figure_name(enum figure figure);

/* figure_take - the figure over slots @from to @to - 1, as far as they are closed
 * @scratch: room for @to - @from values
 *
 * Return: 0; -ENODATA where not one value was observed.
 */
int figure_take(const struct slots *s, size_t from, size_t to, enum figure figure, int64_t *scratch,
                struct figure_values *ret);
