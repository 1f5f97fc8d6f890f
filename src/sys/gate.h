/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "bpf/gate.h"
#include "sys/ip.h"
#include "sys/netlink.h"

/* A check at the host's end of a sandbox's link, by BPF: only what is opened leaves the sandbox, and only answers to it
 * come back (bpf/gate.bpf.c). It goes with the link, and stays in force when this process dies. */
struct gate;

/* gate_attach - load it and attach it to link @index, with nothing open
 * @own:     the addresses of the sandbox's end, IPv4 and IPv6
 * @entries: how many may be open at once; at most GATE_ENTRIES_MAX
 * @ret:     gate_free() releases it; the check stays as long as the link
 *
 * Return: 0; -EPERM, kind unsupported, where BPF may not be loaded; another negative errno.
 */
int gate_attach(struct netlink *nl, int index, const struct ip_prefix own[2], uint32_t entries, struct gate **ret,
                struct err *err);

void gate_free(struct gate *gate);

DEFINE_CLEANUP(struct gate *, gate_free)
#define _cleanup_gate_ _cleanup_(gate_free_cleanup)

/* gate_open - let packets to and from a far end pass
 * @protocol:   IPPROTO_TCP, IPPROTO_UDP
 * @port:       0: every port but that of DNS over TLS
 * @expires_ns: CLOCK_MONOTONIC; 0: never. One that is there gets the new time
 *
 * Return: 0; -E2BIG where as many are open as there may be, those counted that have expired and were not closed.
 */
int gate_open(struct gate *gate, const struct ip_prefix *address, int protocol, uint16_t port, int64_t expires_ns,
              struct err *err);

/* gate_close - no longer; what is not open counts as done */
int gate_close(struct gate *gate, const struct ip_prefix *address, int protocol, uint16_t port, struct err *err);

/* gate_read - what was let through and what was stopped, by enum gate_counter */
int gate_read(const struct gate *gate, struct gate_count ret[static GATE_COUNTERS], struct err *err);
