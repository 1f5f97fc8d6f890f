/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/special.h"

#include "base/macro.h"

#define V4(a, b, c, d, length) .prefix = {AF_INET, {a, b, c, d}, length}
#define V6(length, ...)        .prefix = {AF_INET6, {__VA_ARGS__}, length}

/* clang-format off */
static const struct special table[] = {
        {V4(0, 0, 0, 0, 8), SPECIAL_LOOPBACK, "0.0.0.0/8, this network (RFC 1122)"},
        {V4(127, 0, 0, 0, 8), SPECIAL_LOOPBACK, "127.0.0.0/8 (RFC 1122)"},
        {V4(10, 0, 0, 0, 8), SPECIAL_PRIVATE, "10.0.0.0/8 (RFC 1918)"},
        {V4(172, 16, 0, 0, 12), SPECIAL_PRIVATE, "172.16.0.0/12 (RFC 1918)"},
        {V4(192, 168, 0, 0, 16), SPECIAL_PRIVATE, "192.168.0.0/16 (RFC 1918)"},
        {V4(100, 64, 0, 0, 10), SPECIAL_PRIVATE, "100.64.0.0/10, shared by an operator's customers (RFC 6598)"},
        {V4(198, 18, 0, 0, 15), SPECIAL_PRIVATE, "198.18.0.0/15, for benchmarks (RFC 2544)"},
        {V4(169, 254, 0, 0, 16), SPECIAL_LINK_LOCAL, "169.254.0.0/16 (RFC 3927)"},
        {V4(169, 254, 169, 254, 32), SPECIAL_METADATA, "169.254.169.254, of most clouds"},
        {V4(169, 254, 170, 2, 32), SPECIAL_METADATA, "169.254.170.2, of containers at AWS"},
        {V4(169, 254, 170, 23, 32), SPECIAL_METADATA, "169.254.170.23, of pods at AWS"},
        {V4(100, 100, 100, 200, 32), SPECIAL_METADATA, "100.100.100.200, of Alibaba Cloud"},
        {V4(168, 63, 129, 16, 32), SPECIAL_METADATA, "168.63.129.16, of Azure"},
        {V4(192, 0, 0, 192, 32), SPECIAL_METADATA, "192.0.0.192, of Oracle Cloud"},
        {V4(192, 0, 0, 0, 24), SPECIAL_RESERVED, "192.0.0.0/24, for protocols (RFC 6890)"},
        {V4(192, 88, 99, 0, 24), SPECIAL_TUNNEL, "192.88.99.0/24, 6to4 relays (RFC 7526)"},
        {V4(224, 0, 0, 0, 4), SPECIAL_MULTICAST, "224.0.0.0/4 (RFC 5771)"},
        {V4(240, 0, 0, 0, 4), SPECIAL_RESERVED, "240.0.0.0/4 (RFC 1112)"},
        {V4(255, 255, 255, 255, 32), SPECIAL_MULTICAST, "255.255.255.255, broadcast (RFC 919)"},

        {V6(8, 0), SPECIAL_RESERVED, "::/8 (RFC 4291)"},
        {V6(128, 0), SPECIAL_LOOPBACK, "::, unspecified (RFC 4291)"},
        {V6(128, [15] = 1), SPECIAL_LOOPBACK, "::1 (RFC 4291)"},
        {V6(48, 0, 0x64, 0xff, 0x9b, 0, 1), SPECIAL_TUNNEL, "64:ff9b:1::/48, to IPv4 (RFC 8215)"},
        {V6(8, 1), SPECIAL_RESERVED, "100::/8 (RFC 4291, RFC 6666)"},
        {V6(32, 0x20, 0x01), SPECIAL_TUNNEL, "2001::/32, Teredo (RFC 4380)"},
        {V6(48, 0x20, 0x01, 0, 2), SPECIAL_PRIVATE, "2001:2::/48, for benchmarks (RFC 5180)"},
        {V6(16, 0x20, 0x02), SPECIAL_TUNNEL, "2002::/16, 6to4 (RFC 3056)"},
        {V6(16, 0x5f), SPECIAL_RESERVED, "5f00::/16, segment routing (RFC 9602)"},
        {V6(7, 0xfc), SPECIAL_PRIVATE, "fc00::/7 (RFC 4193)"},
        {V6(128, 0xfd, 0, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54), SPECIAL_METADATA, "fd00:ec2::254, of AWS"},
        {V6(128, 0xfd, 0, 0x0e, 0xc2, [15] = 0x23), SPECIAL_METADATA, "fd00:ec2::23, of pods at AWS"},
        {V6(128, 0xfd, 0x20, 0, 0xce, [14] = 0x02, [15] = 0x54), SPECIAL_METADATA, "fd20:ce::254, of Google Cloud"},
        {V6(10, 0xfe, 0x80), SPECIAL_LINK_LOCAL, "fe80::/10 (RFC 4291)"},
        {V6(10, 0xfe, 0xc0), SPECIAL_PRIVATE, "fec0::/10, of a site (RFC 3879)"},
        {V6(8, 0xff), SPECIAL_MULTICAST, "ff00::/8 (RFC 4291)"},
};
/* clang-format on */

static const uint8_t translator[12] = {0, 0x64, 0xff, 0x9b};

const char *special_kind_text(enum special_kind kind)
{
        static const char *const texts[] = {
                [SPECIAL_LOOPBACK] = "an address of the host itself",
                [SPECIAL_PRIVATE] = "a private address",
                [SPECIAL_LINK_LOCAL] = "a link-local address",
                [SPECIAL_METADATA] = "the address of a metadata service",
                [SPECIAL_MULTICAST] = "a multicast or broadcast address",
                [SPECIAL_TUNNEL] = "an address that stands for another one",
                [SPECIAL_RESERVED] = "a reserved address",
        };

        return texts[kind];
}

const struct special *special_at(size_t i)
{
        return i < ARRAY_SIZE(table) ? &table[i] : NULL;
}

bool special_embedded(const struct ip_prefix *address, struct ip_prefix *ret)
{
        struct ip_prefix embedded = {.family = AF_INET, .length_bits = 32};

        if (address->family != AF_INET6 || memcmp(address->bytes, translator, sizeof(translator)) != 0)
                return false;
        memcpy(embedded.bytes, address->bytes + 12, 4);
        *ret = embedded;
        return true;
}

struct ip_prefix special_translated(const struct ip_prefix *prefix)
{
        struct ip_prefix behind = {.family = AF_INET6, .length_bits = prefix->length_bits + 96};

        memcpy(behind.bytes, translator, sizeof(translator));
        memcpy(behind.bytes + 12, prefix->bytes, 4);
        return behind;
}

bool special_find(const struct ip_prefix *address, struct special *ret)
{
        const struct special *narrowest = NULL;
        struct ip_prefix embedded;

        if (special_embedded(address, &embedded)) {
                if (!special_find(&embedded, ret))
                        return false;
                /* a range that is to allow it has to be as narrow behind the translator */
                ret->prefix = special_translated(&ret->prefix);
                return true;
        }
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (ip_prefix_contains(&table[i].prefix, address) &&
                    (!narrowest || table[i].prefix.length_bits > narrowest->prefix.length_bits))
                        narrowest = &table[i];
        if (narrowest)
                *ret = *narrowest;
        return narrowest != NULL;
}
