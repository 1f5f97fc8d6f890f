/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/span.h"

/* What background load carries, so that a sink can tell loss, duplication and reordering: the first 16 octets of each
 * datagram, in network byte order. The rest is padding. */

#define MARKER_LEN 16

struct marker {
        uint32_t stream;   /* random, one for each sender */
        uint64_t sequence; /* of the datagram in its stream, from 0 */
};

/* marker_put - write the 16 octets */
void marker_put(const struct marker *marker, uint8_t buf[static MARKER_LEN]);

/* marker_parse - read them. Return: 0; -EBADMSG where @datagram is too short or does not begin with the magic number.
 */
int marker_parse(struct span datagram, struct marker *ret);
