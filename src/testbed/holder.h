/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "sys/netns.h"
#include "testbed/topology.h"

/* A testbed that stays: a process of its own, in a session of its own, holds it until it is told to take it down. There
 * is one for each user.
 *
 * It is found by the socket testbed.sock in $XDG_RUNTIME_DIR/assay, or /run/assay where that variable is not set; the
 * folder has to belong to the user and to nobody else (mode 0700). Both sides check who the other is. When the holder
 * ends, however it ends, the kernel removes everything but the socket's name, and the next command removes that. */

enum holder_state {
        HOLDER_DOWN,     /* nothing stands */
        HOLDER_UP,       /* it stands as it was built */
        HOLDER_DEGRADED, /* it stands, and something of it is gone or down */
        HOLDER_FAILED,   /* the last attempt to bring one up failed, and nothing stands */
};

/* holder_state_name - stable lower-case name, such as "degraded" */
const char *holder_state_name(enum holder_state state);

struct holder_status {
        enum holder_state state;
        char *detail; /* what is degraded, a line each; the error of the last attempt; else "" */
        json_t *json; /* object for `--json`: state, detail, and of a standing testbed its process, topology, mechanism,
                       * nodes and links */
};

void holder_status_done(struct holder_status *status);

#define _cleanup_holder_status_ _cleanup_(holder_status_done)

/* holder_up - bring up a testbed that stays
 * @identity: tells one configuration from another, such as the canonical text of the boundary
 *
 * Returns when it stands, or could not be built; the reason is then kept for holder_status(), too.
 * Return: 0; 1 where the same one stood already; -EEXIST where another one does; another negative errno.
 */
int holder_up(const struct topology *topology, const char *identity, struct err *err);

/* holder_down - take it down and forget the last failure. Return: 0; 1 where nothing stood; a negative errno. */
int holder_down(struct err *err);

/* holder_status - how it is; holder_status_done() releases @ret. Return: 0 or a negative errno. */
int holder_status(struct holder_status *ret, struct err *err);

/* holder_netns - the namespace of a node of the standing testbed, and the user namespace that it belongs to
 * @name:     of a zone; "gateway", "relay-1"
 *
 * Return: 0; -ENOENT where nothing stands or there is no such node; another negative errno.
 */
int holder_netns(const char *name, struct netns *ret, struct err *err);

/* holder_link - an end of a link of the standing testbed, to watch what crosses it
 * @name:       of the link, or of the zone that it leads to
 * @ret:        the namespace of the end; @ret_device is its interface there
 *
 * The end is a forwarding node's where the link has one. Return: as holder_netns().
 */
int holder_link(const char *name, struct netns *ret, char ret_device[static 16], struct err *err);
