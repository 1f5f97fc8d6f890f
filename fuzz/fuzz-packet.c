/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "wire/packet.h"

/* A packet as the kernel's log gives it: cut off anywhere. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct packet_flow whole, cut;

        if (packet_flow_parse(span_of(data, size), &whole) < 0)
                return 0;
        /* Less of a packet never tells more, nor anything else. */
        if (size > 0 && packet_flow_parse(span_of(data, size - 1), &cut) == 0 &&
            (cut.family != whole.family || (cut.has_ports && !whole.has_ports) ||
             (cut.has_ports && cut.destination_port != whole.destination_port)))
                abort();
        return 0;
}
