/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "testbed/testbed.h"

/* What the two sides of the holder's socket share: packets (SOCK_SEQPACKET) of one JSON object each.
 *
 *      {"op":"status"}                     {"state":…,…}
 *      {"op":"netns","name":"front-left"}  {"device":""} and the namespace's descriptor
 *      {"op":"link","name":"uplink"}       {"device":"eth2"} and the namespace's descriptor
 *      {"op":"down"}                       {}
 *
 * An answer {"error":"…"} says why not. */

enum {
        HOLDER_REQUEST_MAX = 256,
        HOLDER_REPLY_MAX = 256 * 1024,
};

/* holder_serve - answer requests until one of them, or a signal, ends it
 * @listen_fd: a listening socket, non-blocking
 *
 * Return: 0, or a negative errno.
 */
int holder_serve(struct testbed *tb, const char *identity, int listen_fd);

/* holder_is_trusted - whether the process at the other end of @fd runs as this user or as root */
bool holder_is_trusted(int fd);
