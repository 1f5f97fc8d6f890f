/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/cleanup.h"
#include "sandbox/rules.h"
#include "sys/gate.h"
#include "sys/netlink.h"

/* The second, independent check of a wall, at the host's end of its link: by BPF (sys/gate.h) where that may be loaded
 * and the policy is one of single addresses and few ports, else by nftables. */
struct outer;

/* outer_new - put it in force at link @index, which is not up yet
 * @rules: as the inner side's; its link's name and ranges are borrowed until outer_free()
 * @ret:   outer_free() releases it. With BPF it stays in force as long as the link
 */
int outer_new(struct netlink *nl, int index, const struct rules *rules, const struct policy *policy, struct outer **ret,
              struct err *err);

void outer_free(struct outer *outer);

DEFINE_CLEANUP(struct outer *, outer_free)
#define _cleanup_outer_ _cleanup_(outer_free_cleanup)

/* outer_weaker - a sentence where it is nftables although BPF could hold the policy; else NULL */
const char *outer_weaker(const struct outer *outer);

/* outer_admit, outer_expose - as rules_admit() and rules_expose() */
int outer_admit(struct outer *outer, const struct policy *policy, const struct pin *pins, size_t n, struct err *err);
int outer_expose(struct outer *outer, const struct ip_prefix *address, uint16_t port, bool is_open, struct err *err);

/* outer_read - what passed and what was stopped, by enum gate_counter */
int outer_read(struct outer *outer, struct gate_count ret[static GATE_COUNTERS], struct err *err);
