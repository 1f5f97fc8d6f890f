/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sys/seccomp.h"

/* filter_build - the system calls that a command in the sandbox may make
 *
 * Sockets are those of an allowlist; see filter.c for each list and its reasons.
 * @nested:         user namespaces, and what their root may do, stay allowed
 * @shares_network: it stays in the host's network: sockets of every kind
 * @is_asked:       with attempts_filter()
 */
void filter_build(struct seccomp_filter *ret, bool nested, bool shares_network, bool is_asked);
