/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "sys/netlink.h"

DEFINE_CLEANUP(struct nl_msg *, nlmsg_free)
#define _cleanup_nlmsg_ _cleanup_(nlmsg_free_cleanup)

/* netlink_request - send one request and wait for the kernel's acknowledgement
 * @msg:  complete but for sequence number and port
 * @what: what is being tried, to begin the reason with ("cannot create the link front")
 *
 * The kernel's own words (its extended acknowledgement) go into @err where it gives any. A missing right and a missing
 * kernel feature are of kind unsupported, the rest of kind environment.
 * Return: 0 or the kernel's negative errno.
 */
int netlink_request(struct netlink *nl, struct nl_msg *msg, const char *what, struct err *err);

/* netlink_query - send one request for information and give each message of the answer to @fn
 * @fn: a negative return ends the calls and becomes the result; it reports its own reason
 *
 * Return: 0; -EINTR where things changed during a dump, so that it has to be asked again; another negative errno.
 */
int netlink_query(struct netlink *nl, struct nl_msg *msg, int (*fn)(struct nlmsghdr *hdr, void *userdata),
                  void *userdata, const char *what, struct err *err);

/* netlink_wait - wait until something is as it should be
 * @groups:  what to look again after: RTMGRP_LINK, RTMGRP_IPV6_ROUTE
 * @is_done: 1, 0 for not yet, or a negative errno, which ends the wait; its reason is then in @err
 *
 * Return: 0; -ETIMEDOUT without a reason; another negative errno.
 */
int netlink_wait(struct netlink *nl, unsigned groups, int64_t timeout_ns,
                 int (*is_done)(struct netlink *nl, void *userdata, struct err *err), void *userdata, struct err *err);

/* netlink_build_failed - turn a failure of libnl to build a message into a reason
 * @code: libnl's negative error code
 */
int netlink_build_failed(int code, const char *what, struct err *err);
