/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "bpf/sink.h"
#include "sys/netlink.h"

/* A sink of datagrams at a zone's link: what enters for one UDP port is counted and dropped by BPF, before any socket.
 * Counts are of datagrams and of bytes of layer 2, tag included. */
struct sink;

#define SINK_ORDER_FIRST 2 /* behind the slice filter, which is 1 */

/* sink_attach - attach to link @index
 * @order:  SINK_ORDER_FIRST, and the next for each further sink of the link
 * @port:   UDP destination port
 * @vlans:  slices to count apart, SLICE_MAX at most
 * @ret:    sink_free() releases it; it keeps dropping as long as the link is there
 *
 * Return: 0; -EEXIST where the order is taken; -EPERM, kind unsupported,
 * where BPF may not be loaded; another negative errno.
 */
int sink_attach(struct netlink *nl, int index, uint16_t order, uint16_t port, const uint16_t *vlans, size_t n_vlans,
                struct sink **ret, struct err *err);

/* sink_hold - as sink_attach(), at a link of the caller's network namespace that outlives this process, and only until
 * sink_free() or the end of the process
 *
 * Return: 0; -EOPNOTSUPP, kind unsupported, before Linux 6.6; -EPERM; another negative errno.
 */
int sink_hold(int index, uint16_t port, struct sink **ret, struct err *err);

void sink_free(struct sink *sink);

DEFINE_CLEANUP(struct sink *, sink_free)
#define _cleanup_sink_ _cleanup_(sink_free_cleanup)

struct sink_counters {
        struct slice_count vlans[SLICE_MAX]; /* in the order given */
        struct slice_count other;            /* untagged, or none of them */
};

/* sink_read - what has been counted since it was attached */
int sink_read(const struct sink *sink, struct sink_counters *ret, struct err *err);
