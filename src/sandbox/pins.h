/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "sys/ip.h"

/* Which names an address was given for, and until when: what connects a packet, which has only an address, with a
 * policy of names. Only names that the policy lets be looked up get in. Finding, adding and extending cost the same
 * however many there are. */

#define PINS_MAX       100000 /* a usual limit of pins, of one address and one name each */
#define PINS_NAMES_MAX 64     /* of one address; more push out the one that would expire first */

struct pin {
        struct ip_prefix address; /* of full length, in normal form (sandbox/target.h) */
        const char *name;         /* in normal form (wire/host-name.h) */
        int64_t expires_ns;       /* CLOCK_MONOTONIC */
};

struct pins;

/* pins_new - @max: of pins */
int pins_new(size_t max, struct pins **ret);
void pins_free(struct pins *pins);

DEFINE_CLEANUP(struct pins *, pins_free)
#define _cleanup_pins_ _cleanup_(pins_free_cleanup)

/* pins_add - pin, or extend: what is pinned for longer already stays so
 * @pin: its name is copied
 * @now_ns: what has expired by then may go to make room
 *
 * Return: 0; -ENOSPC where there are as many as there may be; -ENOMEM.
 */
int pins_add(struct pins *pins, const struct pin *pin, int64_t now_ns);

/* pins_next - the names under which an address is pinned
 * @after: the one that came before, NULL for the first
 *
 * Return: a name, good until pins are added or swept; NULL where there is none (any more).
 */
const char *pins_next(const struct pins *pins, const struct ip_prefix *address, int64_t now_ns, const char *after);

/* pins_extend - keep an address under all its names until @until_ns
 * @fn: called for each pin that lasts longer by that; may be NULL
 *
 * Pins that have expired by @now_ns stay so. Return: 0, or the first negative errno of @fn, after which the other names
 * of this address are as they were.
 */
int pins_extend(struct pins *pins, const struct ip_prefix *address, int64_t now_ns, int64_t until_ns,
                int (*fn)(const struct pin *pin, void *userdata), void *userdata);

/* pins_sweep - drop what has expired. Return: how many that were. */
size_t pins_sweep(struct pins *pins, int64_t now_ns);

/* pins_count - how many there are, with those that have expired and were not swept */
size_t pins_count(const struct pins *pins);
