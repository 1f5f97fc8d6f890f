/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sys/loop.h"

/* Bytes from one descriptor to another, one direction, as fast as both go. */
struct relay {
        struct loop *loop;
        struct loop_io from_io, to_io;
        int from_fd, to_fd; /* -1: there is none, or no longer */
        bool from_is_socket, to_is_socket;
        bool owns_to; /* closes @to_fd at the end, so that the reader sees it */
        char *bytes;
        size_t start, len;
};

#define RELAY_INIT                                                                                                     \
        {                                                                                                              \
                .from_fd = -1, .to_fd = -1                                                                             \
        }

/* relay_start - begin to copy; ends by itself at the end of the input, or when the output does not take more, and then
 * stops the loop, so that its owner can look whether that was the last one
 * @relay:  with descriptors and flags set, which must stay open. A socket may be in blocking mode, anything else must
 * not be, but for a terminal that is read
 *
 * Return: 0 or a negative errno.
 */
int relay_start(struct relay *relay, struct loop *loop);

/* relay_is_running - whether there may be more to copy */
bool relay_is_running(const struct relay *relay);

/* relay_done - end it now; accepts RELAY_INIT */
void relay_done(struct relay *relay);
