/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/packet.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define IPV4_HEADER_BYTES   20
#define IPV6_HEADER_BYTES   40
#define FRAGMENT_OFFSET     0x1fff
#define FRAGMENT_MORE       0x2000
#define EXTENSION_UNIT      8 /* bytes; a length counts these beyond the first */
#define EXTENSION_UNIT_AUTH 4 /* of the authentication header, beyond the first two */
#define EXTENSIONS_MAX      16

static void parse_ports(struct span packet, size_t offset, struct packet_flow *flow)
{
        struct span ports;

        if ((flow->protocol != IPPROTO_TCP && flow->protocol != IPPROTO_UDP) || !span_sub(packet, offset, 4, &ports))
                return;
        flow->has_ports = true;
        flow->source_port = get_be16(ports.data);
        flow->destination_port = get_be16(ports.data + 2);
}

static int parse_ipv4(struct span packet, struct packet_flow *flow)
{
        size_t header_bytes = (size_t)(packet.data[0] & 0xf) * 4;
        uint16_t fragment;

        if (header_bytes < IPV4_HEADER_BYTES || packet.len < IPV4_HEADER_BYTES)
                return -EINVAL;
        fragment = get_be16(packet.data + 6);
        flow->family = AF_INET;
        memcpy(flow->source, packet.data + 12, 4);
        memcpy(flow->destination, packet.data + 16, 4);
        flow->protocol = packet.data[9];
        flow->has_options = header_bytes > IPV4_HEADER_BYTES;
        flow->is_fragment = (fragment & (FRAGMENT_OFFSET | FRAGMENT_MORE)) != 0;
        if ((fragment & FRAGMENT_OFFSET) == 0)
                parse_ports(packet, header_bytes, flow);
        return 0;
}

/* Return: the bytes of the extension header of type @type at @offset; 0 where it is none; -EINVAL where it is cut off.
 */
static int extension_length(struct span packet, uint8_t type, size_t offset)
{
        struct span head;

        switch (type) {
        case IPPROTO_HOPOPTS:
        case IPPROTO_ROUTING:
        case IPPROTO_DSTOPTS:
        case IPPROTO_MH:
                return span_sub(packet, offset, 2, &head) ? (head.data[1] + 1) * EXTENSION_UNIT : -EINVAL;
        case IPPROTO_FRAGMENT:
                return span_sub(packet, offset, EXTENSION_UNIT, &head) ? EXTENSION_UNIT : -EINVAL;
        case IPPROTO_AH:
                return span_sub(packet, offset, 2, &head) ? (head.data[1] + 2) * EXTENSION_UNIT_AUTH : -EINVAL;
        default:
                return 0;
        }
}

static int parse_ipv6(struct span packet, struct packet_flow *flow)
{
        size_t offset = IPV6_HEADER_BYTES;
        bool is_first_fragment = true;

        if (packet.len < IPV6_HEADER_BYTES)
                return -EINVAL;
        flow->family = AF_INET6;
        memcpy(flow->source, packet.data + 8, 16);
        memcpy(flow->destination, packet.data + 24, 16);
        flow->protocol = packet.data[6];
        for (unsigned i = 0; i < EXTENSIONS_MAX; i++) {
                int len = extension_length(packet, flow->protocol, offset);

                if (len < 0)
                        return len;
                if (len == 0)
                        break;
                flow->has_options = true;
                if (flow->protocol == IPPROTO_FRAGMENT) {
                        uint16_t fragment = get_be16(packet.data + offset + 2);

                        flow->is_fragment = true;
                        is_first_fragment = (fragment >> 3) == 0;
                }
                flow->protocol = packet.data[offset];
                offset += (size_t)len;
                if (!is_first_fragment)
                        return 0;
        }
        parse_ports(packet, offset, flow);
        return 0;
}

int packet_flow_parse(struct span packet, struct packet_flow *ret)
{
        struct packet_flow flow = {0};
        int r = -EINVAL;

        if (packet.len > 0 && packet.data[0] >> 4 == 4)
                r = parse_ipv4(packet, &flow);
        else if (packet.len > 0 && packet.data[0] >> 4 == 6)
                r = parse_ipv6(packet, &flow);
        if (r == 0)
                *ret = flow;
        return r;
}
