/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/socket.h>

#include "base/hex.h"
#include "wire/dns.h"

#define V4_SUFFIX "in-addr.arpa"
#define V6_SUFFIX "ip6.arpa"

void dns_name_of_address(int family, const uint8_t *address, char ret[static DNS_NAME_TEXT])
{
        char *at = ret;

        if (family == AF_INET) {
                snprintf(ret, DNS_NAME_TEXT, "%u.%u.%u.%u." V4_SUFFIX, address[3], address[2], address[1], address[0]);
                return;
        }
        for (size_t i = 16; i-- > 0;)
                at += sprintf(at, "%x.%x.", address[i] & 0xfu, (unsigned)address[i] >> 4);
        memcpy(at, V6_SUFFIX, sizeof(V6_SUFFIX));
}

/* One label that is a number below @limit, in @base 10 or 16, without superfluous zeros. Return: what is behind its
 * dot; NULL. */
static const char *read_part(const char *name, unsigned base, unsigned limit, uint8_t *ret)
{
        size_t len = strcspn(name, ".");
        unsigned value = 0;

        if (len == 0 || len > 3 || name[len] != '.' || (len > 1 && name[0] == '0'))
                return NULL;
        for (size_t i = 0; i < len; i++) {
                int digit = hex_digit((uint8_t)name[i]);

                if (digit < 0 || (unsigned)digit >= base)
                        return NULL;
                value = value * base + (unsigned)digit;
        }
        *ret = (uint8_t)value;
        return value < limit ? name + len + 1 : NULL;
}

static bool read_v4(const char *name, uint8_t *ret)
{
        for (size_t i = 4; name && i-- > 0;)
                name = read_part(name, 10, 256, &ret[i]);
        return name && dns_name_equal(name, V4_SUFFIX);
}

static bool read_v6(const char *name, uint8_t *ret)
{
        for (size_t i = 16; name && i-- > 0;) {
                uint8_t low, high;

                name = read_part(name, 16, 16, &low);
                name = name ? read_part(name, 16, 16, &high) : NULL;
                if (name)
                        ret[i] = (uint8_t)(high << 4 | low);
        }
        return name && dns_name_equal(name, V6_SUFFIX);
}

int dns_name_to_address(const char *name, uint8_t ret_address[static 16])
{
        uint8_t address[16] = {0};
        int family = read_v4(name, address) ? AF_INET : read_v6(name, address) ? AF_INET6 : 0;

        if (family != 0)
                memcpy(ret_address, address, sizeof(address));
        return family;
}
