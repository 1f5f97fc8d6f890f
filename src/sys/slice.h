/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "bpf/slice.h"
#include "sys/ip.h"
#include "sys/netlink.h"

/* Slices kept apart at one end of a link: every IP packet that leaves gets its slice's 802.1Q tag, every frame that
 * enters has to have the tag of a slice and addresses of that slice, and loses the tag; all else is dropped and
 * counted. With keeps_tags, 8021q devices above the link do the tagging, and what leaves has to have the right tag.
 * What entered keeps its slice as mark while it is in the namespace, so a gateway forwards it under the tag that it
 * came with, whatever its addresses. Every count is of frames and of bytes of layer 2, tag included. */
struct slice_filter;

/* slice_rule_init - a rule that no packet belongs to yet; slice_rule_allow() widens it */
void slice_rule_init(struct slice_rule *rule, uint16_t vlan);

/* slice_rule_allow - let packets from @source to @destination belong to the slice; one pair for each family
 *
 * Return: 0; -EINVAL where the families differ.
 */
int slice_rule_allow(struct slice_rule *rule, const struct ip_prefix *source, const struct ip_prefix *destination);

/* slice_filter_attach - load and attach both directions to link @index
 * @config:  a frame takes the first rule that fits; a VLAN may be in several leaving rules but in one entering rule
 * only
 * @ret:     slice_filter_free() releases it; the filter stays as long as the link
 *
 * Return: 0; -EPERM, kind unsupported, where BPF may not be loaded; -EINVAL, kind bug, for a
 * configuration that makes no sense; another negative errno.
 */
int slice_filter_attach(struct netlink *nl, int index, const struct slice_config *config, struct slice_filter **ret,
                        struct err *err);

void slice_filter_free(struct slice_filter *filter);

DEFINE_CLEANUP(struct slice_filter *, slice_filter_free)
#define _cleanup_slice_filter_ _cleanup_(slice_filter_free_cleanup)

struct slice_counters {
        struct slice_count leaving[SLICE_MAX], entering[SLICE_MAX]; /* by rule; leaving is counted before any queue */
        struct slice_count drops[SLICE_DROP_MAX];
};

/* slice_filter_read - what the filter has counted since it was attached */
int slice_filter_read(const struct slice_filter *filter, struct slice_counters *ret, struct err *err);

/* slice_drop_name - stable name of a reason, such as "unknown-tag" */
const char *slice_drop_name(enum slice_drop reason);
