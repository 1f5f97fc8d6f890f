/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/packet.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define IPV4_HEADER_BYTES   20
#define IPV6_HEADER_BYTES   40
#define TCP_HEADER_BYTES    20
#define TCP_FLAGS_AT        13
#define TCP_FIN             0x01
#define TCP_SYN             0x02
#define TCP_RST             0x04
#define TCP_ACK             0x10
#define TTL                 64
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
        flow->ports_at = offset;
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

/* ---- what answers a packet ---- */

static uint32_t add_words(uint32_t sum, const uint8_t *bytes, size_t len)
{
        for (; len > 1; bytes += 2, len -= 2)
                sum += get_be16(bytes);
        return len > 0 ? sum + (uint32_t)bytes[0] * 256 : sum;
}

uint16_t packet_checksum(int family, const uint8_t *source, const uint8_t *destination, uint8_t protocol,
                         const uint8_t *segment, size_t len)
{
        size_t address_bytes = family == AF_INET ? 4 : 16;
        uint32_t sum = protocol + (uint32_t)len;

        sum = add_words(sum, source, address_bytes);
        sum = add_words(sum, destination, address_bytes);
        sum = add_words(sum, segment, len);
        while (sum >> 16)
                sum = (sum & 0xffff) + (sum >> 16);
        return (uint16_t)~sum;
}

static size_t put_ip_header(const struct packet_flow *request, uint8_t *packet)
{
        if (request->family == AF_INET) {
                packet[0] = 4 << 4 | IPV4_HEADER_BYTES / 4;
                put_be16(packet + 2, IPV4_HEADER_BYTES + TCP_HEADER_BYTES);
                packet[8] = TTL;
                packet[9] = IPPROTO_TCP;
                memcpy(packet + 12, request->destination, 4);
                memcpy(packet + 16, request->source, 4);
                return IPV4_HEADER_BYTES;
        }
        packet[0] = 6 << 4;
        put_be16(packet + 4, TCP_HEADER_BYTES);
        packet[6] = IPPROTO_TCP;
        packet[7] = TTL;
        memcpy(packet + 8, request->destination, 16);
        memcpy(packet + 24, request->source, 16);
        return IPV6_HEADER_BYTES;
}

size_t packet_reset(struct span syn, const struct packet_flow *flow, uint8_t ret[static PACKET_RESET_BYTES])
{
        struct span head;
        uint8_t *tcp;
        size_t len;

        if (flow->protocol != IPPROTO_TCP || !flow->has_ports ||
            !span_sub(syn, flow->ports_at, TCP_FLAGS_AT + 1, &head) ||
            (head.data[TCP_FLAGS_AT] & (TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK)) != TCP_SYN)
                return 0;
        memset(ret, 0, PACKET_RESET_BYTES);
        len = put_ip_header(flow, ret);
        tcp = ret + len;
        put_be16(tcp, flow->destination_port);
        put_be16(tcp + 2, flow->source_port);
        put_be32(tcp + 8, get_be32(head.data + 4) + 1); /* acknowledges the request */
        tcp[12] = TCP_HEADER_BYTES / 4 << 4;
        tcp[TCP_FLAGS_AT] = TCP_RST | TCP_ACK;
        put_be16(tcp + 16,
                 packet_checksum(flow->family, flow->source, flow->destination, IPPROTO_TCP, tcp, TCP_HEADER_BYTES));
        return len + TCP_HEADER_BYTES;
}
