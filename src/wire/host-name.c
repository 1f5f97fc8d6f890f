/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/host-name.h"

#include <arpa/inet.h>
#include <errno.h>

#include "base/hex.h"
#include "base/macro.h"

#define LABEL_MAX 63

static bool is_digit(uint8_t c)
{
        return c >= '0' && c <= '9';
}

static bool is_label_octet(uint8_t c)
{
        return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
}

/* One part of an IPv4 address: decimal, octal after "0", hexadecimal after "0x". */
static int parse_part(struct span part, uint64_t *ret, bool *is_plain)
{
        unsigned base = 10;
        uint64_t value = 0;

        if (part.len > 1 && part.data[0] == '0') {
                bool is_hex = (part.data[1] | 0x20) == 'x';

                base = is_hex ? 16 : 8;
                part = span_of(part.data + 1 + is_hex, part.len - 1 - is_hex);
                *is_plain = false;
        }
        if (part.len == 0)
                return -EINVAL;
        for (size_t i = 0; i < part.len; i++) {
                int digit = hex_digit(part.data[i]);

                if (digit < 0 || (unsigned)digit >= base)
                        return -EINVAL;
                value = value * base + (unsigned)digit;
                if (value > UINT32_MAX)
                        return -EINVAL;
        }
        *ret = value;
        return 0;
}

/* As inet_aton() reads it: one to four parts, of which the last fills the octets that are left. */
static int parse_v4(const char *text, uint8_t address[static 4], bool *ret_plain)
{
        uint64_t part[4];
        bool is_plain = true;
        size_t n = 0;
        uint32_t value;

        for (const char *at = text;; at++) {
                size_t len = strcspn(at, ".");

                if (n == ARRAY_SIZE(part) || parse_part(span_of(at, len), &part[n++], &is_plain) < 0)
                        return -EINVAL;
                at += len;
                if (*at == '\0')
                        break;
        }
        value = (uint32_t)part[n - 1];
        if (n > 1 && part[n - 1] >> (8 * (5 - n)) != 0)
                return -EINVAL;
        for (size_t i = 0; i + 1 < n; i++) {
                if (part[i] > UINT8_MAX)
                        return -EINVAL;
                value |= (uint32_t)part[i] << (24 - 8 * i);
        }
        put_be32(address, value);
        *ret_plain = is_plain && n == 4;
        return 0;
}

/* Whether a resolver could take the name for an address: its last label is a number. */
static bool ends_in_number(const char *name)
{
        const char *dot = strrchr(name, '.'), *label = dot ? dot + 1 : name;
        bool is_hex = label[0] == '0' && label[1] == 'x';

        for (const char *c = label + (is_hex ? 2 : 0); *c; c++)
                if (is_hex ? hex_digit((uint8_t)*c) < 0 : !is_digit((uint8_t)*c))
                        return false;
        return true;
}

static void set_v4(struct host_name *host, bool is_plain)
{
        host->kind = HOST_NAME_IS_V4;
        host->is_plain = is_plain;
        inet_ntop(AF_INET, host->address, host->text, sizeof(host->text));
}

static int parse_name(struct span text, struct host_name *ret)
{
        size_t label = 0;

        if (text.len > 0 && text.data[text.len - 1] == '.')
                text.len--;
        if (text.len == 0)
                return -EINVAL;
        if (text.len >= HOST_NAME_TEXT)
                return -ENAMETOOLONG;
        for (size_t i = 0; i < text.len; i++) {
                uint8_t c = text.data[i];

                if (c >= 'A' && c <= 'Z')
                        c |= 0x20;
                if (c == '.' ? label == 0 : !is_label_octet(c))
                        return -EINVAL;
                label = c == '.' ? 0 : label + 1;
                if (label > LABEL_MAX)
                        return -ENAMETOOLONG;
                ret->text[i] = (char)c;
        }
        if (label == 0)
                return -EINVAL;
        ret->text[text.len] = '\0';

        ret->kind = HOST_NAME_IS_NAME;
        ret->is_plain = true;
        if (ends_in_number(ret->text)) {
                bool is_plain;

                if (parse_v4(ret->text, ret->address, &is_plain) < 0)
                        return -EINVAL;
                set_v4(ret, is_plain);
        }
        return 0;
}

static int parse_v6(struct span text, struct host_name *ret)
{
        static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
        char buf[INET6_ADDRSTRLEN];

        if (text.len >= sizeof(buf) || memchr(text.data, '\0', text.len))
                return -EINVAL;
        memcpy(buf, text.data, text.len);
        buf[text.len] = '\0';
        if (inet_pton(AF_INET6, buf, ret->address) != 1)
                return -EINVAL;
        if (memcmp(ret->address, mapped, sizeof(mapped)) == 0) {
                memcpy(ret->address, ret->address + 12, 4);
                memset(ret->address + 4, 0, 12);
                set_v4(ret, false);
                return 0;
        }
        ret->kind = HOST_NAME_IS_V6;
        ret->is_plain = true;
        inet_ntop(AF_INET6, ret->address, ret->text, sizeof(ret->text));
        return 0;
}

int host_name_parse(struct span text, struct host_name *ret)
{
        struct host_name parsed = {0};
        int r;

        if (text.len >= 2 && text.data[0] == '[' && text.data[text.len - 1] == ']')
                r = parse_v6(span_of(text.data + 1, text.len - 2), &parsed);
        else
                r = parse_name(text, &parsed);
        if (r == 0)
                *ret = parsed;
        return r;
}

int host_name_parse_bare(struct span text, struct host_name *ret)
{
        struct host_name parsed = {0};
        int r;

        if (text.len > 0 && memchr(text.data, ':', text.len))
                r = parse_v6(text, &parsed);
        else
                r = parse_name(text, &parsed);
        if (r == 0)
                *ret = parsed;
        return r;
}

bool host_name_equal(const struct host_name *a, const struct host_name *b)
{
        return a->kind == b->kind && streq(a->text, b->text);
}
