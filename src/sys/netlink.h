/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "sys/netns.h"

/* A connection to the kernel's routing messages in one network namespace: what links, addresses and queues are made
 * with. It stays in its namespace and keeps it alive. Not to be shared between processes or threads. */
struct netlink;

/* netlink_open - connect
 * @ns:  NULL for the namespace of the calling thread
 * @ret: netlink_free() releases it
 */
int netlink_open(const struct netns *ns, struct netlink **ret, struct err *err);

void netlink_free(struct netlink *nl);

DEFINE_CLEANUP(struct netlink *, netlink_free)
#define _cleanup_netlink_ _cleanup_(netlink_free_cleanup)
