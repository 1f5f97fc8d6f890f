/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/ip.h"

#define LISTENER_ADDRESSES 12

/* Somebody outside who notices what gets out: TCP and UDP, on one port of every address that this host has. */
struct listener {
        int tcp_fd, udp_fd;
        uint16_t port;
        struct ip_prefix at[LISTENER_ADDRESSES];
        size_t n;
};

#define LISTENER_INIT                                                                                                  \
        {                                                                                                              \
                .tcp_fd = -1, .udp_fd = -1                                                                             \
        }

/* listener_open - listen in the network namespace of the calling thread, and send to each address to see that it is
 * noticed; addresses at which it is not are left out
 * @ret: listener_done() releases it
 *
 * Return: 0; -EIO, kind environment, where it notices nothing at all; another negative errno.
 */
int listener_open(struct listener *ret, struct err *err);

/* listener_drain - how many connections and datagrams have arrived since the last call */
unsigned listener_drain(struct listener *listener);

void listener_done(struct listener *listener);

#define _cleanup_listener_ _cleanup_(listener_done)
