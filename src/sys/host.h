/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"
#include "base/json.h"

/* host_describe - the facts about this host that a measurement may depend on (docs/formats/run-env.md)
 * @ret_stable:    what stays the same from run to run until somebody changes the host
 * @ret_volatile:  what does not: load, temperature, frequency, free memory
 *
 * Both are objects with strings and integers in them; a fact that this host does not tell is null, never a guess. There
 * is nothing in them that names a person or the host: no host or user name, no address, no serial number, of the
 * kernel's command line only parameters known to change timing. Return: 0 with two new references, or -ENOMEM.
 */
int host_describe(json_t **ret_stable, json_t **ret_volatile, struct err *err);
