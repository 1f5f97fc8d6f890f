/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/marker.h"

#include <errno.h>

#define MAGIC 0x41734c64 /* "AsLd" */

void marker_put(const struct marker *marker, uint8_t buf[static MARKER_LEN])
{
        put_be32(buf, MAGIC);
        put_be32(buf + 4, marker->stream);
        put_be64(buf + 8, marker->sequence);
}

int marker_parse(struct span datagram, struct marker *ret)
{
        if (datagram.len < MARKER_LEN || get_be32(datagram.data) != MAGIC)
                return -EBADMSG;
        *ret = (struct marker){.stream = get_be32(datagram.data + 4), .sequence = get_be64(datagram.data + 8)};
        return 0;
}
