/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/packet.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* 192.0.2.1:4660 to 198.51.100.2:443, TCP; the layout is that of RFC 791 and RFC 9293. */
static const uint8_t tcp4[] = {0x45, 0, 0,   40, 0,   0, 0x40, 0,    64,   6,    0, 0, 192, 0,
                               2,    1, 198, 51, 100, 2, 0x12, 0x34, 0x01, 0xbb, 0, 0, 0,   0};

/* 2001:db8::1 to 2001:db8::2, with room for what follows (RFC 8200). */
static size_t put_ipv6(uint8_t *buf, uint8_t next, const void *rest, size_t len)
{
        static const uint8_t source[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
        static const uint8_t destination[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 2};

        memset(buf, 0, 40);
        buf[0] = 0x60;
        buf[6] = next;
        buf[7] = 64;
        memcpy(buf + 8, source, 16);
        memcpy(buf + 24, destination, 16);
        memcpy(buf + 40, rest, len);
        return 40 + len;
}

static void addresses_and_ports_of_ipv4(void **state)
{
        static const uint8_t source[] = {192, 0, 2, 1}, destination[] = {198, 51, 100, 2};
        struct packet_flow flow;

        assert_int_equal(packet_flow_parse(span_of(tcp4, sizeof(tcp4)), &flow), 0);
        assert_int_equal(flow.family, AF_INET);
        assert_memory_equal(flow.source, source, 4);
        assert_memory_equal(flow.destination, destination, 4);
        assert_int_equal(flow.protocol, IPPROTO_TCP);
        assert_true(flow.has_ports);
        assert_int_equal(flow.source_port, 0x1234);
        assert_int_equal(flow.destination_port, 443);
        assert_false(flow.has_options);
        assert_false(flow.is_fragment);
}

static void options_and_fragments_of_ipv4(void **state)
{
        uint8_t with_options[sizeof(tcp4) + 4], fragment[sizeof(tcp4)];
        struct packet_flow flow;

        memcpy(with_options, tcp4, 20);
        with_options[0] = 0x46;
        memset(with_options + 20, 1, 4); /* four of "no operation" */
        memcpy(with_options + 24, tcp4 + 20, sizeof(tcp4) - 20);
        assert_int_equal(packet_flow_parse(span_of(with_options, sizeof(with_options)), &flow), 0);
        assert_true(flow.has_options);
        assert_int_equal(flow.destination_port, 443);

        memcpy(fragment, tcp4, sizeof(tcp4));
        fragment[6] = 0x20; /* the first of several */
        assert_int_equal(packet_flow_parse(span_of(fragment, sizeof(fragment)), &flow), 0);
        assert_true(flow.is_fragment);
        assert_true(flow.has_ports);
        fragment[6] = 0;
        fragment[7] = 5; /* a later one, whose first bytes are no ports */
        assert_int_equal(packet_flow_parse(span_of(fragment, sizeof(fragment)), &flow), 0);
        assert_true(flow.is_fragment);
        assert_false(flow.has_ports);
}

static void extension_headers_of_ipv6(void **state)
{
        static const uint8_t udp[] = {0x12, 0x34, 0, 53, 0, 8, 0, 0};
        static const uint8_t chained[] = {IPPROTO_ROUTING,
                                          0,
                                          1,
                                          4,
                                          0,
                                          0,
                                          0,
                                          0, /* hop by hop, padding */
                                          IPPROTO_UDP,
                                          0,
                                          4,
                                          0,
                                          0,
                                          0,
                                          0,
                                          0, /* routing, no segments left */
                                          0x12,
                                          0x34,
                                          0,
                                          53};
        static const uint8_t fragment[] = {IPPROTO_UDP, 0, 0, 8, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff};
        struct packet_flow flow;
        uint8_t buf[128];
        size_t len;

        len = put_ipv6(buf, IPPROTO_UDP, udp, sizeof(udp));
        assert_int_equal(packet_flow_parse(span_of(buf, len), &flow), 0);
        assert_int_equal(flow.family, AF_INET6);
        assert_int_equal(flow.source[15], 1);
        assert_int_equal(flow.destination[15], 2);
        assert_int_equal(flow.destination_port, 53);
        assert_false(flow.has_options);

        len = put_ipv6(buf, IPPROTO_HOPOPTS, chained, sizeof(chained));
        assert_int_equal(packet_flow_parse(span_of(buf, len), &flow), 0);
        assert_true(flow.has_options);
        assert_int_equal(flow.protocol, IPPROTO_UDP);
        assert_int_equal(flow.destination_port, 53);

        len = put_ipv6(buf, IPPROTO_FRAGMENT, fragment, sizeof(fragment));
        assert_int_equal(packet_flow_parse(span_of(buf, len), &flow), 0);
        assert_true(flow.is_fragment);
        assert_int_equal(flow.protocol, IPPROTO_UDP);
        assert_false(flow.has_ports);
}

static void what_is_cut_off(void **state)
{
        static const uint8_t hop[] = {IPPROTO_UDP, 0xff};
        struct packet_flow flow;
        uint8_t buf[64], bad[sizeof(tcp4)];

        for (size_t len = 0; len < 20; len++)
                assert_int_equal(packet_flow_parse(span_of(tcp4, len), &flow), -EINVAL);
        assert_int_equal(packet_flow_parse(span_of(tcp4, 20), &flow), 0);
        assert_false(flow.has_ports);
        assert_int_equal(packet_flow_parse(span_of(buf, put_ipv6(buf, IPPROTO_HOPOPTS, hop, 1)), &flow), -EINVAL);
        assert_int_equal(packet_flow_parse(span_of(buf, put_ipv6(buf, IPPROTO_HOPOPTS, hop, 2)), &flow), 0);
        assert_false(flow.has_ports);
        memcpy(bad, tcp4, sizeof(bad));
        bad[0] = 0x44; /* a header of 16 bytes */
        assert_int_equal(packet_flow_parse(span_of(bad, sizeof(bad)), &flow), -EINVAL);
        bad[0] = 0x55; /* version 5 */
        assert_int_equal(packet_flow_parse(span_of(bad, sizeof(bad)), &flow), -EINVAL);
}

/* The example of RFC 1071, section 3, whose sum is ddf2; a pseudo-header of zeros adds only the length. */
static void checksum(void **state)
{
        static const uint8_t example[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}, zeros[16];

        assert_int_equal(packet_checksum(AF_INET, zeros, zeros, 0, example, sizeof(example)),
                         (uint16_t) ~(0xddf2 + sizeof(example)));
        assert_int_equal(packet_checksum(AF_INET6, zeros, zeros, 0, example, sizeof(example)),
                         (uint16_t) ~(0xddf2 + sizeof(example)));
}

/* RFC 9293, 3.5.2: <SEQ=0><ACK=SEG.SEQ+1><CTL=RST,ACK>, and only for what asks to open a connection. */
static void reset(void **state)
{
        static const uint8_t expected[] = {0x45, 0,    0,    40,   0,    0,    0, 0,  64,   6,    0, 0, 192, 0,
                                           2,    1,    10,   0,    0,    1,    0, 80, 0x30, 0x39, 0, 0, 0,   0,
                                           0x12, 0x34, 0x57, 0x00, 0x50, 0x14, 0, 0,  0,    0,    0, 0};
        uint8_t syn[40] = {0x45, 0, 0, 40,   0,    0, 0,  0,    64,   6,    0,    0, 10, 0, 0, 1,    192,
                           0,    2, 1, 0x30, 0x39, 0, 80, 0x12, 0x34, 0x56, 0xff, 0, 0,  0, 0, 0x50, 0x02};
        uint8_t ret[PACKET_RESET_BYTES], sum[2];
        struct packet_flow flow;

        assert_int_equal(packet_flow_parse(span_of(syn, sizeof(syn)), &flow), 0);
        assert_int_equal(packet_reset(span_of(syn, sizeof(syn)), &flow, ret), sizeof(expected));
        memcpy(sum, ret + 36, sizeof(sum));
        memset(ret + 36, 0, sizeof(sum));
        assert_memory_equal(ret, expected, sizeof(expected));
        assert_int_equal(get_be16(sum), packet_checksum(AF_INET, ret + 12, ret + 16, IPPROTO_TCP, ret + 20, 20));

        assert_int_equal(packet_reset(span_of(syn, 33), &flow, ret), 0);
        syn[33] = 0x12; /* SYN, ACK */
        assert_int_equal(packet_reset(span_of(syn, sizeof(syn)), &flow, ret), 0);
        syn[33] = 0x04; /* no reset answers a reset */
        assert_int_equal(packet_reset(span_of(syn, sizeof(syn)), &flow, ret), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(addresses_and_ports_of_ipv4),
                cmocka_unit_test(options_and_fragments_of_ipv4),
                cmocka_unit_test(extension_headers_of_ipv6),
                cmocka_unit_test(what_is_cut_off),
                cmocka_unit_test(checksum),
                cmocka_unit_test(reset),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
